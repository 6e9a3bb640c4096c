// Keeps a page of `serve` as the run is: asks for its state, writes what has changed, and swaps the
// report when the server has a newer one. Text from the server goes in as text, never as HTML.
"use strict";
(() => {
  const page = document.documentElement.dataset;
  const LOOK = 2000, HIDDEN = 15000, OVER = 10000, LONGEST = 30000, PATIENCE = 20000; // ms
  const byKey = (name, key) => document.querySelectorAll(`[data-${name}="${CSS.escape(key)}"]`);

  let tag = "";           // of the last state
  let version = page.version; // of what is in <main>
  let wanted = version;   // what the server has
  let isOver = false;
  let failures = 0;
  let ahead = 0;          // server's clock less ours, in ms
  let timer = 0;
  let asking = false;

  async function ask(address, headers = {}) {
    const response = await fetch(address, {
      headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE),
    });
    const now = Date.parse(response.headers.get("Date"));
    if (now) ahead = now - Date.now();
    return response;
  }

  async function look() {
    clearTimeout(timer);
    if (asking) return;
    asking = true;
    try {
      const response = await ask(page.state, tag ? { "If-None-Match": tag } : {});
      if (response.status === 200) {
        const state = await response.json();
        tag = response.headers.get("ETag") || "";
        show(state);
      } else if (response.status === 404) {
        say("It is no longer there: moved, renamed or deleted. What is shown is as it was.");
        failures += 1;
        return;
      } else if (response.status !== 304) {
        throw new Error(`status ${response.status}`);
      }
      if (wanted !== version) await swap();
      failures = 0;
      say("");
      text(byKey("text", "looked"), `as of ${clock(Date.now())}`);
    } catch {
      failures += 1;
      say(`The server does not answer; what is shown is as it was at ${last()}. ` +
        "Trying again by itself.");
    } finally {
      asking = false;
      timer = setTimeout(look, pause());
    }
  }

  function pause() {
    if (failures) return Math.min(LOOK * 2 ** (failures - 1), LONGEST);
    return document.hidden ? HIDDEN : isOver ? OVER : LOOK;
  }

  let lastAnswer = Date.now();
  const last = () => clock(lastAnswer);
  const clock = (at) => new Date(at).toTimeString().slice(0, 8);

  function say(words) {
    if (!words) lastAnswer = Date.now();
    const alert = document.getElementById("connection");
    if (alert.textContent !== words) alert.textContent = words;
    alert.hidden = !words;
  }

  function text(elements, words) {
    for (const element of elements) if (element.textContent !== words) element.textContent = words;
  }

  function show(state) {
    for (const [key, words] of Object.entries(state.text)) text(byKey("text", key), words);
    for (const [key, value] of Object.entries(state.bars)) {
      for (const bar of byKey("bar", key)) {
        if (value === null) bar.removeAttribute("value");
        else bar.value = value;
      }
    }
    for (const [key, moment] of Object.entries(state.moments)) {
      for (const time of byKey("since", key)) time.dateTime = moment;
    }
    for (const [key, mood] of Object.entries(state.moods)) {
      for (const element of byKey("mood", key)) element.className = mood;
    }
    for (const [key, rows] of Object.entries(state.tables)) {
      for (const body of byKey("table", key)) fill(body, rows);
    }
    for (const part of document.querySelectorAll("[data-going]")) part.hidden = state.is_over;
    document.title = state.title;
    wanted = state.version;
    isOver = state.is_over;
    tick();
  }

  // Rows of cells; a cell is text, {since: moment} or {bar: value}.
  function fill(body, rows) {
    body.replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      if (row.look) line.className = row.look;
      line.append(...row.cells.map(cell));
      return line;
    }));
    const table = body.closest("[data-full]");
    if (table) table.hidden = !rows.length;
  }

  function cell(content) {
    const box = document.createElement("td");
    if (content === null || typeof content === "string") {
      box.textContent = content || "";
    } else if ("since" in content) {
      const time = document.createElement("time");
      time.dateTime = content.since;
      time.dataset.since = "";
      box.append(time);
    } else {
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.value = content.bar;
      bar.setAttribute("aria-label", content.label);
      box.append(bar);
    }
    return box;
  }

  // How long something has lasted, by the server's clock.
  function tick() {
    for (const time of document.querySelectorAll("time[data-since]")) {
      const began = Date.parse(time.dateTime);
      if (!began) continue;
      const seconds = Math.max(0, Math.round((Date.now() + ahead - began) / 1000));
      text([time], duration(seconds) + ("ago" in time.dataset ? " ago" : ""));
    }
  }

  function duration(seconds) {
    const two = (n) => String(n).padStart(2, "0");
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
    if (seconds < 172800) {
      return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds % 3600 / 60))} min`;
    }
    return `${Math.floor(seconds / 86400)} days`;
  }

  // The report anew, with the reader where he was: scroll, focus, what is unfolded.
  async function swap() {
    const main = document.querySelector("main");
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && main.contains(selection.anchorNode)) return;
    const response = await ask(page.content);
    if (!response.ok) return; // it is being made: the next look asks again
    const html = await response.text();
    const before = place(main);
    const fresh = new DOMParser().parseFromString(html, "text/html");
    main.replaceChildren(...fresh.body.childNodes);
    restore(main, before);
    version = (response.headers.get("ETag") || "").replaceAll('"', "");
    tick();
  }

  const FOCUSABLE = "a, summary, button, input, [tabindex]";

  function place(main) {
    const away = (element) => Math.abs(element.getBoundingClientRect().top);
    const anchor = [...main.querySelectorAll("section[id], figure[id]")].reduce(
      (best, element) => (best && away(best) <= away(element) ? best : element), null);
    const active = document.activeElement;
    return {
      anchor: anchor && { id: anchor.id, at: anchor.getBoundingClientRect().top },
      y: window.scrollY,
      focus: main.contains(active) ? [...main.querySelectorAll(FOCUSABLE)].indexOf(active) : -1,
      focusId: main.contains(active) ? active.id : "",
      open: [...main.querySelectorAll("details")].map((details) => details.open),
      sideways: [...main.querySelectorAll("*")].filter((e) => e.scrollLeft)
        .map((e) => [e.id, e.scrollLeft]),
    };
  }

  function restore(main, before) {
    main.querySelectorAll("details").forEach((details, i) => {
      if (i < before.open.length) details.open = before.open[i];
    });
    const anchor = before.anchor && document.getElementById(before.anchor.id);
    if (anchor) window.scrollBy(0, anchor.getBoundingClientRect().top - before.anchor.at);
    else window.scrollTo(window.scrollX, before.y);
    const active = before.focusId ? document.getElementById(before.focusId)
      : main.querySelectorAll(FOCUSABLE)[before.focus];
    if (active) active.focus({ preventScroll: true });
    for (const [id, left] of before.sideways) {
      const element = id && document.getElementById(id);
      if (element) element.scrollLeft = left;
    }
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  window.addEventListener("online", look);
  setInterval(tick, 1000);
  tick();
  look();
})();

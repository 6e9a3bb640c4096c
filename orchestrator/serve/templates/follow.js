// Keeps a page of `serve` as the run is: asks for its state, swaps the parts of the page that it has
// anew, and the report when the server has a newer one. Their HTML is made by the server's templates.
"use strict";
(() => {
  const page = document.documentElement.dataset;
  const LOOK = 2000, HIDDEN = 15000, OVER = 10000, LONGEST = 30000, PATIENCE = 20000; // ms

  let tag = "";           // of the last state
  let state = null;       // as the server said it last
  let version = page.version; // of what is in <main>
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
        state = await response.json();
        tag = response.headers.get("ETag") || "";
      } else if (response.status === 404) {
        say("It is no longer there: moved, renamed or deleted. What is shown is as it was.");
        failures += 1;
        return;
      } else if (response.status !== 304) {
        throw new Error(`status ${response.status}`);
      }
      lastAnswer = Date.now();
      show();
      if (state.version !== version) await renew();
      failures = 0;
      say("");
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
    return document.hidden ? HIDDEN : state?.is_over ? OVER : LOOK;
  }

  let lastAnswer = Date.now();
  const last = () => clock(lastAnswer);
  const clock = (at) => new Date(at).toTimeString().slice(0, 8);

  function say(words) {
    const alert = document.getElementById("connection");
    if (alert.textContent !== words) alert.textContent = words;
    alert.hidden = !words;
  }

  function text(element, words) {
    if (element.textContent !== words && !isHeld(element)) element.textContent = words;
  }

  function show() {
    document.title = state.title;
    for (const [id, html] of Object.entries(state.parts)) {
      const part = document.getElementById(id);
      if (!part || part.shown === html) continue;
      if (state.version !== version && part.closest("main")) continue; // all of it comes anew
      if (swap(part, html)) part.shown = html;
    }
    tick();
  }

  // How long something has lasted, by the server's clock.
  function tick() {
    for (const time of document.querySelectorAll("time[data-since]")) {
      const began = Date.parse(time.dateTime);
      if (!began) continue;
      const seconds = Math.max(0, Math.round((Date.now() + ahead - began) / 1000));
      text(time, duration(seconds) + ("ago" in time.dataset ? " ago" : ""));
    }
    text(document.querySelector("[data-looked]"), `as of ${last()}`);
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

  async function renew() {
    const main = document.querySelector("main");
    if (isHeld(main)) return;
    const response = await ask(page.content);
    if (!response.ok) return; // it is being made: the next look asks again
    if (!swap(main, await response.text())) return;
    version = (response.headers.get("ETag") || "").replaceAll('"', "");
  }

  // Whether the reader has selected something of it, or presses it at the moment.
  function isHeld(part) {
    const selection = document.getSelection();
    return part.matches(":active") || !selection.isCollapsed && selection.containsNode(part, true);
  }

  // A part anew, unless he holds it, with the reader where he was: scroll, focus, what is unfolded.
  function swap(part, html) {
    if (isHeld(part)) return false;
    const before = place(part);
    const fresh = new DOMParser().parseFromString(html, "text/html");
    part.replaceChildren(...fresh.body.childNodes);
    restore(part, before);
    tick();
    return true;
  }

  const FOCUSABLE = "a, summary, button, input, [tabindex]";

  function place(part) {
    const away = (element) => Math.abs(element.getBoundingClientRect().top);
    const anchor = [...part.querySelectorAll("section[id], figure[id]")].reduce(
      (best, element) => (best && away(best) <= away(element) ? best : element), null);
    const active = document.activeElement;
    return {
      anchor: anchor && { id: anchor.id, at: anchor.getBoundingClientRect().top },
      focus: part.contains(active) ? [...part.querySelectorAll(FOCUSABLE)].indexOf(active) : -1,
      focusId: part.contains(active) ? active.id : "",
      open: [...part.querySelectorAll("details")].map((details) => details.open),
      sideways: [...part.querySelectorAll("*")].filter((e) => e.scrollLeft)
        .map((e) => [e.id, e.scrollLeft]),
    };
  }

  function restore(part, before) {
    part.querySelectorAll("details").forEach((details, i) => {
      if (i < before.open.length) details.open = before.open[i];
    });
    const anchor = before.anchor && document.getElementById(before.anchor.id);
    if (anchor) window.scrollBy(0, anchor.getBoundingClientRect().top - before.anchor.at);
    const active = before.focusId ? document.getElementById(before.focusId)
      : part.querySelectorAll(FOCUSABLE)[before.focus];
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

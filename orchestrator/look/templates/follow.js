// Keeps a page as its run is: asks for the content of <main> again and again, and swaps the parts
// of it that are otherwise than before. The reader stays where he is, with what he has opened.
"use strict";
(() => {
  const LOOK = 2000, HIDDEN = 15000, LONGEST = 30000, PATIENCE = 30000; // ms
  const main = document.querySelector("main");
  const said = new WeakMap(); // a part of <main>, and its HTML as the server sent it
  for (const part of main.children) said.set(part, part.outerHTML);
  let tag = main.dataset.tag, failures = 0, timer = 0;

  async function look() {
    clearTimeout(timer);
    try {
      const response = await fetch(main.dataset.part, {
        headers: { "If-None-Match": tag }, cache: "no-store",
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (response.status === 200) {
        tag = swap(await response.text()) ? response.headers.get("ETag") : "";
      } else if (response.status !== 304) {
        throw new Error(`status ${response.status}`);
      }
      failures = 0;
      say("");
    } catch {
      failures += 1;
      say("The server does not answer, or the run is no longer there. What is shown is as it was; "
        + "this page tries again by itself.");
    }
    const pause = failures ? Math.min(LOOK * 2 ** failures, LONGEST) : LOOK;
    timer = setTimeout(look, document.hidden ? HIDDEN : pause);
  }

  function say(words) {
    const alert = document.getElementById("connection");
    if (alert.textContent !== words) alert.textContent = words;
    alert.hidden = !words;
  }

  // Returns false where something is left as it was because the reader has selected it.
  function swap(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const anchor = [...main.children].find((part) => part.getBoundingClientRect().bottom > 0);
    const before = anchor?.getBoundingClientRect().top;
    const parts = [...fresh.body.children];
    const ids = new Set(parts.map((part) => part.id));
    for (const old of [...main.children]) if (!ids.has(old.id)) old.remove();
    let place = main.firstElementChild, isWhole = true;
    for (const part of parts) {
      const html = part.outerHTML, old = document.getElementById(part.id);
      const isKnown = old !== null && old.parentElement === main;
      if (isKnown && place !== old) main.insertBefore(old, place);
      if (isKnown && (said.get(old) === html || isSelected(old))) {
        isWhole &&= said.get(old) === html;
        place = old.nextElementSibling;
        continue;
      }
      said.set(part, html);
      if (isKnown) {
        const state = stateOf(old);
        place = old.nextElementSibling;
        old.replaceWith(part);
        restore(part, state);
      } else {
        main.insertBefore(part, place);
      }
    }
    document.title = fresh.title;
    const after = anchor?.id && document.getElementById(anchor.id)?.getBoundingClientRect().top;
    if (Number.isFinite(after) && after !== before) window.scrollBy(0, after - before);
    return isWhole;
  }

  function isSelected(part) {
    const selection = document.getSelection();
    return !selection.isCollapsed && selection.containsNode(part, true);
  }

  const FOCUSABLE = "a, summary, [tabindex]";
  const named = (details) => details.firstElementChild.textContent.replace(/\d+/g, "");

  function stateOf(part) {
    return {
      open: new Set([...part.querySelectorAll("details[open]")].map(named)),
      focus: [...part.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement),
      scrolled: [...part.querySelectorAll(".scroll, pre")].map((e) => [e.scrollLeft, e.scrollTop]),
    };
  }

  function restore(part, { open, focus, scrolled }) {
    for (const details of part.querySelectorAll("details")) details.open = open.has(named(details));
    part.querySelectorAll(".scroll, pre").forEach((element, i) => {
      [element.scrollLeft, element.scrollTop] = scrolled[i] || [0, 0];
    });
    if (focus >= 0) part.querySelectorAll(FOCUSABLE)[focus]?.focus({ preventScroll: true });
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  timer = setTimeout(look, LOOK);
})();

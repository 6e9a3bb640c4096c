// Keeps <main> as the server has it, while somebody looks. What the reader has opened stays open.
"use strict";
const EVERY = 10000; // ms
const main = document.querySelector("main"), lost = document.getElementById("lost");
let timer;

async function look() {
  clearTimeout(timer);
  if (!document.hidden && document.getSelection().isCollapsed) { // else the text in hand would go
    try {
      const headers = { "If-None-Match": main.dataset.tag };
      const response = await fetch("?part", { headers, cache: "no-store" });
      lost.hidden = response.ok || response.status === 304;
      if (response.ok) show(await response.text(), response.headers.get("ETag"));
    } catch {
      lost.hidden = false;
    }
  }
  clearTimeout(timer);
  timer = setTimeout(look, EVERY);
}

function show(html, tag) {
  const named = (details) => details.firstElementChild.textContent.replace(/\d+/g, "");
  const open = [...main.querySelectorAll("details[open]")].map(named);
  main.innerHTML = html;
  main.dataset.tag = tag;
  for (const own of main.querySelectorAll("details")) own.open = open.includes(named(own));
}

document.addEventListener("visibilitychange", look);
timer = setTimeout(look, EVERY);

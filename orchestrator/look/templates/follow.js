// Keeps <main> as the server has it, while somebody looks. What the reader has opened stays open.
"use strict";
const main = document.querySelector("main"), lost = document.getElementById("lost");

async function look() {
  if (document.hidden || !document.getSelection().isCollapsed) return; // it may be about to be copied
  try {
    const response = await fetch("?part", { headers: { "If-None-Match": main.dataset.tag } });
    lost.hidden = response.ok || response.status === 304;
    if (response.ok) show(await response.text(), response.headers.get("ETag"));
  } catch {
    lost.hidden = false;
  }
}

function show(html, tag) {
  const named = (details) => details.firstElementChild.textContent.replace(/\d+/g, "");
  const open = [...main.querySelectorAll("details[open]")].map(named);
  main.innerHTML = html;
  main.dataset.tag = tag;
  for (const own of main.querySelectorAll("details")) own.open = open.includes(named(own));
}

document.addEventListener("visibilitychange", look);
setInterval(look, 10000);

// Keys and live news; everything else is plain HTML and htmx.
"use strict";

const events = new EventSource("/events");
events.addEventListener("changed", () => document.body.dispatchEvent(new Event("changed")));
window.addEventListener("pagehide", () => events.close());

let at = -1;

function mark(step) {
  const rows = [...document.querySelectorAll(".row")];
  if (!rows.length) return;
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows.forEach((row, place) => row.classList.toggle("marked-row", place === at));
  rows[at].querySelector("a.open").focus();
}

function press(id) {
  const found = document.getElementById(id);
  if (found) found.click();
  return Boolean(found);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) return;
  const acts = {
    j: () => press("next") || mark(1),
    k: () => press("previous") || mark(-1),
    a: () => press("accept"),
    r: () => document.getElementById("reason")?.focus(),
    e: () => {
      const part = document.getElementById("edit");
      if (part) { part.open = true; document.getElementById("text").focus(); }
    },
    "/": () => document.querySelector("input[type=search]")?.focus(),
  };
  if (acts[event.key]) {
    event.preventDefault();
    acts[event.key]();
  }
});

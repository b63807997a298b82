// Keys and live news; everything else is plain HTML and htmx.
"use strict";

// A browser opens six connections to a server and no more, so only pages that are seen listen.
let events = null;

function listen() {
  if (events || document.hidden) return;
  events = new EventSource("/events");
  events.addEventListener("changed", tellChanged);
  events.onopen = () => lost(false);
  events.onerror = () => {
    lost(true);
    if (events.readyState === EventSource.CLOSED) { // not tried again by itself
      events = null;
      setTimeout(listen, 2000);
    }
  };
}

function tellChanged() {
  document.body.dispatchEvent(new Event("changed"));
}

function lost(now) {
  const note = document.getElementById("lost");
  if (note.hidden !== now) return;
  note.hidden = !now;
  if (!now) tellChanged(); // what happened meanwhile was not heard
}

function hush() {
  events?.close();
  events = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) hush();
  else { listen(); tellChanged(); }
});
window.addEventListener("pagehide", hush);
window.addEventListener("pageshow", listen);

let at = -1;

function mark(step) {
  const rows = [...document.querySelectorAll(".row")].filter((row) => row.querySelector("a.open"));
  if (!rows.length) return;
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows.forEach((row, place) => row.classList.toggle("marked-row", place === at));
  rows[at].querySelector("a.open").focus();
}

// A list that was renewed keeps the place that somebody had reached by the keys.
document.addEventListener("htmx:afterSettle", () => {
  if (at >= 0 && document.activeElement === document.body) mark(0);
});

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

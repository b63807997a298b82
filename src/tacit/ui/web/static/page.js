// Keys and live news; everything else is plain HTML and htmx.
"use strict";

// A browser opens six connections to a server and no more, so one page listens for all that are open.
// The pages have a folder of their own, and this script lies in one of it.
const here = new URL("..", document.currentScript.src);
const news = new BroadcastChannel("tacit");
news.onmessage = (event) => hear(event.data);
let stale = false;

function listen() {
  const events = new EventSource(new URL("events", here));
  events.addEventListener("changed", () => tell("changed"));
  events.onopen = () => tell("here");
  events.onerror = () => {
    tell("lost");
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

function tell(what) {
  hear(what);
  news.postMessage(what);
}

function hear(what) {
  const note = document.getElementById("lost");
  if (what === "lost") {
    note.hidden = false;
  } else if (what === "changed" || !note.hidden) { // while it was lost, nothing was heard
    note.hidden = true;
    stale = true;
    renew();
  }
}

function renew() {
  if (stale && !document.hidden) {
    stale = false;
    document.body.dispatchEvent(new Event("changed"));
  }
}

document.addEventListener("visibilitychange", renew);
if (navigator.locks) {
  navigator.locks.request("tacit", () => {
    listen();
    return new Promise(() => {}); // until this page is left, when another takes over
  });
} else {
  listen();
}

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

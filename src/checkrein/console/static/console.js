// What every page does: keep the clocks, hear what happens, remember where this browser signed in.

const body = document.body;
export const place = body.dataset.place;
const skew = Date.now() / 1000 - Number(body.dataset.now);
export const now = () => Date.now() / 1000 - skew;
const lost = document.querySelector("[data-lost]");
const light = document.querySelector("[data-live]");
const said = document.querySelector("[data-said]");
const listeners = [];
const followed = [];
let source = null;

// Only this origin, port and all, can read it; a notification's link finds the way back with it.
try { localStorage.setItem("place", place); } catch { /* a browser that keeps nothing */ }

export function say(text) { said.textContent = text; }
export function hear(listener) { listeners.push(listener); }

export function follow(kind, listener) {
  // What a page's own line tells besides records; a browser keeps few connections, so a page has one.
  const heard = (event) => listener(JSON.parse(event.data));
  followed.push([kind, heard]);
  source?.addEventListener(kind, heard);
}

export async function piece(path, options = {}) {
  // A part of a page, made and escaped by the server; nothing here builds HTML from text.
  const response = await fetch(place + path, {
    ...options, headers: { ...options.headers, "X-Piece": "1" }, credentials: "same-origin", redirect: "error",
  });
  if (response.status === 401) { signedOut(); throw new Error("signed out"); }
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  return { ok: response.ok, status: response.status, waiting: response.headers.get("x-waiting"), nodes: [...parsed.body.childNodes].map((node) => document.importNode(node, true)) };
}

export function singly(look) {
  // One look at a time; whoever asks while one is under way gets another after it, which may see more.
  let under = null;
  let again = false;
  return function ask() {
    if (under) { again = true; return under; }
    under = look().finally(() => { under = null; if (again) { again = false; ask(); } });
    return under;
  };
}

export async function rowsOf(path) {
  // Table rows need a table around them to be parsed.
  const response = await fetch(place + path, { headers: { "X-Piece": "1" }, credentials: "same-origin", redirect: "error" });
  if (!response.ok) return [];
  const parsed = new DOMParser().parseFromString(`<table><tbody>${await response.text()}</tbody></table>`, "text/html");
  return [...parsed.querySelectorAll("tr")].map((row) => document.importNode(row, true));
}

export function left(seconds) {
  if (seconds <= 0) return "expired";
  const whole = Math.floor(seconds);
  if (whole >= 86400) return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function tick() {
  for (const clock of document.querySelectorAll("[data-until]")) {
    const seconds = Number(clock.dataset.until) - now();
    const text = left(seconds);
    const shown = clock.querySelector("[data-left]");
    if (shown.textContent !== text) shown.textContent = text;
    clock.classList.toggle("soon", seconds < 60);
    if (seconds <= 0 && !clock.dataset.over) {
      clock.dataset.over = "1";
      clock.dispatchEvent(new CustomEvent("expired", { bubbles: true }));
    }
  }
}

export function count(number) {
  const badge = document.querySelector("[data-waiting]");
  badge.hidden = !number;
  badge.querySelector("[data-waiting-number]").textContent = String(number);
}

function signedOut() {
  lost.textContent = "You are signed out. Run `checkrein open` in a terminal to come back.";
  lost.hidden = false;
  light.className = "live off";
}

function listen() {
  source = new EventSource(body.dataset.line ?? `${place}/feed?after=${body.dataset.seq}`);
  source.onopen = () => {
    lost.hidden = true;
    light.className = "live on";
    light.title = "This page hears what happens";
    body.dataset.live = "1";
  };
  source.onerror = () => {
    light.className = "live off";
    delete body.dataset.live;
    if (source.readyState === EventSource.CLOSED) { signedOut(); return; }
    lost.textContent = "The connection is lost; trying again. Answers do not get through until it is back.";
    lost.hidden = false;
  };
  source.addEventListener("record", (event) => {
    const record = JSON.parse(event.data);
    for (const listener of listeners) listener(record);
  });
  source.addEventListener("reload", () => location.reload());
  for (const [kind, heard] of followed) source.addEventListener(kind, heard);
  addEventListener("pagehide", () => source.close());
}

addEventListener("storage", (event) => {
  // This browser signed in anew in another tab, after the server was started again: go on there.
  if (event.key === "place" && !body.dataset.live && /^\/at\/[\w-]+$/.test(event.newValue ?? "")) {
    location.replace(event.newValue + location.pathname.slice(place.length) + location.search + location.hash);
  }
});
setInterval(tick, 500);
tick();
// Only once the page's own script runs too, however long it takes to come: what is told before is told to nobody.
addEventListener("DOMContentLoaded", listen);

let waiting = Number(document.querySelector("[data-waiting-number]").textContent) || 0;
if (body.dataset.page !== "inbox") {
  hear((record) => {
    if (record.kind === "asked") { waiting += 1; say("A new question waits in the inbox."); }
    if (record.kind === "answered" && record.entry) waiting = Math.max(0, waiting - 1);
    count(waiting);
  });
}

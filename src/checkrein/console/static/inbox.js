// The inbox, live and by keys. Everything it shows comes as a piece of page from the server.

import { count, hear, piece, say } from "./console.js";

const list = document.querySelector("[data-cards]");
const settledList = document.querySelector("[data-settled-list]");
const empty = document.querySelector("[data-empty]");
const total = document.querySelector("[data-total]");
const several = document.querySelector("#several");
const keys = document.querySelector("[data-keys]");
const limit = Number(list.dataset.limit);
// A person who was moved to a card by an answer has to see it before a key can approve it.
const SEEN_MS = 400;
let arrivedAt = -Infinity;
let waiting = Number(list.dataset.number);

function cards() { return [...list.querySelectorAll("[data-question]")]; }
function current() { return document.activeElement?.closest?.("[data-question]") ?? null; }

function tally() {
  const number = Math.max(waiting, cards().length);
  count(number);
  empty.hidden = number > 0 || Boolean(list.querySelector("[data-settled]"));
  several.hidden = number < 2;
  total.textContent = number === 0 ? "Nothing waits for you" : number === 1 ? "1 question waits for you" : `${number} questions wait for you, oldest first`;
  document.title = `${number ? `(${number}) ` : ""}Inbox · Checkrein`;
}

function focus(card) {
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = cards();
  if (!all.length) return;
  const at = all.indexOf(current());
  focus(all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))]);
}

let filling = false;
let again = false;
async function fill() {
  // One look at a time; whoever asks meanwhile gets another.
  if (filling) { again = true; return; }
  filling = true;
  try {
    do {
      again = false;
      const known = cards().map((card) => card.dataset.question);
      const room = Math.max(0, limit - known.length);
      const found = await piece(`/inbox/more?room=${room}&known=${known.join(",")}`);
      if (!found.ok) break;
      waiting = Number(found.waiting);
      for (const node of found.nodes) {
        if (node.nodeType !== Node.ELEMENT_NODE || document.getElementById(node.id)?.dataset.question) continue;
        node.classList.add("fresh");
        list.append(node);
        say(`New question: ${node.querySelector("h2").textContent}`);
      }
    } while (again);
  } catch { /* the banner says it */ } finally { filling = false; tally(); }
}

async function refresh(id) {
  // What became of a question somebody else settled, or that ran out.
  const card = document.getElementById(`q-${id}`);
  if (!card?.dataset.question) return;
  try {
    const found = await piece(`/inbox/card/${id}`);
    const node = found.nodes.find((each) => each.nodeType === Node.ELEMENT_NODE);
    if (found.ok && node?.dataset.settled) settle(card, node);
  } catch { /* the banner says it */ }
}

function settle(card, node) {
  if (!card.isConnected || !card.dataset.question) return;
  const was = current() === card;
  const all = cards();
  const next = all[all.indexOf(card) + 1] ?? all[all.indexOf(card) - 1];
  say(node.textContent.trim().replace(/\s+/g, " "));
  card.replaceWith(node);
  waiting = Math.max(0, waiting - 1);
  if (was) { arrivedAt = performance.now(); if (next) focus(next); else node.focus(); }
  tally();
  picked();
  // It stays where it was for a moment, then goes to the others that are settled.
  setTimeout(() => { settledList.prepend(node); document.querySelector("[data-no-settled]").hidden = true; tally(); }, 4000);
  fill();
}

async function send(form, submitter) {
  const card = form.closest("[data-question]");
  if (card.classList.contains("busy")) return;
  card.classList.add("busy");
  const fields = new URLSearchParams(new FormData(form, submitter));
  try {
    const found = await piece(new URL(form.action).pathname.slice(document.body.dataset.place.length), { method: "POST", body: fields });
    const node = found.nodes.find((each) => each.nodeType === Node.ELEMENT_NODE);
    if (found.ok && node?.dataset.settled) { settle(card, node); return; }
    card.querySelector("[data-trouble]").replaceChildren(...found.nodes);
    if (!found.ok) refresh(card.dataset.question);
  } catch {
    card.querySelector("[data-trouble]").textContent = "Not sent: the connection is lost.";
  } finally { card.classList.remove("busy"); }
}

list.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-answer]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  send(form, event.submitter);
});

list.addEventListener("expired", (event) => {
  const card = event.target.closest("[data-question]");
  if (card) setTimeout(() => refresh(card.dataset.question), 300);
});

function press(card, key) {
  const button = card.querySelector(`[data-key="${key}"]`);
  if (key === "a" && performance.now() - arrivedAt < SEEN_MS) return;
  if (key === "a" && card.dataset.level === "red" && !card.dataset.armed) {
    // Twice for what cannot be taken back.
    card.dataset.armed = "1";
    card.querySelector("[data-hint]").textContent = "Press a again to approve";
    say("Dangerous. Press a again to approve.");
    setTimeout(() => { delete card.dataset.armed; const hint = card.querySelector("[data-hint]"); if (hint) hint.textContent = ""; }, 4000);
    return;
  }
  button.click();
}

function unfold(card, part) {
  const details = card.querySelector(`[data-unfold="${part}"]`);
  if (!details) return;
  details.open = true;
  details.querySelector("textarea, input:not([value='']), select")?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
  const card = current();
  if (event.key === "Escape" && card && typing) { typing.closest("details")?.removeAttribute("open"); focus(card); return; }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && card && typing) {
    typing.closest("details")?.querySelector("button[type=submit]")?.click();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || keys.open) return;
  const act = {
    j: () => step(1), k: () => step(-1), "?": () => keys.showModal(),
    a: () => card && press(card, "a"), d: () => card && press(card, "d"),
    m: () => card && unfold(card, "message"), e: () => card && unfold(card, "edit"), r: () => card && unfold(card, "remember"),
    x: () => { const box = card?.querySelector(".pick input"); if (box) { box.checked = !box.checked; picked(); } },
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});

list.addEventListener("toggle", (event) => {
  // Who opens it means to remember the least there is; who closes it means nothing.
  if (!event.target.matches('[data-unfold="remember"]')) return;
  const choices = event.target.querySelectorAll("[name=remember]");
  choices[event.target.open && choices.length > 1 ? 1 : 0].checked = true;
}, true);

function picked() {
  // Answers for many show themselves once there are many to answer.
  const number = list.querySelectorAll(".pick input:checked").length;
  several.querySelector("[data-bulk]").hidden = number === 0;
  several.querySelector("[data-picked]").textContent = number === 0 ? "Choose some to answer them at once" : `${number} chosen:`;
}
list.addEventListener("change", picked);
picked();

const help = document.querySelector("[data-help]");
help.hidden = false;
help.addEventListener("click", () => keys.showModal());
document.querySelector("[data-all]").addEventListener("change", (event) => {
  for (const box of list.querySelectorAll(".pick input")) box.checked = event.target.checked;
  picked();
});

hear((record) => {
  if (record.kind === "asked") fill();
  if (record.kind === "answered" && record.entry) {
    if (document.getElementById(`q-${record.entry}`)?.dataset.question) refresh(record.entry);
    else fill();
  }
});
if (location.hash) focus(document.querySelector(location.hash.replace(/[^#\w-]/g, "")));

// The inbox, live and by keys. Everything it shows comes as a piece of page from the server.

import { answerKeys, arrived, focus, step, typedIn, watchAnswers, whileTyping } from "./answering.js";
import { count, hear, piece, say, singly } from "./console.js";

const list = document.querySelector("[data-cards]");
const settledList = document.querySelector("[data-settled-list]");
const empty = document.querySelector("[data-empty]");
const total = document.querySelector("[data-total]");
const several = document.querySelector("#several");
const keys = document.querySelector("[data-keys]");
const limit = Number(list.dataset.limit);
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

// Settled since the look began that may still bring its card.
const settledSince = new Set();
const fill = singly(async () => {
  settledSince.clear();
  try {
    const known = cards().map((card) => card.dataset.question);
    const room = Math.max(0, limit - known.length);
    const found = await piece(`/inbox/more?room=${room}&known=${known.join(",")}`);
    if (!found.ok) throw new Error("not now");
    waiting = Number(found.waiting);
    for (const node of found.nodes) {
      if (node.nodeType !== Node.ELEMENT_NODE || document.getElementById(node.id)?.dataset.question) continue;
      node.classList.add("fresh");
      list.append(node);
      say(`New question: ${node.querySelector("h2").textContent}`);
      if (settledSince.has(node.dataset.question)) refresh(node.dataset.question);
    }
  } catch { later(fill); } finally { tally(); }
});

function later(look) {
  // What was told once is not told again: a look that failed is taken again, on a line that is there.
  setTimeout(() => (document.body.dataset.live ? look() : later(look)), 1000);
}

async function refresh(id) {
  // What became of a question somebody else settled, or that ran out.
  const card = document.getElementById(`q-${id}`);
  if (!card?.dataset.question) return;
  try {
    const found = await piece(`/inbox/card/${id}`);
    const node = found.nodes.find((each) => each.nodeType === Node.ELEMENT_NODE);
    if (found.ok && node?.dataset.settled) settle(card, node);
    else if (found.status >= 500) throw new Error("not now");
  } catch { later(() => refresh(id)); }
}

function settle(card, node) {
  if (!card.isConnected || !card.dataset.question) return;
  const was = current() === card;
  const all = cards();
  const next = all[all.indexOf(card) + 1] ?? all[all.indexOf(card) - 1];
  say(node.textContent.trim().replace(/\s+/g, " "));
  card.replaceWith(node);
  waiting = Math.max(0, waiting - 1);
  if (was) { arrived(); if (next) focus(next); else node.focus(); }
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

async function reveal(card) {
  // The masked call stays beside the page and comes back; what was revealed is kept nowhere.
  const link = card?.querySelector("[data-reveal]");
  const call = card?.querySelector("[data-call]");
  if (!link || link.dataset.busy) return;
  if (call.masked) { call.replaceChildren(...call.masked); delete call.masked; return; }
  link.dataset.busy = "1";
  try {
    const found = await piece(`/inbox/call/${card.dataset.question}`);
    if (!found.ok) { card.querySelector("[data-trouble]").replaceChildren(...found.nodes); return; }
    call.masked = [...call.childNodes];
    call.replaceChildren(...found.nodes);
    say("Secrets are shown.");
  } catch {
    card.querySelector("[data-trouble]").textContent = "The secrets cannot be shown: the connection is lost.";
  } finally { delete link.dataset.busy; }
}
list.addEventListener("click", (event) => {
  const link = event.target.closest("[data-reveal]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  reveal(link.closest("[data-question]"));
});

watchAnswers(list, send);
list.addEventListener("expired", (event) => {
  const card = event.target.closest("[data-question]");
  if (card) setTimeout(() => refresh(card.dataset.question), 300);
});

document.addEventListener("keydown", (event) => {
  const typing = typedIn(event);
  const card = current();
  if (whileTyping(event, card, typing)) return;
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || keys.open) return;
  const act = {
    ...answerKeys(card, "approve"), v: () => reveal(card),
    j: () => step(cards(), card, 1), k: () => step(cards(), card, -1), "?": () => keys.showModal(),
    x: () => { const box = card?.querySelector(".pick input"); if (box) { box.checked = !box.checked; picked(); } },
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});

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
    else { settledSince.add(record.entry); fill(); }
  }
});
if (location.hash) focus(document.querySelector(location.hash.replace(/[^#\w-]/g, "")));

// Calls that wait for an answer, in the conversation: answered by a click or by the keys of the inbox.

import { say } from "./console.js";
import { pathOf, post, sent } from "./chat_page.js";

// A person who was moved to a card by an answer has to see it before a key can allow it.
const SEEN_MS = 400;
const all = document.querySelector("[data-all-waiting]");
const keys = document.querySelector("[data-keys]");
const text = document.querySelector("[data-text]");
let arrivedAt = -Infinity;
let scroll = null;
let refresh = null;

const cards = () => [...scroll.querySelectorAll('[data-card][data-state="waiting"]')];
const current = () => document.activeElement?.closest?.("[data-card]") ?? null;

export function waiting() {
  const found = cards();
  const dangerous = found.some((each) => each.dataset.level === "red");
  all.hidden = found.length < 2;
  all.querySelector("[data-waiting-text]").textContent = `${found.length} calls wait for you.`;
  // What cannot be taken back is looked at one by one.
  all.querySelector("[value=approved]").hidden = dangerous;
  document.body.dataset.waitingCalls = found.length;
}

export function keepCards(old, node) {
  for (const card of node.querySelectorAll("[data-card]")) {
    const before = [...old.querySelectorAll("[data-card]")].find((each) => each.dataset.card === card.dataset.card);
    if (before && before.dataset.mark === card.dataset.mark) card.replaceWith(before);
  }
}

function focus(card) {
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const found = cards();
  if (!found.length) return;
  const at = found.indexOf(current());
  focus(found[at < 0 ? 0 : Math.min(found.length - 1, Math.max(0, at + by))]);
}

async function answer(form, submitter) {
  const card = form.closest("[data-card]");
  if (card.classList.contains("busy")) return;
  card.classList.add("busy");
  const found = await post(pathOf(form), sent(form, submitter));
  card.classList.remove("busy");
  if (found.ok) { arrivedAt = performance.now(); say(found.text); return; }
  card.querySelector("[data-trouble]").replaceChildren(...found.nodes);
  if (!found.nodes.length) card.querySelector("[data-trouble]").textContent = found.text;
}

function press(card, key) {
  if (key === "a" && performance.now() - arrivedAt < SEEN_MS) return;
  if (key === "a" && card.dataset.level === "red" && !card.dataset.armed) {
    // Twice for what cannot be taken back.
    card.dataset.armed = "1";
    card.querySelector("[data-hint]").textContent = "Press a again to allow";
    say("Dangerous. Press a again to allow.");
    setTimeout(() => { delete card.dataset.armed; const hint = card.querySelector("[data-hint]"); if (hint) hint.textContent = ""; }, 4000);
    return;
  }
  card.querySelector(`[data-key="${key}"]`)?.click();
}

function unfold(card, part) {
  const details = card.querySelector(`[data-unfold="${part}"]`);
  if (!details) return;
  details.open = true;
  details.querySelector("textarea, input:not([value='']), select")?.focus();
}

function pressed(event) {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select");
  const card = current();
  if (event.key === "Escape" && typing && card) { typing.closest("details")?.removeAttribute("open"); focus(card); return; }
  if (event.key === "Escape" && typing === text) { if (cards().length) focus(cards()[0]); else scroll.focus(); return; }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && card && typing) {
    typing.closest("details")?.querySelector("button[type=submit]")?.click();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const asks = card?.dataset.state === "waiting" ? card : null;
  const act = {
    j: () => step(1), k: () => step(-1), "?": () => keys.showModal(), c: () => text.focus(),
    "/": () => document.querySelector("[data-search] input").focus(),
    s: () => { const stop = document.querySelector("[data-stop]"); if (!stop.hidden) stop.click(); },
    a: () => asks && press(asks, "a"), d: () => asks && press(asks, "d"),
    m: () => asks && unfold(asks, "message"), e: () => asks && unfold(asks, "edit"), r: () => asks && unfold(asks, "remember"),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
}

export function watchCards(inside, again) {
  scroll = inside;
  refresh = again;
  scroll.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-answer]");
    if (!form || !event.submitter) return;
    event.preventDefault();
    answer(form, event.submitter);
  });
  scroll.addEventListener("expired", () => setTimeout(refresh, 300));
  scroll.addEventListener("toggle", (event) => {
    // Who opens it means to remember the least there is; who closes it means nothing.
    if (!event.target.matches('[data-unfold="remember"]')) return;
    const choices = event.target.querySelectorAll("[name=remember]");
    choices[event.target.open && choices.length > 1 ? 1 : 0].checked = true;
  }, true);
  all.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = sent(all, event.submitter);
    for (const each of cards()) fields.append("pick", each.dataset.card);
    const found = await post(pathOf(all), fields);
    say(found.text);
    if (!found.ok) refresh();
  });
  document.addEventListener("keydown", pressed);
  const help = document.querySelector("[data-help]");
  help.hidden = false;
  help.addEventListener("click", () => keys.showModal());
}

// Cards that wait for an answer, in the inbox and in a conversation: moved between and answered by the same keys.

import { say } from "./console.js";

// A person who was moved to a card by an answer has to see it before a key can allow it.
const SEEN_MS = 400;
let arrivedAt = -Infinity;

export function arrived() { arrivedAt = performance.now(); }

export function focus(card) {
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}

export function step(cards, current, by) {
  if (!cards.length) return;
  const at = cards.indexOf(current);
  focus(cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + by))]);
}

function press(card, key, allow) {
  if (key === "a" && performance.now() - arrivedAt < SEEN_MS) return;
  if (key === "a" && card.dataset.level === "red" && !card.dataset.armed) {
    // Twice for what cannot be taken back.
    card.dataset.armed = "1";
    card.querySelector("[data-hint]").textContent = `Press a again to ${allow}`;
    say(`Dangerous. Press a again to ${allow}.`);
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

export function typedIn(event) { return event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select"); }

export function whileTyping(event, card, typing) {
  // Escape leaves what a card unfolded, Ctrl+Enter sends it; whether it was one of them.
  if (!card || !typing) return false;
  if (event.key === "Escape") { typing.closest("details")?.removeAttribute("open"); focus(card); return true; }
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return false;
  typing.closest("details")?.querySelector("button[type=submit]")?.click();
  return true;
}

export function answerKeys(card, allow) {
  return {
    a: () => card && press(card, "a", allow), d: () => card && press(card, "d", allow),
    m: () => card && unfold(card, "message"), e: () => card && unfold(card, "edit"), r: () => card && unfold(card, "remember"),
  };
}

export function watchAnswers(inside, send) {
  inside.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-answer]");
    if (!form || !event.submitter) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  inside.addEventListener("toggle", (event) => {
    // Who opens it means to remember the least there is; who closes it means nothing.
    if (!event.target.matches('[data-unfold="remember"]')) return;
    const choices = event.target.querySelectorAll("[name=remember]");
    choices[event.target.open && choices.length > 1 ? 1 : 0].checked = true;
  }, true);
}

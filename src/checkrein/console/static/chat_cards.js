// Calls that wait for an answer, in the conversation: answered by a click or by the keys of the inbox.

import { answerKeys, arrived, focus, step, typedIn, watchAnswers, whileTyping } from "./answering.js";
import { say } from "./console.js";
import { pathOf, post, sent } from "./chat_page.js";

const all = document.querySelector("[data-all-waiting]");
const keys = document.querySelector("[data-keys]");
const text = document.querySelector("[data-text]");
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

async function answer(form, submitter) {
  const card = form.closest("[data-card]");
  if (card.classList.contains("busy")) return;
  card.classList.add("busy");
  const found = await post(pathOf(form), sent(form, submitter));
  card.classList.remove("busy");
  if (found.ok) { arrived(); say(found.text); return; }
  card.querySelector("[data-trouble]").replaceChildren(...found.nodes);
  if (!found.nodes.length) card.querySelector("[data-trouble]").textContent = found.text;
}

function pressed(event) {
  if (document.querySelector("dialog[open]")) return;
  const typing = typedIn(event);
  const card = current();
  if (whileTyping(event, card, typing)) return;
  if (event.key === "Escape" && typing === text) { if (cards().length) focus(cards()[0]); else scroll.focus(); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const asks = card?.dataset.state === "waiting" ? card : null;
  const act = {
    ...answerKeys(asks, "allow"),
    j: () => step(cards(), card, 1), k: () => step(cards(), card, -1), "?": () => keys.showModal(), c: () => text.focus(),
    "/": () => document.querySelector("[data-search] input").focus(),
    s: () => { const stop = document.querySelector("[data-stop]"); if (!stop.hidden) stop.click(); },
  }[event.key];
  if (act) { event.preventDefault(); act(); }
}

export function watchCards(inside, again) {
  scroll = inside;
  refresh = again;
  watchAnswers(scroll, answer);
  scroll.addEventListener("expired", () => setTimeout(refresh, 300));
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

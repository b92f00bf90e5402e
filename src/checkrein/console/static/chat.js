// A conversation, live: what its line tells is put in its place. Everything it shows comes from the server as
// a piece of page; nothing here builds HTML from text.

import { follow, piece, say, singly } from "./console.js";
import { alerts, tainted } from "./chat_alerts.js";
import { keepCards, waiting, watchCards } from "./chat_cards.js";
import { compose, idle, busy, trouble } from "./chat_compose.js";
import { dialogs, gauge } from "./chat_dialogs.js";
import { lists, refreshList } from "./chat_list.js";
import { bottom, elements, followEnd, holding, post } from "./chat_page.js";

const LONGEST_LOOK = 20_000;
const SUMMARY = "[data-compressed] details";
const id = document.body.dataset.chat;
const scroll = document.querySelector("[data-scroll]");
const title = document.querySelector("[data-title]");
const persona = document.querySelector("[data-persona]");
const conversation = () => scroll.querySelector("[data-conversation]");
const message = (name) => document.getElementById(`m-${name}`);
let head = conversation()?.dataset.head ?? "";
let run = "";
// Another answer is being written beside one there is: which of how many is known when it is kept.
let branching = false;

function begin(name) {
  run = name;
  busy(name);
  conversation().querySelector("[data-unanswered]")?.remove();
}

function end() {
  run = "";
  idle();
  for (const each of conversation().querySelectorAll(".said.streaming")) {
    each.querySelector("[data-writing]")?.remove();
    if (!each.querySelector("[data-parts]").childElementCount) each.remove();
  }
  waiting();
  gauge();
  refreshList();
  if (branching) { branching = false; refresh(); }
}

function put(node) {
  // A message as it is now, in its old place or at the end. Cards somebody answers in stay as they are.
  const old = message(node.dataset.message);
  const stays = bottom(scroll);
  if (old) {
    holding(() => { keepCards(old, node); keepOpen(old, node); old.replaceWith(node); });
    followEnd(scroll, stays);
    return;
  }
  conversation().querySelector("[data-nothing]")?.remove();
  conversation().append(node);
  followEnd(scroll, stays || node.dataset.role === "user");
}

function keepOpen(old, node) {
  const before = [...old.querySelectorAll("details.reasoning")];
  [...node.querySelectorAll("details.reasoning")].forEach((each, at) => { if (before[at]?.open) each.open = true; });
}

// What is told while a look is under way comes after it: what was seen may be older, and must not take its place.
let looking = false;
const held = [];
function told(kind, listener) {
  follow(kind, (data) => { if (looking) held.push(() => listener(data)); else listener(data); });
}

// All of it anew; what has not changed stays, with whatever was typed there.
const refresh = singly(async () => {
  looking = true;
  try { await look(); } finally { looking = false; for (const each of held.splice(0)) each(); }
});

let missed = 0;
async function look() {
  // What is told waits for it, so it must not take for ever.
  const ends = new AbortController();
  const patience = setTimeout(() => ends.abort(), LONGEST_LOOK);
  const found = await piece(`/chat/${id}/conversation?count=${conversation().dataset.count}`, { signal: ends.signal }).catch(() => null);
  clearTimeout(patience);
  const fresh = found?.ok && elements(found.nodes)[0];
  if (!fresh) {
    // Nothing else may happen that would make us look again.
    if (missed < 5) setTimeout(refresh, 500 * ++missed);
    return;
  }
  missed = 0;
  const stays = bottom(scroll);
  holding(() => patch(conversation(), fresh));
  head = fresh.dataset.head;
  followEnd(scroll, stays);
  state();
}

function patch(old, fresh) {
  // What has not changed is not touched: somebody may be about to click it.
  for (const name of Object.keys(fresh.dataset)) old.dataset[name] = fresh.dataset[name];
  if (old.querySelector(SUMMARY)?.open) fresh.querySelector(SUMMARY)?.setAttribute("open", "");
  for (const each of [...old.children]) if (!each.matches("[data-message], [data-notice]")) each.remove();
  let next = old.firstElementChild;
  for (const node of [...fresh.children]) {
    const before = node.dataset.message ? message(node.dataset.message) : null;
    const same = before && before.dataset.mark === node.dataset.mark && node.classList.contains("completed");
    if (same && before === next) { next = next.nextElementSibling; continue; }
    if (before && !same) { keepCards(before, node); keepOpen(before, node); }
    if (before === next) next = next?.nextElementSibling ?? null;
    if (before && !same) before.remove();
    old.insertBefore(same ? before : node, next);
  }
  while (next) { const gone = next; next = next.nextElementSibling; if (gone.dataset.message) gone.remove(); }
}

function state() {
  const name = conversation().dataset.run;
  if (name) begin(name); else if (run) end(); else idle();
  waiting();
}

const detached = () => Boolean(conversation().dataset.detached);

function blocks(data) {
  const owner = message(data.message);
  if (!owner) { refresh(); return; }
  const parts = owner.querySelector("[data-parts]");
  let part = [...parts.children].find((each) => each.dataset.part === String(data.part));
  if (!part) {
    part = made(data);
    const later = [...parts.children].find((each) => Number(each.dataset.part) > data.part);
    parts.insertBefore(part, later ?? null);
  }
  const place = data.kind === "reasoning" ? part.querySelector(".md") : part;
  if (place.childElementCount < data.first) { refresh(); return; }
  const stays = bottom(scroll);
  while (place.childElementCount > data.first) place.lastElementChild.remove();
  const parsed = new DOMParser().parseFromString(data.html, "text/html");
  place.append(...[...parsed.body.children].map((each) => document.importNode(each, true)));
  followEnd(scroll, stays);
}

function made(data) {
  const words = document.createElement("div");
  words.className = "md";
  if (data.kind !== "reasoning") { words.dataset.part = data.part; return words; }
  const box = document.createElement("details");
  box.className = "reasoning";
  box.dataset.part = data.part;
  const summary = document.createElement("summary");
  summary.textContent = "Reasoning";
  box.append(summary, words);
  return box;
}

function card(data) {
  const node = only(data.html);
  const old = [...scroll.querySelectorAll("[data-card]")].find((each) => each.dataset.card === data.key);
  const stays = bottom(scroll);
  if (old) {
    if (old.dataset.mark === node.dataset.mark) return;
    const held = old.contains(document.activeElement);
    old.replaceWith(node);
    if (held) { const next = scroll.querySelector('[data-card][data-state="waiting"]'); (next ?? node).focus({ preventScroll: Boolean(!next) }); }
  } else {
    const owner = message(data.message);
    if (!owner) { refresh(); return; }
    owner.querySelector("[data-parts]").append(node);
  }
  followEnd(scroll, stays);
  if (data.asks) say(`${data.tool} waits for your answer.`);
  waiting();
}

function only(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return document.importNode(parsed.body.firstElementChild, true);
}

function saved(data) {
  const known = message(data.id);
  const follows = data.parent === head;
  if (data.html && !known && !follows) { refresh(); return; }
  // Which branch it is was known already; what comes along does not say it.
  if (known?.querySelector("[data-branch]")) branching = true;
  if (data.html) put(only(data.html));
  if (follows) head = data.id;
  else if (!data.html && !known) refresh();
  waiting();
}

function rewound(to) {
  // Something further up is answered anew, perhaps from another tab: what followed it makes room.
  const later = [...conversation().children].slice([...conversation().children].indexOf(message(to)) + 1).filter((each) => each.dataset.message);
  if (!message(to) || !later.length) return;
  for (const each of later) each.remove();
  head = to;
  branching = true;
}

function attached(listener) { return (data) => { if (!detached()) listener(data); }; }

if (id) {
  told("started", (data) => {
    if (data.run !== run && data.user_message !== head) { branching = true; refresh(); }
    begin(data.run);
    persona.hidden = !data.persona;
    persona.textContent = data.persona;
    persona.title = data.routed;
  });
  told("begun", attached((data) => { if (!message(data.message)) put(only(data.html)); }));
  told("blocks", attached(blocks));
  told("card", attached(card));
  told("saved", attached(saved));
  told("session", (data) => {
    title.textContent = data.title;
    document.title = `${data.title} · Checkrein`;
    refreshList();
    tainted(data.tainted);
    if (data.head !== head && !run && !detached()) rewound(data.head);
    if (data.head !== head) setTimeout(() => { if (data.head !== head && !run) refresh(); }, 400);
  });
  told("usage", gauge);
  told("compressed", () => { refresh(); gauge(); });
  told("notice", (data) => notice(data.text, data.level));
  told("trouble", (data) => {
    end();
    alerts();
    say(data.text);
    // What broke off says so itself, and can be tried again there.
    if (conversation().querySelector("article:last-of-type > [data-error]")?.textContent !== data.text) notice(data.text, "bad", data.retry);
  });
  told("aborted", () => { end(); say("Stopped."); refresh(); });
  told("end", () => { end(); say("The answer is complete."); });
  told("fresh", () => { refresh(); gauge(); alerts(); });
  told("gone", () => location.replace(`${document.body.dataset.place}/chat`));
  watchCards(scroll, refresh);
  state();
  gauge();
  shown();
}

function notice(text, level, retry) {
  // The last of them, below what was said; gone with the next answer.
  for (const each of scroll.querySelectorAll("[data-notice]")) each.remove();
  const line = document.createElement("p");
  line.className = level === "bad" ? "told bad" : "notice";
  line.dataset.notice = level;
  line.textContent = text;
  if (retry) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.dataset.retryLast = "";
    button.textContent = "Retry";
    line.append(" ", button);
  }
  const stays = bottom(scroll);
  conversation().append(line);
  followEnd(scroll, stays);
}

function shown() {
  const wanted = /^#m-[\w-]+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
  if (wanted) { wanted.scrollIntoView({ block: "center" }); wanted.classList.add("sought"); wanted.focus({ preventScroll: true }); }
  else if (!detached()) scroll.scrollTop = scroll.scrollHeight;
}

async function act(path, fields) {
  trouble("");
  for (const each of scroll.querySelectorAll("[data-notice]")) each.remove();
  branching = path === "regenerate";
  const found = await post(`/chat/${id}/${path}`, fields);
  if (!found.ok) { branching = false; trouble(found.text); } else await refresh();
  return found.ok;
}

scroll.addEventListener("click", async (event) => {
  const button = event.target.closest("button, a[data-earlier]");
  const owner = event.target.closest("[data-message]");
  if (!button) return;
  if (button.matches("[data-copy-code]")) copy(button.closest("figure").querySelector("code").textContent, button);
  else if (button.matches("[data-copy]")) copy(whole(owner), button);
  else if (button.matches("[data-retry]")) act("regenerate", { message: owner.dataset.message });
  else if (button.matches("[data-retry-last]")) act("regenerate", {});
  else if (button.matches("[data-choose]")) act("choose", { message: button.dataset.choose });
  else if (button.matches("[data-edit]")) edit(owner);
  else if (button.matches("[data-earlier]")) { event.preventDefault(); earlier(button); }
});

function whole(owner) {
  // A turn of a model's is several messages: all it said since the last question.
  const texts = [owner.dataset.source];
  for (let each = owner.previousElementSibling; owner.dataset.role === "assistant" && each?.dataset.role === "assistant"; each = each.previousElementSibling) texts.unshift(each.dataset.source);
  return texts.filter(Boolean).join("\n\n");
}

async function copy(text, button) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; say("Copied."); }
  catch { button.textContent = "Not copied"; }
  setTimeout(() => { button.textContent = before; }, 1500);
}

function edit(owner) {
  if (owner.querySelector("[data-editing]")) return;
  const form = document.querySelector("[data-edit-form]").content.firstElementChild.cloneNode(true);
  const field = form.querySelector("textarea");
  field.value = owner.dataset.source;
  const close = () => { form.remove(); owner.querySelector("[data-parts]").hidden = false; owner.querySelector("[data-edit]")?.focus(); };
  form.querySelector("[data-cancel]").addEventListener("click", close);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); close(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const found = await post(`/chat/${id}/edit`, { message: owner.dataset.message, text: field.value });
    if (found.ok) { close(); refresh(); } else form.querySelector("[data-trouble]").textContent = found.text;
  });
  owner.querySelector("[data-parts]").hidden = true;
  owner.querySelector("[data-parts]").after(form);
  field.focus();
}

async function earlier(link) {
  const found = await piece(`/chat/${id}/conversation?before=${encodeURIComponent(link.dataset.earlier)}`).catch(() => null);
  const more = found?.ok && elements(found.nodes)[0];
  if (!more) return;
  const before = scroll.scrollHeight;
  const anew = [...more.children].filter((each) => each.matches("[data-message], [data-compressed]") || each.querySelector("[data-earlier]"));
  link.parentElement.replaceWith(...anew);
  conversation().dataset.count = Number(conversation().dataset.count) + Number(more.dataset.count);
  scroll.scrollTop += scroll.scrollHeight - before;
  anew.find((each) => each.matches("[data-message]"))?.focus({ preventScroll: true });
}

document.querySelector("[data-stop]").addEventListener("click", async () => {
  const found = await post(`/chat/${id}/stop`, { run });
  if (!found.ok) trouble(found.text);
});

lists(id);
compose(id);
dialogs(id, refresh);

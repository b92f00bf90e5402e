// The composer: writing, attaching, choosing a model, sending; what is not sent yet survives a reload.

import { say } from "./console.js";
import { inBase64, megabytes, post } from "./chat_page.js";
import { gauge } from "./chat_dialogs.js";

const form = document.querySelector("[data-composer]");
const text = form.querySelector("[data-text]");
const files = form.querySelector("[data-files]");
const chips = form.querySelector("[data-chips]");
const held = form.querySelector("[data-attachments]");
const stop = form.querySelector("[data-stop]");
const send = form.querySelector("[data-send]");
const model = form.querySelector("[data-model]");
// What goes with one message: bytes of a file, of all files, and letters of the form they are sent in.
const [LARGEST, TOGETHER, LETTERS] = ["largest", "together", "letters"].map((name) => Number(form.dataset[name]));
let attachments = [];
let draft = "draft";

export function trouble(said) { form.querySelector("[data-trouble]").textContent = said; }
export function busy(run) { stop.hidden = false; send.hidden = true; document.body.dataset.run = run; }
export function idle() { stop.hidden = true; send.hidden = false; delete document.body.dataset.run; }

export function attach(what, label) {
  attachments.push(what);
  const chip = document.createElement("span");
  chip.className = "chip";
  chip.textContent = label;
  const away = document.createElement("button");
  away.type = "button";
  away.className = "quiet small";
  away.textContent = "✕";
  away.setAttribute("aria-label", `Do not attach ${label}`);
  away.addEventListener("click", () => { attachments = attachments.filter((each) => each !== what); chip.remove(); keep(); text.focus(); });
  chip.append(away);
  chips.append(chip);
  keep();
  say(`${label} is attached.`);
}

function keep() { held.value = attachments.length ? JSON.stringify(attachments) : ""; }

function carried() {
  // Bytes: three for four letters, without those that only fill up.
  return attachments.reduce((sum, each) => sum + Math.floor((each.data ?? "").split("=", 1)[0].length * 3 / 4), 0);
}

function fits() {
  // Words take more letters on their way than they have.
  const letters = new URLSearchParams({ text: text.value, attachments: held.value }).toString().length;
  if (letters + 1_000 < LETTERS) return true;
  trouble("This is too much for one message. Take a file away, or say it in two.");
  return false;
}

async function take(list) {
  for (const file of list) {
    const name = file.name || "pasted";
    if (file.size > LARGEST) { trouble(`${name} is larger than ${megabytes(LARGEST)}.`); continue; }
    if (carried() + file.size > TOGETHER) { trouble(`${name} does not fit: ${megabytes(TOGETHER)} of files go with one message.`); continue; }
    let data = "";
    try { data = await inBase64(file); } catch { trouble(`${name} cannot be read.`); continue; }
    attach({ name, mime_type: file.type || "text/plain", data }, name);
  }
}

function grow() {
  text.rows = Math.min(12, Math.max(1, text.value.split("\n").length, Math.ceil(text.value.length / 90)));
}

function remember() { try { sessionStorage.setItem(draft, text.value); } catch { /* a browser that keeps nothing */ } }

let counting = 0;
function typed() {
  grow();
  remember();
  clearTimeout(counting);
  counting = setTimeout(() => gauge(text.value), 500);
}

async function submit(id) {
  if (!text.value.trim() && !attachments.length) return;
  trouble("");
  if (!fits()) return;
  // The field is free at once: what is written while this is on its way is the next message, and stays.
  const fields = { text: text.value, attachments: held.value };
  const away = { files: attachments, chips: [...chips.children] };
  text.value = "";
  attachments = [];
  chips.replaceChildren();
  keep();
  grow();
  send.disabled = true;
  const found = await post(`/chat/${id}/send`, fields);
  send.disabled = false;
  if (!found.ok) {
    text.value = [fields.text, text.value].filter(Boolean).join("\n");
    attachments = [...away.files, ...attachments];
    chips.prepend(...away.chips);
    keep();
    trouble(found.text);
  } else {
    for (const each of document.querySelectorAll("[data-notice]")) each.remove();
  }
  typed();
}

export function compose(id) {
  draft = `draft ${id ?? ""}`;
  try { if (!text.value) text.value = sessionStorage.getItem(draft) ?? ""; } catch { /* as above */ }
  grow();
  text.addEventListener("input", typed);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!send.hidden && !send.disabled) form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    if (!id) {
      if (!text.value.trim() && !attachments.length) { event.preventDefault(); text.focus(); return; }
      if (!fits()) { event.preventDefault(); return; }
      try { sessionStorage.removeItem(draft); } catch { /* as above */ }
      return;
    }
    event.preventDefault();
    submit(id);
  });
  const open = form.querySelector("[data-attach]");
  open.hidden = false;
  open.addEventListener("click", () => files.click());
  files.addEventListener("change", () => { take([...files.files]); files.value = ""; });
  text.addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length) { event.preventDefault(); take(pasted); }
  });
  for (const kind of ["dragover", "drop"]) {
    document.querySelector(".talk").addEventListener(kind, (event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
      event.preventDefault();
      if (kind === "drop") take([...event.dataTransfer.files]);
    });
  }
  model.addEventListener("change", async () => {
    if (!id) return;
    const found = await post(`/chat/${id}/change`, { model: model.value });
    trouble(found.ok ? "" : found.text);
    form.querySelector("[data-unknown]")?.remove();
    const about = model.selectedOptions[0]?.dataset.about ?? "";
    if (found.ok) { say(`${model.value} answers from now on. ${about}`); gauge(text.value); }
  });
}

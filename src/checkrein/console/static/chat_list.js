// The list of conversations: found, renamed, pinned, coloured, put away; a drawer where the page is narrow.

import { piece, say } from "./console.js";
import { inBase64, megabytes, pathOf, post, sent } from "./chat_page.js";

const drawer = document.querySelector("[data-drawer]");
const list = document.querySelector("[data-list]");
const search = document.querySelector("[data-search]");
const field = search.querySelector("input");
const opener = document.querySelector("[data-drawer-open]");
const closer = document.querySelector("[data-drawer-close]");
let id = "";
let count = "";
let asked = 0;
// Whether there is something new that is shown as soon as nothing is in hand.
let late = false;

// Whether somebody renames one, or has its menu open.
function inHand() {
  return list.querySelector("details[open], [data-rename]:not([hidden])") !== null;
}

export async function refreshList() {
  late = inHand();
  if (!late) await show(inHand);
}

function letGo() {
  if (late && !inHand()) refreshList();
}

async function show(waits = () => false) {
  const number = ++asked;
  const query = new URLSearchParams({ open: id ?? "" });
  if (field.value.trim()) query.set("q", field.value.trim());
  if (list.dataset.archived) query.set("archived", "1");
  if (count) query.set("count", count);
  const found = await piece(`/chat/list?${query}`).catch(() => null);
  // What was typed later is shown, also where its answer came first.
  if (!found?.ok || number !== asked) return;
  late = waits();
  if (!late) list.replaceChildren(...found.nodes);
}

function rename(row, on) {
  const form = row.querySelector("[data-rename]");
  form.hidden = !on;
  row.querySelector("a").hidden = on;
  row.querySelector("details.menu").open = false;
  row.querySelector("details.menu").hidden = on;
  const input = form.querySelector("input");
  if (on) { input.focus(); input.select(); } else { input.value = input.defaultValue; row.querySelector("a").focus(); letGo(); }
}

function drawn(open) {
  drawer.classList.toggle("open", open);
  opener.setAttribute("aria-expanded", String(open));
  if (open) field.focus(); else opener.focus();
}

async function changed(form, submitter) {
  const found = await post(pathOf(form), sent(form, submitter));
  say(found.ok ? "Done." : found.text);
  if (!found.ok) { alertIn(form, found.text); return; }
  await show();
}

function alertIn(form, text) {
  const line = document.createElement("p");
  line.className = "told bad";
  line.setAttribute("role", "alert");
  line.textContent = text;
  form.after(line);
}

async function importing(form) {
  const chosen = form.querySelector("[data-import-file]").files[0];
  if (!chosen) { form.submit(); return; }
  const most = Number(form.dataset.largest);
  if (chosen.size > most) { form.querySelector("[data-trouble]").textContent = `${chosen.name} is larger than ${megabytes(most)}, the most that can be imported.`; return; }
  let data = "";
  try { data = await inBase64(chosen); } catch { form.querySelector("[data-trouble]").textContent = `${chosen.name} cannot be read.`; return; }
  const file = document.createElement("input");
  file.type = "hidden";
  file.name = "file";
  file.value = data;
  form.querySelector("[name=text]").value = "";
  if (/\.md$/i.test(chosen.name)) form.querySelector("[name=form]").value = "markdown";
  form.append(file);
  form.submit();
}

export function lists(open) {
  id = open ?? "";
  opener.hidden = false;
  closer.hidden = false;
  opener.addEventListener("click", () => drawn(!drawer.classList.contains("open")));
  closer.addEventListener("click", () => drawn(false));
  drawer.addEventListener("keydown", (event) => { if (event.key === "Escape" && drawer.classList.contains("open")) drawn(false); });
  let typing = 0;
  field.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => show(), 180); });
  search.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(typing);
    await show();
    list.querySelector("[data-hit]")?.click();
  });
  list.addEventListener("click", (event) => {
    const found = event.target.closest("button, a");
    const row = event.target.closest("[data-session]");
    if (found?.matches("[data-rename-begin]")) rename(row, true);
    if (found?.matches("[data-search-end]")) { event.preventDefault(); field.value = ""; show(); field.focus(); }
    if (found?.matches("[data-archive]")) { event.preventDefault(); list.dataset.archived = found.dataset.archive; count = ""; show(); }
    if (found?.matches("[data-more-sessions]")) { event.preventDefault(); count = found.dataset.moreSessions; show(); }
  });
  list.addEventListener("dblclick", (event) => { const row = event.target.closest("[data-session]"); if (row) { event.preventDefault(); rename(row, true); } });
  list.addEventListener("keydown", (event) => {
    const row = event.target.closest("[data-session]");
    if (event.key === "F2" && row) rename(row, true);
    if (event.key === "Escape" && event.target.closest("[data-rename]")) { event.stopPropagation(); rename(row, false); }
    if (event.key === "Escape" && event.target.closest("details.menu")) { event.stopPropagation(); const menu = event.target.closest("details.menu"); menu.open = false; menu.querySelector("summary").focus(); }
  });
  // Said to each menu alone.
  list.addEventListener("toggle", letGo, true);
  list.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-change], [data-rename]")) return;
    event.preventDefault();
    if (form.matches("[data-rename]")) form.hidden = true;
    else form.closest("details.menu").open = false;
    changed(form, event.submitter);
  });
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open], .gauge[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.querySelector("[data-import]").addEventListener("submit", (event) => { event.preventDefault(); importing(event.target); });
  addEventListener("visibilitychange", () => { if (!document.hidden) refreshList(); });
}

// What is looked at beside a conversation: how full the context is, compressing, tools, what servers offer.

import { piece, say } from "./console.js";
import { attach, trouble } from "./chat_compose.js";
import { elements, pathOf, post, sent } from "./chat_page.js";

const dialog = document.querySelector("[data-dialog]");
const inside = dialog.querySelector("[data-dialog-body]");
const id = document.body.dataset.chat;
let counting = false;
let again = null;

export async function gauge(text) {
  // One count at a time; the newest wish is counted next.
  const place = document.querySelector("[data-gauge]");
  if (!id || !place) return;
  const written = typeof text === "string" ? text : document.querySelector("[data-text]").value;
  if (counting) { again = written; return; }
  counting = true;
  const found = await post(`/chat/${id}/gauge`, { text: written });
  counting = false;
  const node = found.ok && elements(found.nodes)[0];
  if (node) {
    node.open = Boolean(place.querySelector("details")?.open);
    place.replaceChildren(node);
    document.querySelector('[data-open="preview"]').classList.toggle("needed", node.dataset.needs === "1");
  }
  if (again !== null) { const next = again; again = null; gauge(next); }
}

let asked = 0;
async function open(what, query = "") {
  const number = ++asked;
  const path = what === "attach" ? "/chat/attach" : `/chat/${id}/${what}${query}`;
  const found = await piece(path).catch(() => null);
  // What was asked for last is shown, also where another answer comes later.
  if (number !== asked) return;
  if (!found?.ok) { trouble(found ? elements(found.nodes).map((each) => each.textContent).join(" ") : "The connection is lost."); return; }
  inside.replaceChildren(...found.nodes);
  if (!dialog.open) dialog.showModal();
}

async function submitted(form, submitter, refresh) {
  submitter?.setAttribute("disabled", "");
  const found = await post(pathOf(form), sent(form, submitter));
  submitter?.removeAttribute("disabled");
  if (!found.ok) { wrong(form, found); return; }
  dialog.close();
  say(found.text);
  gauge();
  refresh();
}

function wrong(form, found) {
  // A form that says itself what is wrong with it takes the place of the one that was sent.
  if (!elements(found.nodes).some((each) => each.matches("[data-dialog-form]"))) {
    form.querySelector("[data-trouble]").textContent = found.text;
    return;
  }
  inside.replaceChildren(...found.nodes);
  inside.querySelector("[aria-invalid]")?.focus();
}

export function dialogs(_id, refresh) {
  for (const button of document.querySelectorAll("[data-open]")) {
    button.hidden = false;
    button.addEventListener("click", (event) => {
      // A link has a page of its own, which a person may want in another tab.
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(button.dataset.open);
    });
  }
  inside.addEventListener("submit", (event) => {
    const form = event.target;
    event.preventDefault();
    if (form.matches("[data-preview]")) open("preview", `?${sent(form)}`);
    else if (form.matches("[data-dialog-form]")) submitted(form, event.submitter, refresh);
    else if (form.matches("[data-prompt]")) {
      const fields = Object.fromEntries(new FormData(form));
      const what = form.dataset.template ? { template: form.dataset.template } : { prompt: form.dataset.name };
      attach({ server: form.dataset.server, ...what, arguments: fields }, form.dataset.label);
      dialog.close();
    }
  });
  inside.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.matches("[data-close]")) dialog.close();
    if (button?.matches("[data-pick]")) { attach({ server: button.dataset.server, uri: button.dataset.uri }, button.dataset.label); dialog.close(); }
  });
  inside.addEventListener("change", (event) => {
    // A server switched off takes its tools along, for the eye.
    if (!event.target.matches("[data-server]")) return;
    for (const box of event.target.closest("fieldset").querySelectorAll("li input[type=checkbox]")) box.checked = event.target.checked;
  });
}

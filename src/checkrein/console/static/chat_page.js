// What the parts of the chat page share: sending forms, and staying at the end of what is said.

import { piece } from "./console.js";

const csrf = document.body.dataset.csrf;
const NEAR = 120;

export const elements = (nodes) => nodes.filter((each) => each.nodeType === Node.ELEMENT_NODE);

export async function post(path, fields) {
  // What came of it, and what was said about it.
  const body = new URLSearchParams({ csrf });
  for (const [name, value] of fields instanceof URLSearchParams ? fields : Object.entries(fields)) {
    if (name !== "csrf") body.append(name, value);
  }
  try {
    const found = await piece(path, { method: "POST", body });
    const text = found.nodes.map((each) => each.textContent.trim()).filter(Boolean).join(" ");
    return { ok: found.ok, text: text || "Not done.", nodes: found.nodes };
  } catch {
    return { ok: false, text: "Not sent: the connection is lost.", nodes: [] };
  }
}

export function sent(form, submitter) { return new URLSearchParams(new FormData(form, submitter)); }
export function pathOf(form) { return new URL(form.action).pathname.slice(document.body.dataset.place.length); }

export function megabytes(bytes) { return `${Math.floor(bytes / 1_048_576)} MB`; }

export function inBase64(file) {
  // In letters an address may have: a form is sent in those.
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done((String(reader.result).split(",", 2)[1] ?? "").replaceAll("+", "-").replaceAll("/", "_"));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

// Whoever reads further up is left there.
export function bottom(scroll) { return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR; }
export function followEnd(scroll, stays) { if (stays) scroll.scrollTop = scroll.scrollHeight; }

export function holding(work) {
  // Whoever types goes on typing, also where what they type in is moved.
  const held = document.activeElement;
  const [from, to] = [held?.selectionStart, held?.selectionEnd];
  work();
  if (!held?.isConnected || held === document.activeElement || held === document.body) return;
  held.focus({ preventScroll: true });
  if (from !== undefined && from !== null) held.setSelectionRange(from, to);
}

// Runs as they are by now: the list, or one run while it runs and waits.

import { hear, piece, say, singly } from "./console.js";

const LOOK_MS = 2000;
const list = document.querySelector("[data-runs]");
const one = document.querySelector("[data-one]");
const box = list ?? one;

function exchange(nodes) {
  const held = box.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...box.querySelectorAll("details[open]")].map((each) => each.id);
  const scrolled = box.querySelector(".script pre")?.scrollTop ?? 0;
  box.replaceChildren(...nodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  const script = box.querySelector(".script pre");
  if (script) script.scrollTop = scrolled;
  if (held) document.getElementById(held)?.focus({ preventScroll: true });
}

const look = singly(async () => {
  if (document.hidden) return;
  try {
    const found = await piece(list ? `/runs/rows?count=${list.dataset.runs}` : `/runs/${one.dataset.one}/state`);
    if (!found.ok) return;
    const before = box.querySelector("[data-mark]").dataset;
    const was = { mark: before.mark, state: before.nowState };
    const fresh = found.nodes.find((node) => node.dataset?.mark !== undefined);
    // What is the same stays: nothing moves under a reader's eyes for no reason.
    if (fresh?.dataset.mark === was.mark) return;
    exchange(found.nodes);
    const state = fresh?.dataset.nowState;
    if (state && state !== was.state) say(`The run: ${state}.`);
  } catch { /* the banner says it */ }
});

let timer = 0;
function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; look(); }, 60);
}

if (box) {
  hear((record) => {
    const ours = one && (record.entry === one.dataset.one || record.session === one.dataset.session);
    if (record.kind.startsWith("run_") || ours || (one && record.kind === "answered")) soon();
  });
  // What is under way is in no record before it has ended.
  setInterval(() => { if (list || one.querySelector("#cancel")) look(); }, LOOK_MS);
}

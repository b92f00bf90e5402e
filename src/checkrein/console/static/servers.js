// Servers as they are by now. What a person is about to accept is never exchanged under their hand.

import { hear, piece, say, singly } from "./console.js";

const LOOK_MS = 5000;
const list = document.querySelector("[data-servers]");
const state = document.querySelector("[data-state]");
const stale = document.querySelector("[data-stale]");
const KINDS = ["servers_changed", "definitions_seen", "definitions_accepted", "definitions_refused"];

function exchange(box, nodes) {
  const held = box.contains(document.activeElement) ? document.activeElement.id : "";
  box.replaceChildren(...nodes);
  if (held) document.getElementById(held)?.focus({ preventScroll: true });
}

const look = singly(async () => {
  if (document.hidden) return;
  try {
    const found = await piece(list ? "/servers/rows" : `/servers/of/${state.dataset.state}/state`);
    if (!found.ok) return;
    const before = state?.querySelector("[data-mark]")?.dataset;
    const was = { mark: before?.mark, state: before?.nowState, signIn: before?.signIn };
    const box = list ?? state;
    exchange(box, found.nodes);
    const after = state?.querySelector("[data-mark]")?.dataset;
    if (!after || after.mark === was.mark) return;
    say(`It is ${after.nowState} now.`);
    // While somebody signs in there is nothing on the page that they could be about to accept.
    if (was.state === "starting" || was.signIn === "waiting") location.reload();
    else stale.hidden = false;
  } catch { /* the banner says it */ }
});

if (list || state) {
  hear((record) => {
    if (!KINDS.includes(record.kind)) return;
    if (state && record.server === state.dataset.state && record.kind === "definitions_seen") stale.hidden = false;
    look();
  });
  setInterval(look, LOOK_MS);
}

for (const box of document.querySelectorAll("[data-all-box]")) {
  box.hidden = false;
  box.querySelector("[data-all]").addEventListener("change", (event) => {
    for (const each of box.closest("form").querySelectorAll("[name=pick]")) each.checked = event.target.checked;
  });
}
for (const field of document.querySelectorAll("[data-copy]")) field.addEventListener("focus", () => field.select());

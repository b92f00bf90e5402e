// What is wrong or to be known of a conversation, above it: as it is now, not as it was when the page came.

import { hear, piece, singly } from "./console.js";
import { elements } from "./chat_page.js";

const place = document.querySelector("[data-alerts]");
const id = document.body.dataset.chat ?? "";

export const alerts = singly(async () => {
  const found = await piece(`/chat/alerts?open=${encodeURIComponent(id)}`).catch(() => null);
  if (!found?.ok) return;
  const fresh = elements(found.nodes);
  // The same again is not read out again.
  const same = fresh.length === place.children.length && fresh.every((each, at) => each.isEqualNode(place.children[at]));
  if (!same) place.replaceChildren(...fresh);
});

export function tainted(by) {
  if (by === place.dataset.tainted) return;
  place.dataset.tainted = by;
  alerts();
}

hear((record) => { if (record.kind === "providers_changed") alerts(); });
addEventListener("visibilitychange", () => { if (!document.hidden) alerts(); });

// The live tail of the calls: new rows on top while the newest page is shown.

import { hear, place, rowsOf, singly } from "./console.js";

const table = document.querySelector("[data-tail]");
const rows = document.querySelector("[data-rows]");
const MOST = 200;

if (table) {
  let timer = 0;
  const look = singly(async () => {
    const path = table.dataset.tail.slice(place.length);
    const newest = rows.querySelector("[data-call]")?.dataset.call ?? "";
    const found = await rowsOf(`${path}${path.includes("?") ? "&" : "?"}after=${newest}`).catch(() => []);
    rows.prepend(...found.filter((row) => !rows.querySelector(`[data-call="${CSS.escape(row.dataset.call)}"]`)));
    if (found.length) document.querySelector("[data-none]")?.remove();
    while (rows.children.length > MOST) rows.lastElementChild.remove();
  });
  hear((record) => {
    if (record.kind === "decided" && !timer) timer = setTimeout(() => { timer = 0; look(); }, 60);
  });
}

// Rules moved by dragging. The arrows do the same for keys, and without scripts.

const list = document.querySelector("[data-rules]");

if (list) {
  list.classList.add("draggable");
  let held = null;
  for (const rule of list.querySelectorAll("[data-movable]")) {
    const grip = rule.querySelector("[data-grip]");
    grip.addEventListener("pointerdown", () => { rule.draggable = true; });
    rule.addEventListener("dragstart", (event) => { held = rule; rule.classList.add("held"); event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", rule.dataset.rule); });
    rule.addEventListener("dragend", () => { rule.draggable = false; rule.classList.remove("held"); for (const each of list.children) each.classList.remove("over"); });
    rule.addEventListener("dragover", (event) => { if (held && held !== rule) { event.preventDefault(); rule.classList.add("over"); } });
    rule.addEventListener("dragleave", () => rule.classList.remove("over"));
    rule.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!held || held === rule) return;
      const all = [...list.children];
      const where = all.indexOf(held) < all.indexOf(rule) ? "after" : "before";
      const form = held.querySelector("[data-move]");
      const target = document.createElement("input");
      target.type = "hidden"; target.name = where; target.value = rule.dataset.rule;
      form.append(target);
      form.submit();
    });
  }
}

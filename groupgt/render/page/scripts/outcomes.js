// Answers beside retrieval, system by system; all numbers and sentences come ready to be shown.
"use strict";

async function outcomes() {
  const { set } = current();
  const sections = set.outcomes.map((/** @type {Outcomes} */ each, /** @type {number} */ place) => {
    const parts = each.parts.map(([verdict, heads, rows]) => (verdict.length ? h("ul", { class: "verdict" }, ...verdict.map(say)) : table(heads, rows.map((row) => row.map(visible)), `${heads[0]}, ${each.system}`)));
    const cells = each.cells.flatMap(([label, qids, more]) => [h("dt", null, label), h("dd", null, ...queryLinks(qids, more))]);
    const notes = each.notes.map((note) => h("p", { class: "soft" }, visible(note)));
    return section("", h("h2", null, named(each.system)), ...parts.slice(0, 2), h("dl", { class: "facts" }, ...cells), h("div", { class: "figures" }, fixedFigure(`outcomes-${place}`, each.drawing)), ...parts.slice(2), ...notes);
  });
  return [h("h1", { tabindex: -1 }, "Outcomes"), ...sections];
}

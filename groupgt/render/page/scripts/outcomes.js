// Answers beside retrieval: a table of four cells per system; all numbers and sentences come ready to be shown.
"use strict";

async function outcomes() {
  const { set } = current();
  const { sentences, note, why, first, more, systems } = /** @type {Outcomes} */ (set.outcomes);
  const listed = first.map((/** @type {[string, string, string]} */ [qid, text, covered]) =>
    h("li", null, h("a", { href: link("question", { id: qid }) }, named(qid, 60)), h("span", { class: "query-text" }, brief(text, 220)), h("span", { class: "small" }, `covered: ${visible(covered)}`))
  );
  return [
    h("h1", { tabindex: -1 }, "Outcomes"),
    ...sentences.map((/** @type {Plain} */ each) => h("p", { class: "says" }, h("strong", null, ...partsOf(each)))),
    h("p", { class: "small" }, note),
    h("div", { class: "answered" }, ...systems.map(answersOf)),
    ...(listed.length ? [h("h2", null, "Look at these first ", h("small", null, why)), h("ul", { class: "looked" }, ...listed)] : []),
    more.length ? h("details", null, h("summary", null, `${counted(more.length, "more query", "more queries")} of this kind`), h("p", null, ...queryLinks(more))) : null,
  ];
}

/** The four cells of a system, its intervals, and what is folded. @param {Plain} each @param {number} place */
function answersOf(each, place) {
  const list = h("p", { class: "of-cell", id: `of-cell-${place}`, "aria-live": "polite" });
  /** @type {HTMLElement[]} */
  const buttons = each.cells.map((/** @type {Plain} */ cell, /** @type {number} */ at) =>
    h("button", { type: "button", class: at === 3 ? "cell key" : "cell", "aria-expanded": "false", "aria-controls": list.id, onclick: () => open(at) }, h("b", null, cell.count), h("span", null, cell.label), cell.look ? h("small", null, cell.look) : null)
  );
  const open = (/** @type {number} */ at) => {
    const isOpen = buttons[at].getAttribute("aria-expanded") === "true";
    buttons.forEach((button, other) => button.setAttribute("aria-expanded", String(other === at && !isOpen)));
    list.replaceChildren(...(isOpen ? [] : [h("b", null, each.cells[at].label), ": ", ...queryLinks(each.cells[at].qids, each.cells[at].more)]));
  };
  const [headers, rows] = each.shares;
  const cells = rows.map((/** @type {string[]} */ row) => row.map((text, column) => (column ? h("td", { class: "number" }, text) : text)));
  const heads = headers.map((/** @type {string} */ text, /** @type {number} */ column) => h("th", { scope: "col", class: column ? "number" : null }, text));
  return h(
    "section",
    { class: "box" },
    h("h2", null, named(each.system)),
    h("div", { class: "cells" }, h("span"), ...each.heads.map((/** @type {string} */ head) => h("span", { class: "small" }, head)), ...each.sides.flatMap((/** @type {string} */ side, /** @type {number} */ row) => [h("span", { class: "small side" }, side), ...buttons.slice(2 * row, 2 * row + 2)])),
    list,
    h("div", { class: "shares" }, ...each.bars.flatMap(shareBar)),
    each.sentence ? h("p", null, `${each.sentence} `, h("span", { class: "small" }, each.interval)) : null,
    h("details", { class: "folded", ontoggle: redraw }, h("summary", null, "Shares and intervals"), table(heads, cells, `Shares and intervals, ${each.system}`), h("div", { class: "figures wide" }, fixedFigure(`outcomes-${place}`, each.drawing))),
    ...each.notes.map((/** @type {string} */ note) => h("p", { class: "small" }, visible(note)))
  );
}

/** The share of correct answers on one side, with its interval, from 0 to 100%. @param {[string, number, number, number, string]} bar */
function shareBar([side, value, low, high, text]) {
  const line = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) => svg("line", { class: name, x1: `${from}%`, x2: `${to}%`, y1: 8, y2: 8 });
  const label = `${side}: ${text}, ${low.toFixed(1)}% to ${high.toFixed(1)}%`;
  return [h("span", null, side), svg("svg", { class: "share-bar", height: 16, role: "img", "aria-label": label }, line("track", 0, 100), line("whisker", low, high), svg("circle", { class: "dot", cx: `${value}%`, cy: 8, r: 4 })), h("span", { class: "number" }, text)];
}

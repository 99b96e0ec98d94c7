// Every system against its version in the previous run; all numbers and sentences come ready to be shown.
"use strict";

// What stands for the previous run among the systems to compare with.
const PREVIOUS = "(previous run)";

/** @param {DatasetOnPage} set */
const previousOption = (set) => (set.previous ? [[PREVIOUS, `previous run ${set.previous.run}`]] : []);

/** @param {string[]} qids @param {number} [more] */
const queryLinks = (qids, more = 0) => [
  ...qids.flatMap((qid, place) => [place ? ", " : "", h("a", { href: link("question", { id: qid }) }, named(qid, 40))]),
  qids.length ? (more ? ` and ${more.toLocaleString("en")} more` : "") : "none",
];

/** Queries lost and gained since the previous run. @param {Previous} previous */
function sincePrevious(previous) {
  const rows = previous.systems.filter((/** @type {Plain} */ each) => each.lost.length || each.gained.length);
  if (!rows.length) return null;
  const cells = rows.map((/** @type {Plain} */ each) => [
    h("th", { scope: "row" }, h("a", { href: link("comparison", { a: each.name, b: PREVIOUS }) }, named(each.name))),
    h("td", null, ...queryLinks(each.lost, each.more_lost)),
    h("td", null, ...queryLinks(each.gained, each.more_gained)),
  ]);
  return section("Since the previous run", table(["system", "queries lost", "queries gained"], cells, "Queries lost and gained since the previous run"));
}

/** A system beside its previous version, in place of another system. @param {DatasetOnPage} set @param {Previous} previous @param {string | null} wanted */
function againstPrevious(set, previous, wanted) {
  const { run, systems: all } = previous;
  const chosen = all.find((/** @type {Plain} */ each) => each.name === wanted) || all[0];
  const names = all.map((/** @type {Plain} */ each) => [each.name, each.name]);
  const others = set.systems.filter((/** @type {Plain} */ each) => !chosen || each.name !== chosen.name).map((/** @type {Plain} */ each) => [each.name, each.name]);
  const controls = h(
    "div",
    { class: "controls" },
    select("first", "System", names, chosen ? chosen.name : "", (value) => change({ a: value, b: PREVIOUS })),
    select("second", "against", [...others, ...previousOption(set)], PREVIOUS, (value) => change({ a: chosen ? chosen.name : null, b: value }))
  );
  if (!chosen) return [h("h1", { tabindex: -1 }, "Comparison"), controls, h("p", { class: "note" }, `No system was compared with the previous run ${visible(run)}.`)];
  return [
    h("h1", { tabindex: -1 }, "Comparison"),
    controls,
    h("ul", { class: "verdict small" }, ...chosen.verdict.map(say)),
    section("By metric", table(previous.heads, chosen.rows.map((/** @type {string[]} */ row) => row.map(visible)), "Differences from the previous run by metric")),
    section("Queries", h("dl", { class: "facts" }, h("dt", null, "lost"), h("dd", null, ...queryLinks(chosen.lost, chosen.more_lost)), h("dt", null, "gained"), h("dd", null, ...queryLinks(chosen.gained, chosen.more_gained)))),
    ...previous.notes.map((/** @type {string} */ note) => h("p", { class: "soft" }, visible(note))),
  ];
}

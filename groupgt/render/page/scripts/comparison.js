// One system against another: by query, metric and slice.
"use strict";

async function comparison() {
  const { set, values, metric, place } = current();
  if (set.previous && (set.systems.length < 2 || values.get("b") === PREVIOUS)) return againstPrevious(set, set.previous, values.get("a"));
  if (set.systems.length < 2) return [h("h1", { tabindex: -1 }, "Comparison"), h("p", null, "There is only one system, so there is nothing to compare.")];
  const subject = set.subject ?? 0;
  let second = systemAt(set, values.get("b"), set.baseline === null ? (subject === 0 ? 1 : 0) : set.baseline);
  let first = systemAt(set, values.get("a"), subject);
  if (first === second) {
    if (values.get("a") === null) first = second === 0 ? 1 : 0;
    else if (values.get("b") === null) second = first === subject ? (first === 0 ? 1 : 0) : subject;
  }
  const options = set.systems.map((/** @type {Plain} */ each) => [each.name, each.name]);
  const [a, b] = [set.systems[first].name, set.systems[second].name];
  const each = contrast(set, first, second, metric);
  const questions = await block(`questions-${place}`);
  const rows = deltaRows(questions, await valuesOf(questions, place, metric), first, second);
  return [
    h("h1", { tabindex: -1 }, "Comparison"),
    h(
      "div",
      { class: "controls" },
      select("first", "System", options, a, (value) => change({ a: value, b })),
      h("button", { type: "button", id: "swap", class: "quiet", onclick: () => change({ a: b, b: a }) }, "⇄", hidden("swap the two systems")),
      select("second", "against", [...options, ...previousOption(set)], b, (value) => change({ a, b: value })),
      metricField(set, metric)
    ),
    first === second ? h("p", { class: "note" }, "Both sides are the same system. Choose another.") : [pairVerdict(a, b, each), everyField(set, each)].filter((part) => part !== null),
    h(
      "div",
      { class: "figures" },
      first === second ? null : deltasFigure(set, metric, a, b, each, rows),
      metricsFigure(set, first, second),
      againstFigure(set, second, metric)
    ),
    first === second ? null : [byLabels(questions), extremes(questions, a, b, rows)].filter((part) => part !== null),
    sliceTable(set, first, second, metric),
    outcomesOf(set, second, metric),
    headroom(set),
    ...set.tests.map((/** @type {string} */ line) => h("p", { class: "soft" }, visible(line))),
  ];
}

/** The two values of every question that counts for both, largest gain first. @param {Queries} questions @param {Values} values @param {number} first @param {number} second */
function deltaRows(questions, values, first, second) {
  const rows = [];
  for (let at = 0; at < questions.qids.length; at++) {
    const [mine, other] = [values.cells[first][at], values.cells[second][at]];
    if (mine < 0 || other < 0) continue;
    const level = Math.sign(values.levels[mine] - values.levels[other]);
    const delta = level ? values.numbers[mine] - values.numbers[other] : 0;
    const texts = [values.texts[mine], values.texts[other]];
    rows.push({ at, qid: short(questions.qids[at], 60), delta, gain: level * Math.abs(delta), kind: ["worse", "same", "better"][level + 1], texts, place: 0 });
  }
  rows.sort((a, b) => b.gain - a.gain || a.at - b.at);
  rows.forEach((row, place) => (row.place = place + 1));
  return rows;
}

/** @param {string} a @param {string} b @param {Contrast | null} each */
function pairVerdict(a, b, each) {
  const said = (each && each.said) || { kind: "note", parts: ["", a, " vs. ", b, ": groupgt did not compute a difference or a test for this pair and metric."] };
  return h("ul", { class: "verdict small" }, say(said));
}

/** All fields of a contrast. @param {DatasetOnPage} set @param {Contrast | null} each */
function everyField(set, each) {
  if (!each) return null;
  const rows = set.contrasts.names.map((/** @type {string} */ name, /** @type {number} */ place) => [set.contrasts.heads[place], each.texts[name]]);
  return h("details", { id: "fields" }, h("summary", null, "All numbers of this comparison"), facts(rows));
}

/** The columns that describe a contrast, and its cells. @param {DatasetOnPage} set */
const fieldHeads = (set) => [...set.contrasts.heads, "which is"];

/** @param {Contrast} each */
const fieldCells = (each) => [...Object.values(each.texts), each.standing];

/** @param {DatasetOnPage} set @param {number} metric @param {string} a @param {string} b @param {Contrast | null} each @param {Plain[]} rows */
function deltasFigure(set, metric, a, b, each, rows) {
  const drawing = rows.length > 600 ? set.drawings["queries many"] : set.drawings.queries;
  if (!drawing) return null;
  const { label } = set.metrics[metric];
  const [low, high] = (each && each.interval) || [null, null];
  const mean = each && known(each.delta) ? [{ value: each.delta, low: low ?? each.delta, high: high ?? each.delta }] : [];
  return figure({
    id: "queries",
    drawing,
    title: "Query by query",
    lines: linesFor(drawing, label, rows.length, `dashed: mean; band: ${level(each)}; click a bar for the query`),
    text: `${counted(rows.filter((row) => row.kind === "better").length, "query", "queries")} better, ${rows.filter((row) => row.kind === "worse").length} worse, of ${rows.length}.`,
    tables: { rows: rows.map(({ texts, ...row }) => row), mean },
    texts: { $label: `difference in ${label}` },
    heads: ["place", "query", short(a, 60), short(b, 60)],
    rows: rows.map((row) => [row.place, row.qid, ...row.texts]),
    click: (/** @type {Plain} */ datum) => known(datum.at) && goTo(datum.at, [a, b]),
  });
}

/** @param {number} at @param {string[]} systems_ */
async function goTo(at, systems_) {
  const questions = await block(`questions-${asked().place}`);
  location.hash = link("question", { id: questions.qids[at], s: systems_ });
}

/** What a figure draws of a row. @param {Plain} row */
const drawn = ({ each, ...row }) => row;

/** Differences by every metric. @param {DatasetOnPage} set @param {number} first @param {number} second */
function metricsFigure(set, first, second) {
  const rows = set.metrics.flatMap((/** @type {Plain} */ metric, /** @type {number} */ place) => {
    const each = contrast(set, first, second, place);
    if (!each || !known(each.delta) || !metric.bounded) return [];
    const [low, high] = each.interval || [null, null];
    return [{ name: metric.label, value: each.delta, low, high, kind: standing(each), each }];
  });
  if (rows.length < 2) return null;
  return figure({
    id: "by-metric",
    drawing: set.drawings.differences,
    title: "By metric",
    lines: linesFor(set.drawings.differences, "difference", Math.max(...set.systems[first].queries), level(contrast(set, first, second, set.primary))),
    text: rows.map((/** @type {Plain} */ row) => `${row.name} ${row.each.texts.delta}, ${row.kind}`).join("; "),
    tables: { rows: rows.map(drawn) },
    texts: { $label: "difference" },
    heads: ["metric", ...fieldHeads(set)],
    rows: rows.map((/** @type {Plain} */ row) => [row.name, ...fieldCells(row.each)]),
  });
}

/** Every system against one. @param {DatasetOnPage} set @param {number} second @param {number} metric */
function againstFigure(set, second, metric) {
  const rows = set.systems.flatMap((/** @type {Plain} */ system, /** @type {number} */ place) => {
    const each = place === second ? null : contrast(set, place, second, metric);
    if (!each || !known(each.delta)) return [];
    const [low, high] = each.interval || [null, null];
    return [{ name: visible(system.name), value: each.delta, low, high, kind: standing(each), each }];
  });
  if (rows.length < 2) return null;
  const { label } = set.metrics[metric];
  return figure({
    id: "against",
    drawing: set.drawings.differences,
    title: `Every system vs. ${short(set.systems[second].name, 60)}`,
    lines: linesFor(set.drawings.differences, label, set.systems[second].queries[metric], level(set.systems.map((/** @type {any} */ _, /** @type {number} */ place) => contrast(set, place, second, metric)).find(Boolean))),
    text: rows.map((/** @type {Plain} */ row) => `${row.name} ${row.each.texts.delta}, ${row.kind}`).join("; "),
    tables: { rows: rows.map(drawn) },
    texts: { $label: `difference in ${label}` },
    heads: ["system", ...fieldHeads(set)],
    rows: rows.map((/** @type {Plain} */ row) => [row.name, ...fieldCells(row.each)]),
  });
}

/** The questions that gain and lose most. @param {Queries} questions @param {string} a @param {string} b @param {Plain[]} rows */
function extremes(questions, a, b, rows) {
  /** @param {string} title @param {Plain[]} some @param {string} show */
  const list = (title, some, show) =>
    h(
      "div",
      null,
      h("h3", null, title),
      some.length
        ? h("ol", { class: "extremes" }, ...some.map((row) => h("li", null, h("span", { class: `number ${row.kind}` }, `${row.texts[1]} → ${row.texts[0]}`), h("a", { href: link("question", { id: questions.qids[row.at], s: [a, b] }) }, named(questions.qids[row.at], 40)), h("span", { class: "text" }, brief((questions.texts || [])[row.at] || "", 140)))))
        : h("p", { class: "soft" }, "none"),
      some.length ? h("p", null, h("a", { href: link("questions", { show, a, b }) }, "all of them")) : null
    );
  const gains = rows.filter((row) => row.kind === "better").slice(0, 5);
  const losses = rows.filter((row) => row.kind === "worse").slice(-5).reverse();
  return section("Queries that differ most", h("div", { class: "columns" }, list("Gained", gains, "better"), list("Lost", losses, "worse")));
}

/** @param {DatasetOnPage} set @param {number} first @param {number} second @param {number} metric */
function sliceTable(set, first, second, metric) {
  const rows = set.slices.flatMap((/** @type {Plain} */ part, /** @type {number} */ place) => {
    const each = contrast(set, first, second, metric, place);
    return each && known(each.delta) ? [{ part, each }] : [];
  });
  if (!rows.length) return null;
  const ends = rows.flatMap((/** @type {Plain} */ row) => [...(row.each.interval || []), row.each.delta, 0]).filter(known);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  // Slices by different columns may have different levels.
  const isOneLevel = new Set(rows.map((/** @type {Plain} */ row) => level(row.each))).size === 1;
  const isTurned = rows.some((/** @type {Plain} */ row) => row.each.reversal);
  const body = rows.map((/** @type {{part: Plain, each: Contrast}} */ { part, each }) => {
    const stands = standing(each);
    const isSignificant = stands !== "not significant";
    return [
      h("th", { scope: "row" }, h("a", { href: link("questions", { [`by:${part.by}`]: part.value }) }, `${short(part.by, 40)} = `, named(part.value, 60))),
      h("td", { class: "number" }, each.texts.pairs),
      h("td", { class: `number mean ${stands}` }, h("span", null, `${each.texts.delta}${isSignificant ? " *" : ""}`), bar(each.delta, each.interval, low, high)),
      h("td", { class: "number" }, isOneLevel ? null : `${level(each)} `, each.texts.delta_interval),
      h("td", { class: "number" }, each.texts.p_value),
      h("td", { class: "number" }, `${each.texts.wins}/${each.texts.ties}/${each.texts.losses}`),
      each.reversal ? "reversal" : "",
    ].slice(0, isTurned ? 7 : 6);
  });
  const isAny = rows.some((/** @type {Plain} */ row) => standing(row.each) !== "not significant");
  const below = ["p-values are corrected over all slices", ...(isAny ? ["* significant"] : []), ...(isTurned ? ["reversal: the sign differs from the overall difference"] : [])];
  return section(
    "By slice",
    table(["slice", ...["queries", "difference", isOneLevel ? level(rows[0].each) : "CI", "p, corrected", "wins/ties/losses"].map((label) => h("th", { scope: "col", class: "number" }, label)), ...(isTurned ? ["sign"] : [])], body, "Differences by slice"),
    h("p", { class: "soft" }, `${below.join("; ")}.`)
  );
}

/** Wins, ties and losses of all systems. @param {DatasetOnPage} set @param {number} second @param {number} metric */
function outcomesOf(set, second, metric) {
  const rows = set.systems.flatMap((/** @type {Plain} */ system, /** @type {number} */ place) => {
    const each = place === second ? null : contrast(set, place, second, metric);
    return each ? each.counts.map((count, at) => ({ system: visible(system.name), outcome: ["better", "same", "worse"][at], count })) : [];
  });
  if (!rows.length || !set.drawings.outcomes) return null;
  const { label } = set.metrics[metric];
  const other = short(set.systems[second].name, 60);
  return h(
    "div",
    { class: "figures" },
    figure({
      id: "outcomes",
      drawing: set.drawings.outcomes,
      title: "Wins, ties and losses",
      lines: linesFor(set.drawings.outcomes, label, set.systems[second].queries[metric]),
      text: rows.map((/** @type {Plain} */ row) => `${row.system} ${row.outcome} ${row.count}`).join("; "),
      tables: { rows },
      texts: { $label: `than ${other}` },
      heads: ["system", "outcome", "queries"],
      rows: rows.map((/** @type {Plain} */ row) => [row.system, row.outcome, row.count]),
    })
  );
}

/** @param {DatasetOnPage} set */
function headroom(set) {
  if (!set.headroom.length) return null;
  const rows = set.headroom.map((/** @type {any[]} */ [metric, system, ...texts]) => [visible(metric), named(system, 60), ...texts.map((text) => h("td", { class: "number" }, text))]);
  const heads = ["metric", "best system", ...["mean", "oracle mean", "maximum gain", "queries"].map((label) => h("th", { scope: "col", class: "number" }, label))];
  return section("Headroom", h("p", { class: "soft" }, "The oracle picks the best system for each query. Its score is an upper bound, which grows by chance as you add systems."), table(heads, rows, "Headroom"));
}

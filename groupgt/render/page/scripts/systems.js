// The table of systems, their curves and their slices.
"use strict";

/** A value on the steps of the heat maps. @param {number | null} step @param {Child} text */
const valueCell = (step, text) => h("td", { class: known(step) ? `number step${step}` : "number" }, text);

/** An interval as a bar, from the lowest to the highest end of its column. @param {number | null} mean @param {number[] | null} ends @param {number} low @param {number} high */
function bar(mean, ends, low, high) {
  const at = (/** @type {number} */ value) => (high > low ? (100 * (value - low)) / (high - low) : 50);
  if (!known(mean)) return null;
  const [from, to] = ends || [mean, mean];
  const line = h("i", { class: "line" });
  line.style.left = `${at(from)}%`;
  line.style.width = `${Math.max(0, at(to) - at(from))}%`;
  const dot = h("i", { class: "dot" });
  dot.style.left = `${at(mean)}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, line, dot);
}

/** The metrics in the table of systems: those chosen, else those of the primary's cutoff. @param {DatasetOnPage} set @param {URLSearchParams} values */
function columnsOf(set, values) {
  const chosen = values.getAll("c");
  const rest = set.metrics.map((/** @type {any} */ _, /** @type {number} */ place) => place).filter((/** @type {number} */ place) => place !== set.primary);
  const all = [set.primary, ...rest];
  if (chosen.length) return all.filter((/** @type {number} */ place) => chosen.includes(set.metrics[place].name));
  const cutoff = (/** @type {number} */ place) => set.metrics[place].label.split("@")[1] || "";
  const alike = all.filter((/** @type {number} */ place) => cutoff(place) === cutoff(set.primary));
  return alike.slice(0, 6);
}

/** A head that sorts. @param {string} key @param {Child} label @param {string} sorted @param {boolean} down @param {string} [kind] */
function sorter(key, label, sorted, down, kind = "number") {
  const active = sorted === key;
  const next = active ? (down ? `${key}:up` : `${key}:down`) : `${key}:${key === "name" ? "up" : "down"}`;
  const button = h("button", { type: "button", id: `sort-${key}`, onclick: () => change({ sort: next, page: null }) }, label, h("span", { class: "arrow", "aria-hidden": "true" }, active ? (down ? " ↓" : " ↑") : ""));
  return h("th", { scope: "col", class: kind, "aria-sort": active ? (down ? "descending" : "ascending") : null }, button);
}

/** @param {URLSearchParams} values @param {string} otherwise @returns {[string, boolean]} */
function sorting(values, otherwise) {
  const [key, way] = (values.get("sort") || otherwise).split(/:(?=up$|down$)/);
  return [key, way !== "up"];
}

async function systems() {
  const { set, values } = current();
  const columns = columnsOf(set, values);
  const took = times.systems[set.name] || {};
  const timed = Object.keys(took).length ? times.columns : [];
  const [sorted, down] = sorting(values, `m${set.primary}:${set.metrics[set.primary].order}`);
  const wanted = (values.get("q") || "").toLowerCase();
  const gates = [...set.gates, ...(times.gates[set.name] || [])];
  let rows = set.systems.map((/** @type {Plain} */ each, /** @type {number} */ place) => ({ each, place }));
  rows = rows.filter((/** @type {Plain} */ row) => `${row.each.name} ${row.each.about}`.toLowerCase().includes(wanted));
  const worth = (/** @type {Plain} */ row) => {
    if (sorted.startsWith("m")) return row.each.means[Number(sorted.slice(1))];
    if (sorted.startsWith("t")) return took[row.each.name]?.values[Number(sorted.slice(1))];
    return row.each.name;
  };
  rows.sort((/** @type {Plain} */ a, /** @type {Plain} */ b) => compared(worth(a), worth(b), down) || a.place - b.place);
  const ends = columns.map((/** @type {number} */ metric) => {
    const all = set.systems.flatMap((/** @type {Plain} */ each) => [...(each.intervals[metric] || []), each.means[metric]]).filter(known);
    return [Math.min(...all), Math.max(...all)];
  });
  const heads = [
    sorter("name", "system", sorted, down, ""),
    ...columns.map((/** @type {number} */ metric) => sorter(`m${metric}`, set.metrics[metric].label, sorted, down)),
    ...timed.map((/** @type {string} */ label, /** @type {number} */ place) => sorter(`t${place}`, label, sorted, down)),
    ...(gates.length ? ["gates"] : []),
  ];
  const body = rows.map((/** @type {Plain} */ { each, place }) => [
    h("th", { scope: "row", class: isFocus(set, each.name) ? "focus" : "" }, systemName(set, each, place)),
    ...columns.map((/** @type {number} */ metric, /** @type {number} */ at) => meanCell(set, place, metric, ends[at])),
    ...timed.map((/** @type {string} */ _, /** @type {number} */ at) => h("td", { class: "number" }, took[each.name]?.texts[at] ?? "–")),
    ...(gates.length ? [gateCell(gates, each.name)] : []),
  ]);
  const failed = set.failed.map((/** @type {[string, string]} */ [system, why]) => h("li", { class: "failed" }, h("span", { class: "sign", "aria-hidden": "true" }, "✕"), h("span", null, h("b", null, named(system)), ` failed: ${visible(why)}`)));
  return [
    h("h1", { tabindex: -1 }, "Systems"),
    h("div", { class: "controls" }, search("q", "Filter", values.get("q") || "", (value) => change({ q: value || null }, true)), columnChooser(set, columns)),
    table(heads, body, "Systems: mean and CI per metric", "systems"),
    h("p", { class: "soft" }, "Bars: CI of the mean, one scale per column. ", hasMarks(set, columns) ? "▲ ▼ significantly better or worse than the baseline. " : "", `${rows.length.toLocaleString("en")} of ${counted(set.systems.length, "system")}.`),
    failed.length ? h("ul", { class: "verdict small" }, ...failed) : null,
    ...set.tests.map((/** @type {string} */ line) => h("p", { class: "soft" }, visible(line))),
    h("div", { class: "figures wide" }, ...Object.entries(set.drawings).filter(([key]) => /^(depth|ecdf)/.test(key)).map(([key, drawing]) => fixedFigure(key.replace(/\W+/g, "-"), drawing, { panels: key === "ecdf" ? 2 : 3 }))),
    set.slices.length ? section("By slice", h("div", { class: "controls" }, metricField(set, current().metric)), slicesFigure(set, current().metric)) : null,
  ];
}

/** @param {any} a @param {any} b @param {boolean} down */
function compared(a, b, down) {
  if (!known(a) && typeof a !== "string") return known(b) || typeof b === "string" ? 1 : 0;
  if (!known(b) && typeof b !== "string") return -1;
  const order = a < b ? -1 : a > b ? 1 : 0;
  return down ? -order : order;
}

/** @param {DatasetOnPage} set @param {Plain} system @param {number} place */
function systemName(set, system, place) {
  const base = set.baseline === place;
  const target = set.systems.length > 1 ? link("comparison", base ? { b: system.name } : { a: system.name }) : null;
  return h(
    "div",
    { class: "system" },
    target ? h("a", { href: target }, named(system.name, 80)) : named(system.name, 80),
    base ? h("span", { class: "tag" }, "baseline") : null,
    system.about ? h("details", null, h("summary", null, "options", hidden(` of ${short(system.name)}`)), h("p", null, visible(system.about))) : null
  );
}

/** @param {DatasetOnPage} set @param {number} place @param {number} metric @param {number[]} ends */
function meanCell(set, place, metric, ends) {
  const system = set.systems[place];
  const interval = system.intervals[metric];
  const sign = mark(set, place, metric);
  const [text, between] = [system.texts[metric], system.spans[metric]];
  const said = interval ? hidden(`, interval ${between}`) : null;
  const title = interval ? `${text} (${between}), ${counted(system.queries[metric], "query", "queries")}` : null;
  return h("td", { class: "number mean", title }, h("span", null, sign, sign ? " " : "", text, said), bar(system.means[metric], interval, ends[0], ends[1]));
}

/** Whether a system is significantly better or worse than the baseline by a metric. @param {DatasetOnPage} set @param {number} place @param {number} metric */
function mark(set, place, metric) {
  const stands = set.baseline === null || place === set.baseline ? "" : standing(contrast(set, place, set.baseline, metric));
  if (stands !== "better" && stands !== "worse") return null;
  return h("span", { class: stands }, stands === "better" ? "▲" : "▼", hidden(`significantly ${stands} than the baseline`));
}

/** Whether any system has such a mark. @param {DatasetOnPage} set @param {number[]} metrics */
const hasMarks = (set, metrics) => set.systems.some((/** @type {any} */ _, /** @type {number} */ place) => metrics.some((metric) => mark(set, place, metric)));

/** @param {Plain[]} gates @param {string} system */
function gateCell(gates, system) {
  const own = gates.filter((gate) => gate.system === system);
  const broken = own.filter((gate) => gate.result === "FAILED");
  if (!own.length) return h("td", null, "");
  const title = broken.map((gate) => brief(gate.reason, 300)).join("\n") || null;
  return h("td", { class: broken.length ? "failed" : "passed", title }, broken.length ? `✕ ${broken.length} failed` : `✓ ${own.filter((gate) => gate.result === "passed").length} passed`);
}

/** @param {DatasetOnPage} set @param {number[]} columns */
function columnChooser(set, columns) {
  const boxes = set.metrics.map((/** @type {Plain} */ metric, /** @type {number} */ place) => {
    const box = h("input", { type: "checkbox", id: `column-${place}`, checked: columns.includes(place) });
    box.addEventListener("change", () => {
      const chosen = set.metrics.filter((/** @type {any} */ _, /** @type {number} */ at) => (at === place ? !columns.includes(at) : columns.includes(at)));
      change({ c: chosen.map((/** @type {Plain} */ each) => each.name) });
    });
    return h("label", { for: `column-${place}`, title: brief(metric.summary, 300) }, box, metric.label);
  });
  const open = document.getElementById("columns")?.hasAttribute("open");
  return h("details", { class: "chooser", id: "columns", open }, h("summary", { id: "columns-summary" }, "Metrics"), h("div", null, ...boxes));
}

/** Means by slice. @param {DatasetOnPage} set @param {number} metric */
function slicesFigure(set, metric) {
  const rows = set.slices.flatMap((/** @type {Plain} */ part) =>
    set.systems.map((/** @type {Plain} */ system, /** @type {number} */ place) => {
      const value = part.means[place][metric];
      return { slice: `${short(part.by, 30)} = ${short(part.value, 40)} (${part.queries.toLocaleString("en")})`, system: visible(system.name), value, queries: part.queries, text: part.texts[place][metric] };
    })
  );
  const { label } = set.metrics[metric];
  const numbers = rows.map((/** @type {Plain} */ row) => row.value).filter(known);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const domain = low < high ? [low, high] : [0, 1];
  const drawing = set.drawings.slices;
  return figure({
    id: "slices",
    drawing,
    title: `Mean ${label} by slice`,
    lines: linesFor(drawing, label, Math.max(...set.systems.map((/** @type {Plain} */ each) => each.queries[metric]))),
    text: `Means of ${label} in ${counted(set.slices.length, "slice")} for ${counted(set.systems.length, "system")}; the table lists all numbers.`,
    tables: { rows },
    texts: { $low: domain[0], $high: domain[1] },
    heads: ["slice", "system", "mean", "queries"],
    rows: rows.map((/** @type {Plain} */ row) => [row.slice, row.system, row.text, row.queries]),
    least: 140 + 40 * set.systems.length,
  });
}

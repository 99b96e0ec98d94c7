// The overview: the verdict, the figures behind it, and what was measured.
"use strict";

/** @type {Record<string, string>} */
const SIGNS = { best: "★", gain: "▲", loss: "▼", same: "≈", gate: "✓", failed: "✕", doubt: "!", note: "·" };

/** @param {Plain} sentence */
function say(sentence) {
  const parts = sentence.parts.map((/** @type {string} */ part, /** @type {number} */ place) => (place % 2 ? h("b", null, named(part)) : visible(part)));
  return h("li", { class: sentence.kind }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[sentence.kind] || "·"), h("span", null, ...parts));
}

async function overview() {
  const { set } = current();
  const own = [...set.verdict];
  const last = own.findIndex((each) => ["doubt", "note"].includes(each.kind));
  own.splice(last < 0 ? own.length : last, 0, ...(times.verdict[set.name] || []));
  const several = page.datasets.length > 1;
  const parts = [
    h("h1", { tabindex: -1 }, named(page.title)),
    several ? across() : null,
    several ? h("h2", null, "Data set ", named(set.name)) : null,
    h("ul", { class: "verdict" }, ...own.map(say)),
    tiles(set),
    set.systems.length > 1 ? leaderboard(set) : null,
  ];
  const figures = [];
  if (set.drawings.means && set.systems.length > 1) figures.push(meansFigure(set, set.primary));
  const latency = (times.drawings[set.name] || {}).latency;
  if (latency) figures.push(fixedFigure("latency", latency));
  const sweeps = Object.entries(set.drawings).filter(([key]) => key.startsWith("sweep"));
  if (set.systems.length === 1 && set.drawings.depth) figures.push(fixedFigure("depth", set.drawings.depth, { still: "depth" }));
  parts.push(h("div", { class: "figures" }, ...figures));
  const stages = Object.entries(set.drawings).filter(([key]) => key.startsWith("stages"));
  if (stages.length) parts.push(section("Stages", h("div", { class: "figures" }, ...stages.map(([key, drawing]) => fixedFigure(key.replace(/\W+/g, "-"), drawing, { still: key })))));
  if (sweeps.length) parts.push(section("Swept options", h("div", { class: "figures small" }, ...sweeps.map(([key, drawing]) => fixedFigure(key.replace(/\W+/g, "-"), drawing, { still: key, title: drawing.template.title.text.replace(`${set.metrics[set.primary].label} by `, "") })))));
  const gates = [...set.gates, ...(times.gates[set.name] || [])];
  if (gates.length) parts.push(section("Gates", gateTable(gates)));
  if (set.previous) parts.push(sincePrevious(set.previous));
  const measured = facts([...set.facts, ...page.facts, ["made", times.made], ...(times.machine ? [["times measured on", times.machine]] : [])]);
  parts.push(h("details", { class: "folded" }, h("summary", null, "Setup"), measured));
  const left_out = [...set.left_out, ...page.left_out];
  if (left_out.length) parts.push(h("p", { class: "note" }, `Omitted to limit file size: ${left_out.join("; ")}.`));
  return parts;
}

/** All systems and metrics, the best mean bold, and how the primary metric differs from the baseline. @param {DatasetOnPage} set */
function leaderboard(set) {
  const { primary, baseline, metrics } = set;
  const chosen = set.leading;
  const body = set.systems.map((/** @type {Plain} */ system, /** @type {number} */ place) => {
    const means = chosen.map((/** @type {number} */ metric) => {
      const sign = mark(set, place, metric);
      return h("td", { class: "number" }, sign, sign ? " " : "", h(metrics[metric].best.includes(place) ? "strong" : "span", null, system.texts[metric]));
    });
    if (baseline === null) return [named(system.name), ...means];
    if (place === baseline) return [named(system.name), ...means, h("td", { class: "number soft", colspan: 3 }, "baseline")];
    const each = contrast(set, place, baseline, primary);
    const texts = each ? [each.texts.delta, each.texts.delta_interval, each.texts.p_value] : ["–", "–", "–"];
    return [named(system.name), ...means, ...texts.map((text) => h("td", { class: "number" }, text))];
  });
  const heads = [...chosen.map((/** @type {number} */ metric) => metrics[metric].label), ...(baseline === null ? [] : [`delta ${metrics[primary].label}`, level(set.systems.map((/** @type {any} */ _, /** @type {number} */ place) => contrast(set, place, baseline, primary)).find(Boolean)), "p, corrected"])];
  return table(["system", ...heads.map((label) => h("th", { scope: "col", class: "number" }, label))], body, "Leaderboard", "leaderboard");
}

/** @param {DatasetOnPage} set */
function tiles(set) {
  /** @param {string} figure @param {string} label @param {string} [target] */
  const tile = (figure, label, target) => {
    const inside = [h("strong", null, figure), h("span", null, label)];
    return h("li", null, target ? h("a", { href: target }, ...inside) : h("div", null, ...inside));
  };
  const list = set.tiles.map((/** @type {any[]} */ [figure, label, view, show]) => tile(figure, label, link(view, show ? { show } : {})));
  const gates = [...set.gates, ...(times.gates[set.name] || [])];
  if (gates.length) list.push(tile(`${gates.filter((each) => each.result === "passed").length}/${gates.length}`, "gates passed"));
  return h("ul", { class: "tiles" }, ...list);
}

/** Data sets side by side. */
function across() {
  /** @type {Map<string, (Plain | null)[]>} */
  const rows = new Map();
  page.datasets.forEach((/** @type {Plain} */ set, /** @type {number} */ place) => {
    for (const system of set.systems) {
      if (!rows.has(system.name)) rows.set(system.name, page.datasets.map(() => null));
      const row = rows.get(system.name);
      if (row) row[place] = system;
    }
  });
  const heads = ["system", ...page.datasets.map((/** @type {Plain} */ set) => h("th", { scope: "col", class: "number" }, h("a", { href: link("overview", { d: set.name }) }, named(set.name, 40)), h("br"), h("small", null, set.metrics[set.primary].label)))];
  const body = [...rows].map(([name, systems_]) => [
    named(name),
    ...systems_.map((system, place) => {
      const { primary } = page.datasets[place];
      return system ? valueCell(system.steps[primary], system.texts[primary]) : "";
    }),
  ]);
  return section("", page.across.length ? h("ul", { class: "verdict" }, ...page.across.map(say)) : null, table(heads, body, "Data sets side by side"));
}

/** @type {Record<string, string>} */
const GATE_SIGNS = { passed: "✓", FAILED: "✕", skipped: "·" };

/** @param {Plain[]} gates */
const gateTable = (gates) =>
  table(
    ["gate", "result", "why"],
    gates.map((gate) => [String(gate.number), h("td", { class: gate.result.toLowerCase() }, `${GATE_SIGNS[gate.result]} ${gate.result}`), visible(gate.reason)]),
    "Gates",
    "gates"
  );

/** @param {string[][]} rows */
const facts = (rows) => h("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [h("dt", null, visible(key)), h("dd", null, visible(value))]));

/** Means with intervals. @param {DatasetOnPage} set @param {number} metric */
function meansFigure(set, metric) {
  const rows = set.systems.map((/** @type {Plain} */ each, /** @type {number} */ place) => {
    const [low, high] = each.intervals[metric] || [null, null];
    const kind = set.baseline === null ? "" : place === set.baseline ? "baseline" : standing(contrast(set, place, set.baseline, metric));
    return { name: brief(each.name, 80), value: each.means[metric], low, high, kind, texts: [each.texts[metric], each.spans[metric]] };
  });
  const label = set.metrics[metric].label;
  const questions = Math.max(...set.systems.map((/** @type {Plain} */ each) => each.queries[metric]));
  const drawing = set.drawings.means;
  const said = rows.slice(0, 8).map((/** @type {Plain} */ row) => `${row.name} ${row.texts[0]}`);
  return figure({
    id: "means",
    still: "means",
    drawing,
    title: drawing.template.title.text.replace(/^Means/, `Mean ${label}`),
    lines: linesFor(drawing, label, questions),
    text: `Means of ${label}: ${said.join(", ")}.`,
    tables: { rows },
    texts: { $label: label },
    heads: ["system", "mean", "CI", "against the baseline"],
    rows: rows.map((/** @type {Plain} */ row) => [row.name, ...row.texts, row.kind]),
  });
}

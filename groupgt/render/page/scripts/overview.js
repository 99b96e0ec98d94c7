// The overview: the decision, the gates, all systems in one table, and the queries to look at first.
"use strict";

/** @type {Record<string, string>} */
const SIGNS = { best: "★", gain: "▲", loss: "▼", same: "≈", gate: "✓", failed: "✕", doubt: "!", note: "·" };

/** @param {Plain} sentence */
function say(sentence) {
  return h("li", { class: sentence.kind }, h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[sentence.kind] || "·"), h("span", null, ...partsOf(sentence)));
}

/** The parts of a sentence, names in bold. @param {Plain} sentence */
const partsOf = (sentence) => sentence.parts.map((/** @type {string} */ part, /** @type {number} */ place) => (place % 2 ? h("b", null, named(part)) : visible(part)));

// Shapes of badges, of the results of gates, and of marks on bars, in a square of 16.
/** @type {Record<string, string[]>} */
const SHAPES = {
  Blocked: ["M5 1h6l4 4v6l-4 4H5l-4-4V5z", "cut", "M4 7h8v2H4z"],
  Worse: ["M1 3h14L8 15z"],
  Better: ["M8 1l7 12H1z"],
  Passed: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", "tick", "m4.6 8.2 2.4 2.4 4.4-4.8"],
  Inconclusive: ["", "ring", "M8 2.4a5.6 5.6 0 1 0 0 11.2A5.6 5.6 0 0 0 8 2.4z"],
  allowed: ["", "ring", "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z", "ring", "m4.8 8.2 2.3 2.3 4-4.6"],
  missing: ["", "ring", "m4 4 8 8m0-8-8 8"],
};

/** An element of a drawing. @param {string} tag @param {Plain} attributes @param {...(Child | Element)} children */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined && value !== false) element.setAttribute(key, String(value));
  for (const child of children) if (child) element.append(/** @type {any} */ (child));
  return element;
}

/** @param {string} name */
function icon(name) {
  const [filled, ...rest] = SHAPES[name];
  const parts = filled ? [svg("path", { d: filled })] : [];
  for (let at = 0; at < rest.length; at += 2) parts.push(svg("path", { class: rest[at], d: rest[at + 1] }));
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, ...parts);
}

async function overview() {
  const { set } = current();
  const several = page.datasets.length > 1;
  const notes = [...set.notes, ...(times.verdict[set.name] || [])];
  const main = [
    several && page.across.length ? h("ul", { class: "verdict" }, ...page.across.map(say)) : null,
    page.overall ? overallCard() : card(set),
    several ? gateTable() : null,
    isBeside() ? beside() : null,
    several && (notes.length || set.previous || !isBeside()) ? h("h2", { class: "part" }, "Data set ", named(set.name)) : null,
    notes.length ? h("ul", { class: "verdict notes" }, ...notes.map(say)) : null,
    several ? null : gateList(set),
    isBeside() ? null : standings(set),
    set.previous ? sincePrevious(set.previous) : null,
  ];
  const rail = looked();
  return [
    h("h1", { class: "hidden", tabindex: -1 }, named(page.title)),
    h("div", { class: rail ? "grid" : "" }, h("div", { class: "first" }, ...main), rail, h("div", { class: "below" }, ...below(set))),
  ];
}

/** A badge, and the parts of a sentence. @param {string} badge @param {string[]} sentence */
const saying = (badge, sentence) => h("p", { class: "says" }, badge ? h("span", { class: "badge" }, icon(badge), badge) : null, " ", h("strong", null, ...spoken(sentence)));

/** @param {string[]} sentence */
const spoken = (sentence) => sentence.map((part, place) => (place % 2 ? named(part) : visible(part)));

/** The decision on a data set. @param {DatasetOnPage} set */
function card(set) {
  const { badge, sentence, evidence, note } = set.decision;
  const [first, ...rest] = evidence;
  return h(
    "section",
    { class: `card ${badge.toLowerCase()}`, "aria-label": "Decision" },
    saying(badge, sentence),
    first ? h("p", { class: "small" }, h("b", null, visible(first)), ...rest.map((/** @type {string} */ part) => ` · ${visible(part)}`)) : null,
    note ? h("p", { class: "small why" }, visible(note)) : null
  );
}

/** One decision over several data sets, and a line with the evidence on each. */
function overallCard() {
  const [badge, sentence, repeated] = /** @type {[string, string[], string[]]} */ (page.overall);
  const lines = page.datasets.flatMap((/** @type {DatasetOnPage} */ each) => {
    const { sentence: on, evidence, note } = each.decision;
    const more = [...evidence, note].filter(Boolean).join(" · ");
    return [h("dt", null, h("a", { href: link("overview", { d: each.name }) }, named(each.name))), h("dd", null, ...(repeated.includes(each.name) ? [] : spoken(on)), more ? h("span", { class: "small" }, ` ${visible(more)}`) : null)];
  });
  return h("section", { class: `card ${badge.toLowerCase()}`, "aria-label": "Decision" }, saying(badge, sentence), h("dl", { class: "per" }, ...lines));
}

/** The gates on a data set, failures first. @param {DatasetOnPage} set @returns {Gate[]} */
const gatesOn = (set) => [...set.gates, ...(times.gates[set.name] || [])].sort((one, other) => one.order - other.order || one.number - other.number);

/** What became of a gate, with a sign. @param {Gate} gate */
const statusOf = (gate) => h("span", { class: "status" }, icon({ failed: "Blocked", allowed: "allowed", passed: "Passed" }[gate.kind] || "allowed"), gate.status);

/** A link to the queries that fail a gate. @param {DatasetOnPage} set @param {Gate} gate @param {...Child} children */
const toQueries = (set, gate, ...children) =>
  gate.shown && set.metrics.some((/** @type {Plain} */ each) => each.name === gate.shown?.m) ? h("a", { href: link("questions", { d: set.name, ...gate.shown }), title: "Show the queries that count against it, worst first" }, ...children) : h("span", null, ...children);

/** What a gate asks for. @param {Gate} gate @returns {Child[]} */
const asking = (gate) => [h("b", null, visible(gate.measure)), visible(gate.rest)];

/** Gates in rows, data sets in columns, failures first; gates that passed on all data sets are folded unless all did. */
function gateTable() {
  const sets = page.datasets;
  /** @type {Map<string, (Gate | null)[]>} */
  const rows = new Map();
  sets.forEach((/** @type {DatasetOnPage} */ set, /** @type {number} */ place) => {
    for (const gate of gatesOn(set)) {
      const key = `${gate.number} ${gate.system}`;
      const row = rows.get(key) || sets.map(() => null);
      row[place] = gate;
      rows.set(key, row);
    }
  });
  if (!rows.size) return null;
  const of = (/** @type {(Gate | null)[]} */ row) => row.flatMap((gate) => gate || []);
  const least = (/** @type {(Gate | null)[]} */ row) => Math.min(...of(row).map((gate) => gate.order));
  const ordered = [...rows.values()].sort((one, other) => least(one) - least(other) || of(one)[0].number - of(other)[0].number);
  const every = ordered.filter((row) => of(row).every((gate) => gate.kind === "passed"));
  const passed = every.length < ordered.length ? every : [];
  const cell = (/** @type {Gate | null} */ gate, /** @type {number} */ place) =>
    h("td", { class: gate ? gate.kind : "" }, gate ? [h("span", { class: "set" }, named(sets[place].name)), toQueries(sets[place], gate, statusOf(gate), " ", h("span", { class: "value" }, gate.value)), gate.note ? h("small", null, ` ${visible(gate.note)}`) : null] : "–");
  const drawn = (/** @type {(Gate | null)[][]} */ some) =>
    h("table", null, h("thead", null, h("tr", null, h("th", { scope: "col" }, hidden("Gate")), ...sets.map((/** @type {DatasetOnPage} */ set) => h("th", { scope: "col" }, named(set.name))))), h("tbody", null, ...some.map((row) => h("tr", null, h("th", { scope: "row" }, ...asking(of(row)[0])), ...row.map(cell)))));
  return h(
    "section",
    { class: "gates", "aria-label": "Gates" },
    h("h2", null, visible(page.gates_title)),
    drawn(ordered.filter((row) => !passed.includes(row))),
    passed.length ? h("details", null, h("summary", null, icon("Passed"), `${counted(passed.length, "gate")} passed on every data set`), drawn(passed)) : null
  );
}

/** Gates, each value on a bar against its limit. @param {DatasetOnPage} set */
function gateList(set) {
  const rows = gatesOn(set);
  if (!rows.length) return null;
  const line = (/** @type {Gate} */ each) =>
    h(
      "li",
      { class: each.kind },
      statusOf(each),
      h("span", { class: "what" }, ...asking(each), each.note ? h("small", null, ` ${visible(each.note)}`) : null),
      each.shares ? limitBar(each.kind, each.shares, each.over) : h("span", null),
      h("span", { class: "value" }, toQueries(set, each, h("b", null, each.value)))
    );
  // What passed on other systems than those with a gate that failed is folded.
  const about = rows.filter((each) => each.kind === "failed").map((each) => each.system);
  const folded = rows.filter((each) => about.length && each.kind === "passed" && !about.includes(each.system));
  const shown = rows.filter((each) => !folded.includes(each));
  return h(
    "section",
    { class: "gates", "aria-label": "Gates" },
    h("h2", null, visible(set.gates_title)),
    h("ul", null, ...shown.map(line)),
    folded.length ? h("details", null, h("summary", null, icon("Passed"), onOthers(folded.length)), h("ul", null, ...folded.map(line))) : null
  );
}

/** What is folded below the gates. @param {number} count */
const onOthers = (count) => `${count} ${count === 1 ? "gate" : "gates"} on other systems passed`;

/** @param {string} kind @param {number[]} shares @param {boolean} over */
function limitBar(kind, [value, limit], over) {
  const within = over ? Math.min(value, limit) : value;
  const part = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) => svg("rect", { class: name, x: `${from}%`, y: 3, width: `${Math.max(0, to - from)}%`, height: 8 });
  return svg("svg",
    { class: "limit-bar", height: 14, "aria-hidden": "true" },
    part("track", 0, 100),
    part("value", 0, within),
    over ? part(kind === "failed" ? "over failed" : "over", within, value) : null,
    svg("line", { class: "limit", x1: `${limit}%`, x2: `${limit}%`, y1: 0, y2: 14 })
  );
}

// The most data sets in one table of systems; with this many there is no room for complete queries.
const MOST_BESIDE = 3;

const isBeside = () => page.datasets.length > 1 && page.datasets.length <= MOST_BESIDE;

/** Whether the decision is against a system, whose rows are shaded. @param {DatasetOnPage} set @param {string} name */
const isFocus = (set, name) => ["Blocked", "Worse"].includes(set.decision.badge) && name === set.decision.system;

/** What stands in place of the values of a system that failed. @param {string} why */
const failure = (why) => `failed: ${visible(why)}`;

/** Systems in rows, data sets side by side, their changes on one axis; systems that failed on all of them come last. */
function beside() {
  const sets = page.datasets;
  const tables = sets.map((/** @type {DatasetOnPage} */ set) => set.standings);
  /** @type {Map<string, (StandingRow | undefined)[]>} */
  const rows = new Map();
  tables.forEach((/** @type {Standings} */ each, /** @type {number} */ place) => {
    for (const row of each.rows) rows.set(row.name, Object.assign(rows.get(row.name) || sets.map(() => undefined), { [place]: row }));
  });
  const keys = ["mean", "place", "delta", "complete"].filter((key) => key === "place" || (key !== "complete" || sets.length < MOST_BESIDE) && tables.some((/** @type {Standings} */ each) => each.columns.some(([name]) => name === key)));
  const label = (/** @type {Standings} */ each, /** @type {string} */ key) => (each.columns.find(([name]) => name === key) || ["", ""])[1];
  const heads = tables.flatMap((/** @type {Standings} */ each) => keys.map((key) => h("th", { scope: "col", class: key }, key === "place" ? [hidden(each.interval || "bar"), axis(sparse(each.ticks))] : visible(label(each, key)))));
  const failed = sets.map((/** @type {DatasetOnPage} */ set) => new Map(set.failed));
  const cells = (/** @type {StandingRow | undefined} */ row, /** @type {string} */ name, /** @type {number} */ place) => [
    h("td", { class: "set" }, named(sets[place].name)),
    ...(failed[place].has(name) ? [h("td", { class: "failure", colspan: keys.length }, failure(failed[place].get(name) || ""))] : valuesIn(row, place)),
  ];
  const valuesIn = (/** @type {StandingRow | undefined} */ row, /** @type {number} */ place) =>
    keys.map((key) => h("td", { class: `${key} ${row ? row.kind.replace(" ", "-") : ""}` }, row ? (key === "place" ? changeBar(row, tables[place].ticks) : [row.cells[key] ?? "–", signOf(row.marks[key])]) : key === "mean" ? "–" : ""));
  const first = [...rows.values()].map((row) => /** @type {StandingRow} */ (row.find(Boolean)));
  const body = first.map((/** @type {StandingRow} */ row) =>
    h("tr", { class: sets.some((/** @type {DatasetOnPage} */ set) => isFocus(set, row.name)) ? "focus" : row.kind === "baseline" ? "baseline" : "" }, h("th", { scope: "row", class: "name-cell" }, named(row.base), row.options ? h("span", { class: "options" }, ` ${visible(row.options)}`) : null), ...(rows.get(row.name) || []).flatMap((each, place) => cells(each, row.name, place)))
  );
  const names = new Set(failed.flatMap((/** @type {Map<string, string>} */ each) => [...each.keys()]));
  for (const name of names) if (!rows.has(name)) body.push(h("tr", null, h("th", { scope: "row", class: "name-cell" }, named(name)), ...sets.flatMap((/** @type {DatasetOnPage} */ _, /** @type {number} */ place) => cells(undefined, name, place))));
  const { title, baseline } = tables[0];
  const legend = new Map(tables.flatMap((/** @type {Standings} */ each) => each.legend));
  return h(
    "section",
    { class: "board" },
    h("div", { class: "board-head" }, h("h2", null, title, baseline ? h("span", { class: "unbroken" }, named(baseline)) : null)),
    h(
      "table",
      { class: "beside" },
      h("caption", { class: "hidden" }, "Systems on each data set"),
      h("colgroup", null, h("col", { class: "name-cell" }), ...sets.flatMap(() => keys.map((key) => h("col", { class: key })))),
      h("thead", null, h("tr", null, h("th", { rowspan: 2, scope: "col", class: "name-cell" }, "System"), ...sets.map((/** @type {DatasetOnPage} */ set) => h("th", { scope: "colgroup", colspan: keys.length, class: "over" }, h("a", { href: link("overview", { d: set.name }) }, named(set.name)), " ", h("span", { class: "small" }, visible(set.population))))), h("tr", null, ...heads)),
      h("tbody", null, ...body)
    ),
    h("p", { class: "small foot" }, ...[...legend].map(([kind, words]) => h("span", { class: "sign-of" }, legendSign(kind), words)), ...whiskers(sets), ...countsOver(sets))
  );
}

/** What whiskers are, on each data set if they differ. @param {DatasetOnPage[]} sets */
function whiskers(sets) {
  const told = sets.map((set) => set.standings.interval);
  const isOne = new Set(told).size === 1;
  return told.flatMap((text, place) => (text && !(isOne && place) ? [h("span", { class: "sign-of" }, `whiskers: ${text}`, isOne ? null : [" on ", named(sets[place].name)])] : []));
}

/** The note on counts over trials. @param {DatasetOnPage[]} sets */
const countsOver = (sets) => [...new Set(sets.map((set) => set.trials_note))].flatMap((text) => (text ? [` ${text}`] : []));

/** What follows a value that differs significantly. @param {string | undefined} sign */
const signOf = (sign) => (sign ? h("i", { class: "mark-sign" }, sign, hidden(sign === "▲" ? " significantly better" : " significantly worse")) : null);

/** Leaderboard and paired differences in one table. @param {DatasetOnPage} set */
function standings(set) {
  const { title, baseline, columns, interval, ticks, rows, legend, note } = set.standings;
  const { values } = current();
  const [sorted, down] = sorting(values, `mean:${set.metrics[set.primary].order}`);
  const ordered = [...rows].sort((one, other) => compared(one.sort[sorted], other.sort[sorted], down));
  const heads = columns.map(([key, label]) => sorter(key, visible(label), sorted, down, `col ${key.replace(/\d/, "")}`));
  heads.splice(2, 0, h("th", { scope: "col", class: "col place" }, hidden(interval || "bar"), axis(ticks)));
  const choose = rows.length > 1 ? select("sort", "Sort by", columns, sorted, (key) => change({ sort: `${key}:${key === "name" ? "up" : "down"}` })) : null;
  const whole = h(
    "table",
    { class: "standings" },
    h("caption", { class: "hidden" }, `Systems by ${set.metrics[set.primary].label}`),
    h("thead", null, h("tr", null, ...heads)),
    ...ordered.map((row) => standingRow(row, columns, ticks, isFocus(set, row.name))),
    ...set.failed.map((/** @type {[string, string]} */ [name, why]) =>
      h("tbody", { class: "failed" }, h("tr", null, h("th", { scope: "row", class: "name-cell" }, named(name)), h("td", { colspan: columns.length }, failure(why))))
    )
  );
  const signs = legend.map(([kind, words]) => h("span", { class: "sign-of" }, legendSign(kind), words));
  return h(
    "section",
    { class: "board" },
    h("div", { class: "board-head" }, h("h2", null, title, baseline ? h("span", { class: "unbroken" }, named(baseline)) : null), choose),
    h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Systems" }, whole),
    h("p", { class: "small foot" }, ...signs, ...whiskers([set]), ...(note ? [h("br"), visible(note)] : []), ...countsOver([set]))
  );
}

/** One system: its row, and the details that it opens. @param {StandingRow} row @param {[string, string][]} columns @param {[number, string, boolean][]} ticks @param {boolean} focused */
function standingRow(row, columns, ticks, focused) {
  const id = `row-${encodeURIComponent(row.name)}`;
  const details = h("tr", { class: "details", id, hidden: true }, h("td", { colspan: columns.length + 1 }, h("dl", null, ...row.details.flatMap(fact), ...queriesOf("Lost", row.lost), ...queriesOf("Gained", row.gained))));
  const open = () => {
    details.hidden = !details.hidden;
    opener.setAttribute("aria-expanded", String(!details.hidden));
  };
  const opener = h("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": id }, named(row.base), row.options ? h("span", { class: "options" }, ` ${visible(row.options)}`) : null);
  const cells = columns.slice(1).map(([key]) => h("td", { class: `col ${key.replace(/\d/, "")}` }, row.cells[key] ?? "–", signOf(row.marks[key])));
  cells.splice(1, 0, h("td", { class: "col place" }, changeBar(row, ticks)));
  const line = h("tr", { onclick: (/** @type {any} */ event) => event.target.closest("a") || open() }, h("th", { scope: "row", class: "name-cell" }, opener), ...cells);
  return h("tbody", { class: `${row.kind.replace(" ", "-")}${focused ? " focus" : ""}` }, line, details);
}

/** @param {[string, string]} pair */
const fact = ([term, text]) => [h("div", null, h("dt", null, visible(term)), h("dd", null, visible(text)))];

/** @param {string} title @param {string[]} qids */
const queriesOf = (title, qids) => (qids.length ? [h("div", null, h("dt", null, title), h("dd", null, ...qids.flatMap((qid) => [h("a", { href: link("question", { id: qid }) }, visible(qid)), " "])))] : []);

// How far from 0 the label of a tick stands on a short axis, in percent.
const APART = 28;

/** The ticks of a short axis, without the labels between its ends and 0. @param {[number, string, boolean][]} ticks @returns {[number, string, boolean][]} */
function sparse(ticks) {
  const zero = ticks.find(([, , isZero]) => isZero);
  return ticks.map(([at, text, isZero], place) => [at, isZero || ((place === 0 || place === ticks.length - 1) && (!zero || Math.abs(at - zero[0]) >= APART)) ? text : "", isZero]);
}

// The width of a character on the narrowest axis, in percent, by which labels were chosen.
const CHAR = 100 / 22;

/** Where the label of a tick stands: in the middle above it, or at an end of the axis. @param {number} at @param {string} text @returns {[number, string]} */
function labelAt(at, text) {
  const half = (text.length * CHAR) / 2;
  return at < half ? [0, "start"] : at > 100 - half ? [100, "end"] : [at, "middle"];
}

/** Ticks above the bars. @param {[number, string, boolean][]} ticks */
function axis(ticks) {
  return svg("svg", { class: "axis", height: 20, "aria-hidden": "true" }, ...ticks.flatMap(([at, text, isZero]) => [svg("line", { class: isZero ? "zero" : "tick", x1: `${at}%`, x2: `${at}%`, y1: 14, y2: 20 }), svg("text", { class: isZero ? null : "end", x: `${labelAt(at, text)[0]}%`, y: 10, "text-anchor": labelAt(at, text)[1] }, text)]));
}

/** A difference with its CI, on the axis of all rows. @param {StandingRow} row @param {[number, string, boolean][]} ticks */
function changeBar(row, ticks) {
  const lines = ticks.map(([at, , isZero]) => svg("line", { class: isZero ? "zero" : "tick", x1: `${at}%`, x2: `${at}%`, y1: 0, y2: 30 }));
  const whole = svg("svg", { class: "bar-of", height: 30, role: "img", "aria-label": visible(row.label) }, ...lines);
  if (row.limit) whole.append(svg("line", { class: row.limit[1] ? "limit failed" : "limit", x1: `${row.limit[0]}%`, x2: `${row.limit[0]}%`, y1: 2, y2: 28 }));
  if (row.bar) {
    const [at, low, high] = row.bar;
    const zero = ticks.find(([, , isZero]) => isZero);
    if (zero && row.kind !== "baseline") whole.append(svg("rect", { class: "change", x: `${Math.min(at, zero[0])}%`, width: `${Math.abs(at - zero[0])}%`, y: 11, height: 8 }));
    if (known(low)) whole.append(svg("line", { class: "whisker", x1: `${low}%`, x2: `${high}%`, y1: 15, y2: 15 }), ...[low, high].map((end) => svg("line", { class: "whisker", x1: `${end}%`, x2: `${end}%`, y1: 11, y2: 19 })));
    whole.append(svg("svg", { x: `${at}%`, y: 15, overflow: "visible" }, dotOf(row.kind)));
  }
  return whole;
}

/** The sign of a system on its bar. @param {string} kind */
function dotOf(kind) {
  /** @type {Record<string, string>} */
  const paths = { better: "M0-6 6 5H-6z", worse: "M0 6 6-5H-6z", baseline: "M0-5 5 0 0 5-5 0z", limit: "M0-8V8" };
  return paths[kind] ? svg("path", { class: `dot ${kind}`, d: paths[kind] }) : svg("circle", { class: "dot", r: 4 });
}

/** A sign in the legend. @param {string} kind */
const legendSign = (kind) => svg("svg", { class: "icon legend-sign", viewBox: "-8 -8 16 16", "aria-hidden": "true" }, dotOf(kind));

// Queries to look at first.
const LOOKED = 3;

/** The queries to look at first, with what they lack: lost ones first, those of each data set in turn. */
function looked() {
  const sets = isBeside() ? page.datasets.filter((/** @type {DatasetOnPage} */ set) => set.first.queries.length) : [current().set].filter((set) => set.first.queries.length);
  if (!sets.length) return null;
  const why = [...new Set(sets.map((/** @type {DatasetOnPage} */ set) => set.first.why))].join(" ");
  const places = Array.from({ length: LOOKED }, (_, place) => place);
  const queries = places.flatMap((place) => sets.flatMap((/** @type {DatasetOnPage} */ set) => set.first.queries.slice(place, place + 1).map((query) => ({ ...query, set })))).sort((one, other) => Number(other.lost) - Number(one.lost)).slice(0, LOOKED);
  const one = (/** @type {Plain} */ each) =>
    h(
      "li",
      null,
      h("p", { class: "query-head" }, h("a", { href: link("question", { id: each.qid, d: each.set.name }) }, named(each.qid)), h("span", { class: "small became" }, isBeside() ? [named(each.set.name), " · "] : null, h("span", { class: "unbroken" }, each.became))),
      each.text ? h("p", { class: "query-text" }, brief(each.text, 200)) : null,
      ...each.missing.map((/** @type {[string, string]} */ [names, where]) => h("p", { class: "small lacks" }, icon("missing"), h("span", null, h("b", null, "Missing "), visible(names), " ", h("span", { class: "soft-text" }, where))))
    );
  return h("aside", { "aria-label": "Queries to look at first" }, h("h2", null, "Look at these first"), h("p", { class: "small" }, visible(why)), h("ol", null, ...queries.map(one)), ...sets.map((/** @type {DatasetOnPage} */ set) => h("p", null, h("a", { href: link("questions", { d: set.name }) }, set.first.all, isBeside() ? [" of ", named(set.name)] : null))));
}

/** What is looked at on request. @param {DatasetOnPage} set */
function below(set) {
  const folded = (/** @type {string} */ title, /** @type {(Child | Child[])[]} */ ...inside) => h("details", { class: "folded", ontoggle: redraw }, h("summary", null, title), ...inside);
  const drawn = (/** @type {RegExp} */ pattern) => Object.entries(set.drawings).filter(([key]) => pattern.test(key)).map(([key, drawing]) => fixedFigure(key.replace(/\W+/g, "-"), drawing));
  const parts = [];
  if (isBeside()) parts.push(folded(`Systems on ${visible(set.name)} in full`, standings(set)));
  else if (page.datasets.length > 1) parts.push(folded("Data sets side by side", across()));
  const latency = (times.drawings[set.name] || {}).latency;
  const took = Object.entries(times.systems[set.name] || {});
  if (took.length) {
    const rows = took.map(([name, each]) => [named(name), ...each.texts.map((text) => h("td", { class: "number" }, text))]);
    const heads = ["system", ...times.columns.map((/** @type {string} */ label) => h("th", { scope: "col", class: "number" }, label))];
    parts.push(folded("Times", latency ? fixedFigure("latency", latency) : null, table(heads, rows, "Times of systems")));
  }
  const sweeps = drawn(/^sweep/);
  if (sweeps.length) parts.push(folded("Sweeps", h("div", { class: "figures small" }, ...sweeps)));
  const stages = drawn(/^stages/);
  if (stages.length) parts.push(folded("Stages", h("div", { class: "figures" }, ...stages)));
  if (set.systems.length === 1 && set.drawings.depth) parts.push(folded("Depth", ...drawn(/^depth$/)));
  const measured = facts([...set.facts, ...page.facts, ["made", times.made], ...(times.machine ? [["times measured on", times.machine]] : [])]);
  parts.push(folded("Setup", ...set.tests.map((/** @type {string} */ line) => h("p", { class: "soft" }, visible(line))), measured));
  const left_out = [...set.left_out, ...page.left_out];
  if (left_out.length) parts.push(h("p", { class: "note" }, `Omitted to limit file size: ${left_out.join("; ")}.`));
  return parts;
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
  return table(heads, body, "Data sets side by side");
}

/** @param {string[][]} rows */
const facts = (rows) => h("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [h("dt", null, visible(key)), h("dd", null, visible(value))]));

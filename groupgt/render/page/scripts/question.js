// One query: its groups, the rankings side by side, and worked examples of the formulas.
"use strict";

/** The details of a question, with what each result hits by rank; null where they were left out. @param {DatasetOnPage} set @param {number} at */
async function detailOf(set, at) {
  const place = page.datasets.indexOf(set);
  const number = set.chunks.findIndex((/** @type {number[]} */ some) => some.includes(at));
  if (number < 0) return null;
  const rows = await block(`details-${place}-${number}`);
  const row = rows.find((/** @type {any[]} */ each) => each[0] === at);
  if (!row) return null;
  const [, groups, ids, homes, rankings, worked] = row;
  return {
    number,
    ids,
    homes,
    worked,
    groups: groups.map((/** @type {any[]} */ [label, weight, alternatives, cannot]) => ({ name: label, weight, alternatives, cannot })),
    rankings: rankings.map((/** @type {any[] | null} */ each) => {
      if (!each) return null;
      const [results, own, scores, marks, far, trials] = each;
      const met = new Map();
      for (const [rank, kind, found] of marks) if (kind === 0) for (const group of found) met.set(group, rank);
      return { results, ids: own, scores, marks: new Map(marks.map((/** @type {any[]} */ mark) => [mark[0], mark])), far, met, trials };
    }),
  };
}

/** The passages of a question, by id. @param {DatasetOnPage} set @param {Plain} detail @returns {Promise<Map<string, string>>} */
async function passagesOf(set, detail) {
  const place = page.datasets.indexOf(set);
  const found = new Map();
  const numbers = [...new Set(detail.homes)].filter((number) => number >= 0);
  const parts = new Map(await Promise.all(numbers.map(async (number) => /** @type {[any, any]} */ ([number, { ...(await block(`others-${place}-${number}`)), ...(await block(`passages-${place}-${number}`)) }]))));
  detail.ids.forEach((/** @type {string} */ id, /** @type {number} */ order) => {
    const part = parts.get(detail.homes[order]);
    if (part && Object.hasOwn(part, id)) found.set(id, part[id]);
  });
  return found;
}

async function question() {
  const { set, values, metric, place } = current();
  const all = await block(`questions-${place}`);
  const qid = values.get("id");
  const at = all.qids.indexOf(qid === null ? all.qids[0] : qid);
  if (at < 0) return [h("h1", { tabindex: -1 }, "No such query"), h("p", null, "This page does not contain the query ", named(qid), "."), h("p", null, h("a", { href: link("questions") }, "All queries"))];
  const every = await Promise.all(set.metrics.map((/** @type {any} */ _, /** @type {number} */ each) => valuesOf(all, place, each)));
  const { kept } = chosen(set, all, every[metric], values);
  const detail = await detailOf(set, at);
  const passages = detail ? await passagesOf(set, detail) : new Map();
  const systems_ = besides(set, values);
  const text = (all.texts || [])[at];
  return [
    steps(all, kept, at, values),
    h("h1", { tabindex: -1, class: "asked" }, text ? [h("small", null, "Query ", named(all.qids[at], 200)), h("bdi", null, visible(text).slice(0, 2000))] : ["Query ", named(all.qids[at], 200)]),
    h("p", { class: "soft" }, Object.keys(all.slices).map((by) => `${short(by, 40)} = ${short(all.slices[by][at], 60)}`).join(" · ")),
    all.complete.length ? solvedBy(set, all, at) : null,
    set.systems.length > 1 ? pickers(set, systems_) : null,
    detail ? groupCards(set, detail, passages, systems_) : h("p", { class: "note" }, set.chunks.length ? "groupgt omitted the results for this query to limit the file size." : "This page does not contain the results for this query. See \"Setup\" in the overview."),
    detail ? section("Rankings", legend(systems_.map((system) => detail.rankings[system])), h("div", { class: "rankings" }, ...systems_.map((system) => ranking(set, detail, passages, system)))) : null,
    byLabels(all),
    section(detail && detail.worked ? "Metrics: worked examples" : "Metrics", formulas(set, every, detail, systems_, at)),
  ];
}

/** The systems side by side: those asked for, else the best and the baseline. @param {DatasetOnPage} set @param {URLSearchParams} values */
function besides(set, values) {
  const asked_ = values.getAll("s").map((each) => systemAt(set, each, -1)).filter((each) => each >= 0);
  const first = systemAt(set, values.get("a"), set.subject ?? 0);
  const other = set.baseline === null || set.baseline === first ? (first === 0 ? 1 : 0) : set.baseline;
  const wanted = asked_.length ? asked_ : [first, systemAt(set, values.get("b"), other)];
  return [...new Set(wanted)].filter((each) => each < set.systems.length).slice(0, 3);
}

/** @param {Queries} all @param {number[]} kept @param {number} at @param {URLSearchParams} values */
function steps(all, kept, at, values) {
  const order = kept.indexOf(at);
  /** @param {number} to @param {string} label @param {string} id */
  const step = (to, label, id) => (order >= 0 && to >= 0 && to < kept.length ? h("a", { id, href: link("question", { id: all.qids[kept[to]] }, true) }, label) : h("span", { class: "soft" }, label));
  const back = Object.fromEntries([...new Set(values.keys())].filter((key) => !["id", "s"].includes(key)).map((key) => [key, values.getAll(key)]));
  return h("nav", { class: "pager", "aria-label": "Queries" }, step(order - 1, "← previous", "previous"), h("a", { href: link("questions", back) }, order >= 0 ? `${(order + 1).toLocaleString("en")} of ${counted(kept.length, "query", "queries")}` : "all queries"), step(order + 1, "next →", "next"));
}

/** @param {DatasetOnPage} set @param {Queries} all @param {number} at */
function solvedBy(set, all, at) {
  const solved = completedBy(all, at);
  /** @param {number} system */
  const often = (system) => (all.complete[at][system] < 1 ? ` (in ${Number((100 * all.complete[at][system]).toFixed(1))}% of its trials)` : "");
  const isWhole = solved.every((system) => !often(system));
  const within = set.cutoff ? ` ${set.cutoff}` : "";
  if (at in all.out) return h("p", { class: "note" }, all.out[at]);
  if (set.systems.length === 1) return h("p", null, solved.length ? `Complete${within}${often(0)}.` : `Not complete${within}.`);
  if (!solved.length) return h("p", null, `Not complete${within} in any system.`);
  if (isWhole && solved.length === set.systems.length) return h("p", null, `Complete in every system${within}.`);
  const others = set.systems.map((/** @type {any} */ _, /** @type {number} */ place) => place).filter((/** @type {number} */ place) => !solved.includes(place));
  const [said, told] = isWhole && others.length < solved.length ? ["every system except ", others] : ["", solved];
  /** @param {number} place */
  const between = (place) => (!place ? "" : place < told.length - 1 ? ", " : " and ");
  return h("p", null, `Complete${within} in ${said}`, ...told.flatMap((/** @type {number} */ system, /** @type {number} */ place) => [between(place), h("b", null, named(set.systems[system].name, 60)), isWhole ? "" : often(system)]), ".");
}

/** @param {DatasetOnPage} set @param {number[]} systems_ */
function pickers(set, systems_) {
  const options = set.systems.map((/** @type {Plain} */ each) => [each.name, each.name]);
  const fields = [0, 1, 2].map((order) => {
    const now = systems_[order];
    if (order > systems_.length) return null;
    const list = order ? [["", "none"], ...options] : options;
    return select(`beside-${order}`, order ? ["", "next to", "and"][order] : "Results of", list, now === undefined ? "" : set.systems[now].name, (value) => {
      const names = systems_.map((system) => set.systems[system].name);
      if (value) names[order] = value;
      else names.splice(order, 1);
      change({ s: [...new Set(names)] });
    });
  });
  return h("div", { class: "controls" }, ...fields);
}

/** Where a group's first hit is, and in how many trials there is one. @param {Plain} detail @param {number} system @param {number} group @param {number} cutoff @returns {[string, string]} */
function whereMet(detail, system, group, cutoff) {
  const [kind, said] = whereFirst(detail, system, group, cutoff);
  const trials = detail.rankings[system]?.trials;
  return [kind, trials ? `${said} in the first trial; ${trials[group]}` : said];
}

/** @param {Plain} detail @param {number} system @param {number} group @param {number} cutoff @returns {[string, string]} */
function whereFirst(detail, system, group, cutoff) {
  const ranking_ = detail.rankings[system];
  const rank = ranking_ ? ranking_.met.get(group) : undefined;
  if (rank === undefined && detail.groups[group].cannot) return ["missed", `✕ cannot be covered: ${detail.groups[group].cannot}`];
  if (!ranking_ || !ranking_.results) return ["missed", "no results"];
  if (rank === undefined && ranking_.results === 1) return ["missed", "✕ not its only result"];
  if (rank === undefined) return ["missed", `✕ not among its ${ranking_.results.toLocaleString("en")} results`];
  return rank <= cutoff ? ["met", `✓ rank ${rank}`] : ["late", `△ first hit at rank ${rank.toLocaleString("en")}`];
}

/** @param {DatasetOnPage} set */
const cutoffOf = (set) => {
  const number = /^@(\d+)$/.exec(set.cutoff);
  return number ? Number(number[1]) : Infinity;
};

/** @param {Plain} group @param {number} number @returns {Child[]} */
function groupTitle(group, number) {
  const plain = group.name === `group ${number + 1}`;
  return plain ? [`Group ${number + 1}`] : [`Group ${number + 1}: `, named(group.name, 200)];
}

/** @param {DatasetOnPage} set @param {Plain} detail @param {Map<string, string>} passages @param {number[]} systems_ */
function groupCards(set, detail, passages, systems_) {
  const cutoff = cutoffOf(set);
  const cards = detail.groups.map((/** @type {Plain} */ group, /** @type {number} */ number) =>
    h(
      "li",
      { class: "group" },
      h("h3", null, ...groupTitle(group, number), group.weight === 1 ? null : h("span", { class: "tag" }, `weight ${group.weight}`)),
      h(
        "ul",
        { class: "where" },
        ...systems_.map((system) => {
          const [kind, said] = whereMet(detail, system, number, cutoff);
          return h("li", { class: kind }, h("span", null, named(set.systems[system].name, 40), `: ${said}`));
        })
      ),
      h(
        "ol",
        { class: "alternatives" },
        ...group.alternatives.map((/** @type {any[]} */ [order, grade], /** @type {number} */ at) =>
          h("li", null, at ? h("span", { class: "or" }, "or ") : null, passage(detail.ids[order], passages.get(detail.ids[order]), grade === 1 ? null : h("span", { class: "tag" }, grade > 0 ? `grade ${grade}` : grade === 0 ? "not relevant" : "not judged")))
        )
      )
    )
  );
  return section(`${counted(detail.groups.length, "group")} to cover`, detail.groups.length ? h("ul", { class: "groups" }, ...cards) : h("p", null, "This query has no groups."));
}

/** An id with its passage. @param {string} id @param {string | undefined} text @param {Child} [more] */
function passage(id, text, more) {
  if (!text && visible(id).length <= 200) return h("span", { class: "passage" }, named(id, 200), " ", more);
  const whole = text || id;
  return h(
    "details",
    { class: "passage" },
    h("summary", null, named(id, 80), " ", more, text ? h("span", { class: "snippet", dir: "auto" }, brief(text.replace(/\s+/g, " ").trim(), 160)) : null),
    h("p", { class: "whole", dir: "auto" }, text ? null : hidden("whole: "), visible(whole))
  );
}

// Kinds of results: class, sign, label, and text in the legend.
const MARKS = [
  ["first", "✓", "covers group", "covers a new group (number)"],
  ["again", "↻", "repeats group", "covers only groups already covered"],
  ["irrelevant", "✕", "judged non-relevant", "judged non-relevant"],
  ["unjudged", "·", "not judged", "not judged"],
  ["harmful", "!", "harmful", "harmful: must not be retrieved"],
];

/** The marks that these rankings have. @param {(Plain | null)[]} rankings */
function legend(rankings) {
  const occurs = new Set();
  for (const each of rankings) {
    if (!each) continue;
    for (const mark of each.marks.values()) occurs.add(mark[1]);
    if (each.marks.size < each.results) occurs.add(3);
  }
  return h("ul", { class: "legend" }, ...MARKS.filter((_, place) => occurs.has(place)).map(([kind, sign, , said]) => h("li", null, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }, sign), said)));
}

/** @param {DatasetOnPage} set @param {Plain} detail @param {Map<string, string>} passages @param {number} system */
function ranking(set, detail, passages, system) {
  const own = detail.rankings[system];
  const title = h("h3", null, named(set.systems[system].name, 80));
  if (!own || !own.results) return h("div", { class: "ranking" }, title, h("p", { class: "note" }, "No results for this query."));
  const cutoff = cutoffOf(set);
  const rows = own.ids.map((/** @type {number} */ order, /** @type {number} */ place) => resultRow(own, detail, passages, place + 1, order, cutoff));
  const far = Object.entries(own.far);
  if (far.length) rows.push(h("tr", { class: "gap" }, h("td", { colspan: 4 }, "…")));
  for (const [rank, order] of far) rows.push(resultRow(own, detail, passages, Number(rank), order, cutoff));
  const rest = own.results - own.ids.length - far.length;
  const head = h("tr", null, ...["rank", "mark", "result", ...(own.scores ? ["score"] : [])].map((label) => h("th", { scope: "col", class: label === "rank" || label === "score" ? "number" : null }, label)));
  const missed = detail.groups.map((/** @type {any} */ _, /** @type {number} */ number) => number).filter((/** @type {number} */ number) => whereMet(detail, system, number, cutoff)[0] !== "met");
  return h(
    "div",
    { class: "ranking" },
    title,
    !detail.groups.length
      ? null
      : missed.length
      ? h("p", { class: "missing" }, h("span", { class: "sign", "aria-hidden": "true" }, "✕ "), set.cutoff ? `Missed ${set.cutoff}: ` : "Missed: ", missed.flatMap((/** @type {number} */ number, /** @type {number} */ place) => [place ? "; " : "", `group ${number + 1} `, `(${whereMet(detail, system, number, cutoff)[1].replace(/^[✕△] /, "")})`]))
      : h("p", { class: "whole-met" }, h("span", { class: "sign", "aria-hidden": "true" }, "✓ "), `Complete${set.cutoff ? ` ${set.cutoff}` : ""}.`),
    h("table", null, h("caption", { class: "hidden" }, `Results of ${short(set.systems[system].name)}`), h("thead", null, head), h("tbody", null, ...rows)),
    rest > 0 ? h("p", { class: "soft" }, `${counted(rest, "more result")} ${rest === 1 ? "covers" : "cover"} no group.`) : null
  );
}

/** @param {Plain} own @param {Plain} detail @param {Map<string, string>} passages @param {number} rank @param {number} order @param {number} cutoff */
function resultRow(own, detail, passages, rank, order, cutoff) {
  const mark = own.marks.get(rank);
  const [kind, sign, said] = MARKS[mark ? mark[1] : 3];
  const groups = mark && mark[2].length ? ` ${mark[2].map((/** @type {number} */ group) => group + 1).join(", ")}` : "";
  const short = kind === "first" || kind === "again" ? groups.trim() : "";
  const id = detail.ids[order];
  const score = own.scores && rank <= own.scores.length ? own.scores[rank - 1] : null;
  return h(
    "tr",
    { class: `${kind}${rank === cutoff + 1 ? " beyond" : ""}` },
    h("td", { class: "number" }, rank),
    h("td", null, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }, sign, short ? h("sub", null, short) : null), hidden(`${said}${groups}`)),
    h("td", null, passage(id, passages.get(id))),
    own.scores ? h("td", { class: "number" }, score ?? "") : null
  );
}

/** @param {DatasetOnPage} set @param {Values[]} every @param {Plain | null} detail @param {number[]} systems_ @param {number} at */
function formulas(set, every, detail, systems_, at) {
  const heads = ["metric", ...systems_.map((system) => h("th", { scope: "col" }, named(set.systems[system].name, 60)))];
  const body = set.metrics.map((/** @type {Plain} */ metric, /** @type {number} */ place) => [
    h("th", { scope: "row" }, h("b", { title: brief(metric.summary, 300) }, metric.full), h("span", { class: "formula" }, visible(metric.formula))),
    ...systems_.map((system) => {
      const worked = detail && detail.worked ? detail.worked[system][place] : null;
      return h("td", null, h("b", null, textAt(every[place], system, at)), worked ? h("span", { class: "formula" }, `= ${visible(worked)}`) : null);
    }),
  ]);
  const without = detail && detail.groups.length && !detail.worked ? h("p", { class: "note" }, "This page has no worked examples for this query. Run groupgt explain to see them.") : null;
  return h("div", null, table(heads, body, "Metrics of this query", "formulas"), without);
}

// The list of queries: filtered, sorted and searched.
"use strict";

const ROWS = 100;
// Width in pixels of a system, and of all other columns together.
const COLUMN = 92;
const BESIDE = 620;

/** How many systems stand side by side in the window. */
const fitting = () => Math.max(2, Math.floor((Math.min(innerWidth, 1240) - BESIDE) / COLUMN));

/** The value of a system for a query, null if undefined. @param {Values} of @param {number} system @param {number} at @returns {number | null} */
const valueAt = (of, system, at) => of.numbers[of.cells[system][at]] ?? null;

/** That value as text. @param {Values} of @param {number} system @param {number} at @returns {string} */
const textAt = (of, system, at) => of.texts[of.cells[system][at]] ?? "–";

/** The systems that complete a question, in some trials at least. @param {Queries} questions @param {number} at @returns {number[]} */
const completedBy = (questions, at) => (questions.complete[at] || []).flatMap((share, system) => (share ? [system] : []));

/** In how many systems a question is complete, as means over trials. @param {Queries} questions @param {number} at @returns {number} */
const completeIn = (questions, at) => (questions.complete[at] || []).reduce((sum, share) => sum + share, 0);

/** The questions asked for, in the order asked for. @param {DatasetOnPage} set @param {Queries} questions @param {Values} of the values of a metric @param {URLSearchParams} values */
function chosen(set, questions, of, values) {
  const [sorted, down] = sorting(values, "none");
  const words = (values.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const shown = values.get("show") || "all";
  const [a, b] = [systemAt(set, values.get("a"), set.subject ?? 0), systemAt(set, values.get("b"), set.baseline ?? 0)];
  const failing = gateOf(set, values);
  const places = failing && new Map(failing.queries.map((qid, place) => [qid, place]));
  const wanted = Object.keys(questions.slices).map((by) => [by, values.get(`by:${by}`)]).filter(([, value]) => value !== null);
  const kept = [];
  for (let at = 0; at < questions.qids.length; at++) {
    if (wanted.some(([by, value]) => questions.slices[/** @type {string} */ (by)][at] !== value)) continue;
    const some = completedBy(questions, at).length;
    const isEvery = some === set.systems.length && questions.complete[at].every((share) => share === 1);
    const counts = !(at in questions.out);
    if (places && !places.has(questions.qids[at])) continue;
    if (shown === "none" && (some || !counts)) continue;
    if (shown === "one" && some !== 1) continue;
    if (shown === "every" && !(isEvery && counts)) continue;
    if (shown === "some" && (!some || isEvery)) continue;
    if (shown === "differ" && !((of.spreads[at] ?? 0) > 0)) continue;
    if (shown === "better" || shown === "worse") {
      const [mine, other] = [of.cells[a][at], of.cells[b][at]];
      if (mine < 0 || other < 0) continue;
      const gain = of.levels[mine] - of.levels[other];
      if (shown === "better" ? gain <= 0 : gain >= 0) continue;
    }
    if (words.length) {
      const text = `${questions.qids[at]} ${(questions.texts || [])[at] || ""}`.toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
    }
    kept.push(at);
  }
  /** @type {((at: number) => any) | null} */
  let worth = places ? (at) => -Number(places.get(questions.qids[at])) : null;
  if (sorted === "spread") worth = (at) => of.spreads[at];
  else if (sorted === "complete") worth = (at) => completeIn(questions, at);
  else if (sorted === "groups") worth = (at) => questions.groups[at];
  else if (sorted === "qid") worth = (at) => questions.qids[at];
  else if (/^s\d+$/.test(sorted) && of.cells[Number(sorted.slice(1))]) worth = (at) => valueAt(of, Number(sorted.slice(1)), at);
  else if (shown === "better" || shown === "worse") worth = (at) => Math.abs(Number(valueAt(of, a, at)) - Number(valueAt(of, b, at)));
  if (worth) {
    const keys = new Map(kept.map((at) => [at, /** @type {(at: number) => any} */ (worth)(at)]));
    kept.sort((x, y) => compared(keys.get(x), keys.get(y), down) || x - y);
  }
  return { kept, sorted, down, shown, a, b, failing };
}

/** The gate whose failing queries are asked for, if any. @param {DatasetOnPage} set @param {URLSearchParams} values @returns {Gate | undefined} */
const gateOf = (set, values) => set.gates.find((/** @type {Gate} */ each) => values.get("show") === `gate:${each.number}` && each.system === values.get("a"));

/** The values of a metric: those by the labels where means are corrected. @param {Queries} all @param {number} place @param {number} metric */
const valuesOf = (all, place, metric) => block(`${all.by_labels ? "labels" : "values"}-${place}-${metric}`);

/** A note where values per query are not corrected, but means are. @param {Queries} all */
const byLabels = (all) => (all.by_labels ? h("p", { class: "note" }, "Values per query use the model's labels. The audit corrects only means and their differences.") : null);

async function questions() {
  const { set, values, metric, place } = current();
  const all = await block(`questions-${place}`);
  const of = await valuesOf(all, place, metric);
  const { kept, sorted, down, shown, a, b, failing } = chosen(set, all, of, values);
  const pages = Math.max(1, Math.ceil(kept.length / ROWS));
  const number = Math.min(pages, Math.max(1, Number(values.get("page")) || 1));
  const some = kept.slice((number - 1) * ROWS, number * ROWS);
  const systems_ = shownSystems(set, values, shown === "better" || shown === "worse" || values.has("b") ? [a, b] : values.has("a") && !values.has("col") ? [a] : []);
  const others = ["show", "q", "sort", "a", "b", ...Object.keys(all.slices).map((by) => `by:${by}`)];
  const carried = Object.fromEntries(others.map((key) => [key, values.get(key)]));
  const heads = [
    sorter("qid", "query", sorted, down, ""),
    ...(all.groups.length ? [sorter("groups", "groups", sorted, down)] : []),
    ...systems_.map((system) => sorter(`s${system}`, named(set.systems[system].name, 40), sorted, down)),
    ...(set.systems.length > 1 ? [sorter("spread", "spread", sorted, down)] : []),
    ...(all.complete.length && set.systems.length > 1 ? [sorter("complete", "complete in", sorted, down)] : []),
  ];
  // Clicking a value opens its query with its system; by keyboard, choose the system after opening the query.
  const openedWith = (/** @type {number} */ system, /** @type {number} */ at) => {
    if (of.cells[system][at] < 0) return textAt(of, system, at);
    const beside = [...new Set([system, set.subject ?? 0, set.baseline ?? system])].slice(0, 2).map((each) => set.systems[each].name);
    return h("a", { href: link("question", { ...carried, id: all.qids[at], s: beside }), tabindex: -1 }, textAt(of, system, at));
  };
  const body = some.map((at) => [
    h("th", { scope: "row", class: "question" }, h("a", { href: link("question", { ...carried, id: all.qids[at] }) }, named(all.qids[at], 60)), h("span", { class: "text" }, brief((all.texts || [])[at] || "", 220))),
    ...(all.groups.length ? [h("td", { class: "number" }, all.groups[at])] : []),
    ...systems_.map((system) => valueCell(of.steps[of.cells[system][at]] ?? null, openedWith(system, at))),
    ...(set.systems.length > 1 ? [h("td", { class: "number" }, of.spread_texts[at])] : []),
    ...(all.complete.length && set.systems.length > 1 ? [h("td", { class: "number" }, at in all.out ? "–" : `${Number(completeIn(all, at).toFixed(1))} of ${set.systems.length}`)] : []),
  ]);
  return [
    h("h1", { tabindex: -1 }, "Queries"),
    h(
      "div",
      { class: "controls" },
      showField(set, all, shown, a, b, failing),
      ...Object.keys(all.slices).map((by, order) => {
        const found = [...new Set(all.slices[by])].sort();
        return found.length > 200 ? null : select(`by-${order}`, short(by, 40), [["", "any"], ...found.map((value) => /** @type {[string, string]} */ ([`=${value}`, String(value)]))], values.get(`by:${by}`) === null ? "" : `=${values.get(`by:${by}`)}`, (value) => change({ [`by:${by}`]: value ? value.slice(1) : null, page: null }));
      }),
      metricField(set, metric),
      search("q", "Search", values.get("q") || "", (value) => change({ q: value || null, page: null }, true))
    ),
    h("p", { role: "status" }, `${kept.length.toLocaleString("en")} of ${counted(all.qids.length, "query", "queries")}${shownText(set, shown, a, b, failing)}.`, set.cutoff && all.complete.length ? ` Complete: all groups covered ${set.cutoff}.` : "", all.groups.length ? " Click a value to see why." : "", ...countsOver([set])),
    systems_.length < set.systems.length ? systemChooser(set, systems_) : null,
    byLabels(all),
    table(heads, body, "Queries and their values", "questions"),
    pages > 1 ? pager(number, pages) : null,
    groupsFigure(set, all, kept),
    set.left_out.length ? h("p", { class: "note" }, `Omitted to limit file size: ${set.left_out.join("; ")}.`) : null,
  ];
}

/** @param {DatasetOnPage} set @param {Queries} all @param {string} shown @param {number} a @param {number} b @param {Gate} [failing] */
function showField(set, all, shown, a, b, failing) {
  /** @type {[string, string][]} */
  const options = [["all", "all queries"]];
  if (all.complete.length) {
    options.push(["none", set.systems.length > 1 ? "complete in no system" : "not complete"]);
    if (set.systems.length > 1) options.push(["one", "complete in only one"], ["some", "complete in some"]);
    options.push(["every", set.systems.length > 1 ? "complete in every system" : "complete"]);
  }
  if (set.systems.length > 1) {
    options.push(["differ", "on which systems differ"]);
    const [x, y] = [short(set.systems[a].name, 30), short(set.systems[b].name, 30)];
    if (a !== b) options.push(["better", `${x} better than ${y}`], ["worse", `${x} worse than ${y}`]);
  }
  if (failing) options.push([shown, `against the gate on ${failing.measure}`]);
  return select("show", "Show", options, shown, (value) => change({ show: value === "all" ? null : value, sort: value === "differ" ? "spread:down" : asked().values.get("sort"), page: null }));
}

/** @param {DatasetOnPage} set @param {string} shown @param {number} a @param {number} b @param {Gate} [failing] */
function shownText(set, shown, a, b, failing) {
  if (failing) return `, which count against the gate on ${failing.measure} of ${short(set.systems[a].name, 60)}`;
  if (shown !== "better" && shown !== "worse") return "";
  return `, on which ${short(set.systems[a].name, 60)} is ${shown} than ${short(set.systems[b].name, 60)}`;
}

/** The systems that have a column: those asked for, else the best that fit, the system that views show first, and the baseline. @param {DatasetOnPage} set @param {URLSearchParams} values @param {number[]} always */
function shownSystems(set, values, always) {
  const asked_ = values.getAll("col").map((each) => systemAt(set, each, -1)).filter((each) => each >= 0);
  const every = set.systems.map((/** @type {any} */ _, /** @type {number} */ place) => place);
  const first = new Set([...always, ...(asked_.length ? asked_ : [set.subject, set.baseline, ...every].filter(known))]);
  return [...first].slice(0, asked_.length ? every.length : Math.max(fitting(), always.length)).sort((x, y) => x - y);
}

/** @param {DatasetOnPage} set @param {number[]} systems_ */
function systemChooser(set, systems_) {
  const boxes = set.systems.map((/** @type {Plain} */ system, /** @type {number} */ place) => {
    const box = h("input", { type: "checkbox", id: `system-${place}`, checked: systems_.includes(place) });
    box.addEventListener("change", () => {
      const kept = set.systems.filter((/** @type {any} */ _, /** @type {number} */ at) => (at === place ? !systems_.includes(at) : systems_.includes(at)));
      change({ col: kept.map((/** @type {Plain} */ each) => each.name) });
    });
    return h("label", { for: `system-${place}` }, box, named(system.name, 60));
  });
  const open = document.getElementById("chosen")?.hasAttribute("open");
  return h("details", { class: "chooser", id: "chosen", open }, h("summary", { id: "chosen-summary" }, `Columns: ${systems_.length} of ${counted(set.systems.length, "system")}`), h("div", null, ...boxes));
}

/** @param {number} number @param {number} pages */
function pager(number, pages) {
  /** @param {number} to @param {string} label */
  const step = (to, label) => (to >= 1 && to <= pages ? h("a", { href: link("questions", { page: to }, true) }, label) : h("span", { class: "soft" }, label));
  return h("nav", { class: "pager", "aria-label": "Pages of queries" }, step(number - 1, "← previous"), h("span", null, `page ${number} of ${pages}`), step(number + 1, "next →"));
}

/** The class of a rank in the figure of covered groups. @param {number | null} rank @returns {string} */
function rankName(rank) {
  const { names, ends } = page.ranks;
  const place = ends.findIndex((/** @type {number} */ end) => rank !== null && rank <= end);
  return names[rank === null ? names.length - 1 : place < 0 ? ends.length : place];
}

/** Which groups are met, of the questions listed. @param {DatasetOnPage} set @param {Queries} all @param {number[]} kept */
function groupsFigure(set, all, kept) {
  if (!set.drawings.groups || set.systems.length < 2 || !kept.length) return null;
  const most = 40;
  const holder = h("div", { class: "figures" });
  const open = async () => {
    /** @type {Plain[]} */
    const rows = [];
    const systems_ = set.systems.slice(0, 20);
    for (const at of kept) {
      if (rows.length >= most * systems_.length) break;
      const detail = await detailOf(set, at);
      if (!detail) continue;
      detail.groups.forEach((/** @type {Plain} */ group, /** @type {number} */ number) => {
        systems_.forEach((/** @type {Plain} */ system, /** @type {number} */ place) => {
          const ranking = detail.rankings[place];
          const rank = ranking ? ranking.met.get(number) || null : null;
          const met = rankName(rank);
          rows.push({ group: `${short(all.qids[at], 30)}: ${short(group.name, 40)}`, system: visible(system.name), rank, met, text: String(rank || "✕"), at });
        });
      });
    }
    const groups = new Set(rows.map((row) => row.group)).size;
    holder.replaceChildren(
      figure({
        id: "groups",
        drawing: set.drawings.groups,
        title: "Covered groups by rank of the first hit",
        lines: linesFor(set.drawings.groups, "rank of the first hit", kept.length, `the first ${groups} groups of the queries listed`),
        text: systems_.map((/** @type {Plain} */ system) => `${visible(system.name)} covers ${rows.filter((row) => row.system === visible(system.name) && row.rank !== null).length}`).join("; "),
        tables: { rows },
        heads: ["group", "system", "rank of the first hit"],
        rows: rows.map((row) => [row.group, row.system, row.text]),
        click: (/** @type {Plain} */ datum) => known(datum.at) && goTo(datum.at, []),
        least: 140 + 34 * systems_.length,
      })
    );
    redraw();
  };
  const button = h("button", { type: "button", id: "show-groups", onclick: open }, "Show covered groups by query");
  return h("div", null, h("p", null, button), holder);
}

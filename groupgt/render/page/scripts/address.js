// The address holds the state, so that every view has a link; and how two systems differ.
"use strict";

let page = /** @type {Overview} */ ({});
let times = /** @type {Times} */ ({});

function asked() {
  const [view, query] = location.hash.slice(1).split("?");
  const values = new URLSearchParams(query || "");
  const place = page.datasets.findIndex((/** @type {Plain} */ each) => each.name === values.get("d"));
  return { view: Object.hasOwn(VIEWS, view) ? view : "overview", values, place: Math.max(place, 0) };
}

/** A link into a view; the data set and the metric are kept. @param {string} view @param {Plain} [changes] @param {boolean} [whole] */
function link(view, changes = {}, whole = false) {
  const now = asked().values;
  const values = new URLSearchParams(whole ? now : undefined);
  for (const key of ["d", "m"]) if (now.get(key) !== null) values.set(key, String(now.get(key)));
  for (const [key, value] of Object.entries(changes)) {
    values.delete(key);
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && (one !== "" || key.startsWith("by:"))) values.append(key, String(one));
  }
  const query = values.toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

/** Changes what is asked of this view; typing replaces the address instead of adding to the history. @param {Plain} changes @param {boolean} [replace] */
function change(changes, replace = false) {
  const target = link(asked().view, changes, true);
  if (replace) {
    history.replaceState(null, "", target);
    show();
  } else location.hash = target;
}

/** The data set asked for, with ways to look things up in it. */
function current() {
  const { values, place } = asked();
  const set = page.datasets[place];
  const metric = set.metrics.findIndex((/** @type {Plain} */ each) => each.name === values.get("m"));
  return { set, place, values, metric: metric < 0 ? set.primary : metric };
}

/** @param {DatasetOnPage} set @param {string | null} wanted @param {number} otherwise */
function systemAt(set, wanted, otherwise) {
  const found = set.systems.findIndex((/** @type {Plain} */ each) => each.name === wanted);
  return found < 0 ? otherwise : found;
}

/** @param {DatasetOnPage} set @param {number} metric */
const metricField = (set, metric) =>
  select("metric", "Metric", set.metrics.map((/** @type {Plain} */ each) => [each.name, each.label]), set.metrics[metric].name, (value) => change({ m: value }));

// Differences between two systems, as computed by the evaluation.

/** @typedef {{delta: number | null, interval: [number, number] | null, counts: [number, number, number], texts: Record<string, string>, standing: string, reversal: boolean, said: Plain | null}} Contrast */
/** @type {WeakMap<Plain, Map<string, any[]>>} */
const indexes = new WeakMap();

/** @param {DatasetOnPage} set @param {number} first @param {number} second @param {number} metric @param {number} [within] @returns {Contrast | null} */
function contrast(set, first, second, metric, within = -1) {
  let index = indexes.get(set);
  if (!index) {
    index = new Map(set.contrasts.rows.map((/** @type {any[]} */ row) => [row.slice(0, 4).join(), row]));
    indexes.set(set, index);
  }
  const row = index.get([first, second, metric, within].join());
  if (!row) return null;
  const [delta, interval, counts, texts, standing, reversal, said] = row.slice(4);
  const byName = Object.fromEntries(set.contrasts.names.map((/** @type {string} */ name, /** @type {number} */ place) => [name, texts[place]]));
  return { delta, interval, counts, texts: byName, standing, reversal, said };
}

/** How one stands against another. @param {Contrast | null} each */
const standing = (each) => (each ? each.standing : "not significant");

/** The level of an interval, for a heading. @param {Contrast | null | undefined} each */
const level = (each) => (each ? each.texts.confidence : "CI");

// What all views share: data blocks, elements, numbers as text. The page contains the scripts in this folder in order.
// They compute no metrics, never parse user text as HTML, and load nothing.
"use strict";

/** @typedef {Record<string, any>} Plain */
/** @typedef {string | number | Node | null | undefined | false} Child */

// Blocks: deflated JSON in base64, decoded on first use.

/** @type {Map<string, Promise<any>>} */
const opened = new Map();

/** The text of a block; null where the page has none of that name. @param {string} name @returns {Promise<string | null>} */
async function inflated(name) {
  let element = document.getElementById(name);
  if (!element && document.readyState === "loading") {
    await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
    element = document.getElementById(name);
  }
  if (!element) return null;
  const raw = atob(element.textContent || "");
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** @param {string} name @returns {Promise<any>} */
function block(name) {
  let found = opened.get(name);
  if (!found) {
    found = inflated(name).then((text) => (text === null ? null : JSON.parse(text)));
    opened.set(name, found);
  }
  return found;
}

// Elements

/**
 * An element; `onclick` and the like are listeners, attributes that are null or false are left out.
 * @param {string} tag @param {Plain | null} [attributes] @param {...(Child | Child[])} children @returns {HTMLElement}
 */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(typeof child === "number" ? String(child) : child);
  }
  return element;
}

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Text whose control characters can be seen. @param {unknown} text */
const visible = (text) =>
  String(text).replace(CONTROLS, (one) => `<U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);

/** The beginning of a long text. @param {unknown} text @param {number} [most] */
function brief(text, most = 120) {
  const whole = visible(text);
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
}

/** A name or id without its middle, because both ends identify it. @param {unknown} text @param {number} [most] */
function short(text, most = 120) {
  const whole = visible(text);
  return whole.length > most ? `${whole.slice(0, Math.ceil((most - 1) / 2))}…${whole.slice(whole.length - Math.floor((most - 1) / 2))}` : whole;
}

/** A name or id, which keeps its direction to itself and breaks behind `[`, `,`, `_`, `/` and `+`, not within a word. @param {unknown} text @param {number} [most] */
const named = (text, most = 120) =>
  h(
    "bdi",
    { class: "name", title: visible(text).length > most ? visible(text).slice(0, 2000) : null },
    ...short(text, most).split(/(?<=[[,_/+])/).flatMap((part, place) => [place ? h("wbr") : null, part])
  );

/** @param {string} text */
const hidden = (text) => h("span", { class: "hidden" }, text);

/** @param {unknown} value @returns {value is number} */
const known = (value) => typeof value === "number";

/** @param {number} count @param {string} one @param {string} [many] */
const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many || `${one}s`}`;

/** A table, with a shadow at an edge beyond which there is more; cells are children, or elements of rows. @param {Child[]} heads @param {Child[][]} rows @param {string} label @param {string} [kind] */
function table(heads, rows, label, kind = "") {
  const body = rows.map((cells) =>
    h("tr", null, ...cells.map((cell, place) => (isCell(cell) ? cell : h(place ? "td" : "th", place ? null : { scope: "row" }, cell))))
  );
  const head = h("tr", null, ...heads.map((cell) => (isCell(cell) ? cell : h("th", { scope: "col" }, cell))));
  const whole = h("table", { class: kind }, h("caption", { class: "hidden" }, label), h("thead", null, head), h("tbody", null, ...body));
  const scroll = h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, whole);
  const edged = h("div", { class: "edged" }, scroll);
  const look = () => {
    edged.toggleAttribute("data-before", scroll.scrollLeft > 2);
    edged.toggleAttribute("data-after", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
  };
  scroll.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(scroll);
  return edged;
}

/** @param {unknown} cell @returns {cell is HTMLElement} */
const isCell = (cell) => cell instanceof HTMLElement && (cell.tagName === "TD" || cell.tagName === "TH");

/** @param {string} id @param {string} label @param {string[][]} options @param {string} chosen @param {(value: string) => void} change */
function select(id, label, options, chosen, change) {
  const box = h("select", { id, onchange: (/** @type {any} */ event) => change(event.target.value) });
  for (const [value, text] of options) box.append(h("option", { value, selected: value === chosen }, short(text, 60)));
  return h("label", { class: "field", for: id }, h("span", null, label), box);
}

/** @param {string} id @param {string} label @param {string} value @param {(value: string) => void} change */
function search(id, label, value, change) {
  const box = h("input", { id, type: "search", value, autocomplete: "off", spellcheck: "false", oninput: (/** @type {any} */ event) => change(event.target.value) });
  return h("label", { class: "field grow", for: id }, h("span", null, label), box);
}

/** @param {string} title @param {...(Child | Child[])} children */
const section = (title, ...children) => h("section", null, title ? h("h2", null, title) : null, ...children);

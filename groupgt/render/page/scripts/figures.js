// Figures: Vega-Lite templates from groupgt.render.figures, filled with the current selection, drawn and saved.
"use strict";

/** @type {Promise<any> | null} */
let libraries = null;

/** Vega, Vega-Lite and vega-embed, run when the first figure is drawn. */
function loaded() {
  libraries ||= (async () => {
    for (const library of ["vega", "vega-lite", "vega-embed"]) {
      const script = document.createElement("script");
      script.textContent = await inflated(`library-${library}`);
      document.head.append(script);
    }
    return /** @type {any} */ (globalThis).vegaEmbed;
  })();
  return libraries;
}

// Expressions are interpreted, not compiled, so the content policy need not allow eval. Only errors are logged.
const QUIET = { mode: "vega-lite", ast: true, actions: false, logLevel: 1 };

/** A template filled in. @param {any} value @param {Plain} texts @param {Plain} tables @returns {any} */
function filled(value, texts, tables) {
  if (typeof value === "string") return Object.hasOwn(texts, value) ? texts[value] : value;
  if (Array.isArray(value)) return value.map((each) => filled(each, texts, tables));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.name === "string" && Array.isArray(value.values)) return { name: value.name, values: tables[value.name] || value.values };
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filled(each, texts, tables)]));
}

const pen = document.createElement("canvas").getContext("2d");

/** A name without its middle, of a width in pixels. @param {string} name @param {number} most */
function measured(name, most) {
  const width = (/** @type {string} */ text) => {
    if (!pen) return 6 * text.length;
    pen.font = "11px sans-serif";
    return pen.measureText(text).width;
  };
  let text = name;
  for (let letters = name.length; letters > 4 && width(text) > most; letters--) text = short(name, letters - 1);
  return text;
}

/** An expression that shortens the labels of names, which stay distinct. @param {string[]} names @param {number} most */
function labels(names, most) {
  for (let size = most; ; size += 20) {
    const texts = names.map((name) => measured(name, size));
    if (new Set(texts).size < names.length) continue;
    const cut = names.flatMap((name, place) => (texts[place] === name ? [] : [[name, texts[place]]]));
    return `(${JSON.stringify(Object.fromEntries(cut))})[datum.label] || datum.label`;
  }
}

/** The fields that are names on an axis or in a legend. @param {any} value @returns {string[]} */
function namedFields(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value.values)) return [];
  const own = value.field && [value.axis, value.legend].some((guide) => guide?.labelExpr) ? [value.field] : [];
  return [...own, ...Object.values(value).flatMap(namedFields)];
}

/** Leaves what no row has out of legends. @param {any} value @param {Plain[]} rows */
function onlyOccurring(value, rows) {
  if (value === null || typeof value !== "object") return;
  if (value.type === "nominal" && value.legend && value.scale) {
    const occurs = new Set(rows.filter((row) => row.count !== 0).map((row) => row[value.field]));
    value.legend.values = value.scale.domain.filter((/** @type {any} */ each) => occurs.has(each));
  }
  for (const each of Object.values(value)) onlyOccurring(each, rows);
}

/** @param {Plain} options @param {number} width @param {boolean} paper */
function specification(options, width, paper) {
  const theme = page.themes.light;
  const colors = Object.fromEntries(Object.keys(theme).map((key) => [`$${key}`, paper ? theme[key] : `var(--${key})`]));
  const { template } = options.drawing;
  const rows = (options.tables || {}).rows || template.data.values;
  const names = [...new Set(namedFields(template).flatMap((field) => rows.map((/** @type {Plain} */ row) => String(row[field]))))];
  const narrow = width < 520;
  const cuts = { $name: labels(names, Math.max(80, width * (narrow ? 0.42 : 0.4))), $slanted: labels(names, 180), $key: labels(names, Math.max(120, width * (narrow ? 0.8 : 0.28))) };
  const spec = filled(template, { ...colors, ...cuts, ...options.texts }, options.tables || {});
  if ((options.tables || {}).rows) onlyOccurring(spec, options.tables.rows);
  const config = filled(page.config, colors, {});
  if (paper) spec.title = { text: visible(options.title), subtitle: options.lines };
  else {
    delete spec.title;
    config.background = null;
    config.padding = 4;
  }
  // Names are cut already.
  config.axis.labelLimit = config.legend.labelLimit = 0;
  config.legend.columns = narrow ? 1 : 3;
  if (spec.facet) {
    const panels = options.panels || 3;
    spec.columns = width < 420 ? 1 : Math.min(panels, narrow ? 2 : 3);
    spec.spec.width = Math.max(90, Math.floor((width - 60 - spec.columns * 34) / spec.columns));
  } else {
    spec.width = width - 8;
    spec.autosize = { type: "fit-x", contains: "padding" };
  }
  return { ...spec, config };
}

/** What stands below a title: neither the metric that it names nor the policy, which stands on the page once. @param {Plain} options @returns {string[]} */
function captions(options) {
  const [first, , ...notes] = options.lines;
  const [metric, ...rest] = first.split(" · ");
  return [rest.length && options.title.includes(metric) ? rest.join(" · ") : first, ...notes];
}

/** @type {(() => void)[]} */
let drawings = [];

/** What stands in place of a figure before anything can be drawn: its first values. @param {Plain} options */
function waiting(options) {
  if (libraries) return null;
  const rows = options.rows.slice(0, 12).map((/** @type {any[]} */ row) => h("tr", null, ...row.map((/** @type {string} */ text) => h("td", null, brief(text, 200)))));
  return h("table", null, h("thead", null, h("tr", null, ...options.heads.map((/** @type {string} */ head) => h("th", null, head)))), h("tbody", null, ...rows));
}

/**
 * A figure: its text for those who cannot see it, its data as a table, and ways to save it.
 * Options: `id`, `drawing`, `title`, `lines`, `text`, `heads` and `rows` of the table; `tables` and `texts` fill the
 * template; `click` is told the datum; `least` is the width below which it is scrolled.
 * @param {Plain} options
 */
function figure(options) {
  const plot = h("div", { class: "plot", "aria-hidden": "true" }, waiting(options));
  const label = `${options.id}-title`;
  const plane = h("div", { class: "plane", role: "group", "aria-labelledby": label }, plot);
  /** @param {string} kind */
  const save = (kind) => h("button", { type: "button", class: "quiet", onclick: () => saved(options, kind) }, kind.toUpperCase(), hidden(` of ${options.title}`));
  const data = h("details", null, h("summary", null, "Data as a table", hidden(` of ${options.title}`)));
  data.addEventListener("toggle", () => {
    if (data.childElementCount < 2) data.append(dataTable(options));
  });
  const whole = h(
    "figure",
    { role: "group", "aria-labelledby": label },
    h("figcaption", null, h("h2", { id: label }, visible(options.title)), ...captions(options).map((line) => h("p", null, visible(line)))),
    plane,
    hidden(options.text),
    h("div", { class: "under" }, data, h("span", { class: "saves" }, "Save as ", save("svg"), save("png"), save("json")))
  );
  let drawn = 0;
  const draw = async () => {
    const width = Math.max(plane.clientWidth, options.least || 0);
    if (!width || width === drawn) return;
    drawn = width;
    const embed = await loaded();
    const { view } = await embed(plot, specification(options, width, false), { ...QUIET, renderer: "svg", tooltip: tip });
    if (options.click) {
      view.addEventListener("click", (/** @type {any} */ _, /** @type {any} */ item) => item && item.datum && options.click(item.datum));
    }
    // What can be scrolled can be reached by keyboard.
    if (plane.scrollWidth > plane.clientWidth) plane.tabIndex = 0;
    else plane.removeAttribute("tabindex");
    plot.dataset.drawn = "yes";
  };
  drawings.push(draw);
  return whole;
}

/** @param {Plain} options */
function dataTable(options) {
  const most = 500;
  const rows = options.rows.slice(0, most).map((/** @type {any[]} */ row) => row.map((/** @type {string} */ text) => brief(text, 200)));
  const more = options.rows.length - rows.length;
  return h("div", null, table(options.heads, rows, `Data for ${options.title}`), more > 0 ? h("p", { class: "soft" }, `${counted(more, "more row")}`) : null);
}

/** @param {Plain} options @param {string} kind */
async function saved(options, kind) {
  const spec = specification(options, 560, true);
  const vector = async () => {
    const embed = await loaded();
    return (await embed(h("div"), spec, QUIET)).view;
  };
  let url;
  if (kind === "png") url = await (await vector()).toImageURL("png", 2);
  else {
    const schema = { $schema: "https://vega.github.io/schema/vega-lite/v5.json", ...spec };
    const text = kind === "svg" ? await (await vector()).toSVG() : JSON.stringify(schema, null, 2);
    url = URL.createObjectURL(new Blob([text], { type: kind === "svg" ? "image/svg+xml" : "application/json" }));
  }
  h("a", { href: url, download: `${options.id}.${kind}` }).click();
}

const bubble = h("div", { class: "bubble", "aria-hidden": "true", hidden: true });

/** What is pointed at in a figure. @param {any} _ @param {any} event @param {any} __ @param {any} value */
function tip(_, event, __, value) {
  if (!value || typeof value !== "object") {
    bubble.hidden = true;
    return;
  }
  bubble.replaceChildren(...Object.entries(value).map(([key, each]) => h("div", null, key ? h("span", { class: "soft" }, `${brief(key, 40)} `) : null, brief(each, 160))));
  bubble.hidden = false;
  const left = Math.min(event.clientX + 14, innerWidth - bubble.offsetWidth - 8);
  const top = event.clientY + 18 + bubble.offsetHeight > innerHeight ? event.clientY - bubble.offsetHeight - 8 : event.clientY + 18;
  bubble.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}

/** A figure that holds its own data. @param {string} id @param {Plain} drawing @param {Plain} [more] */
function fixedFigure(id, drawing, more = {}) {
  const { text, subtitle } = drawing.template.title;
  return figure({ id, drawing, title: text, lines: subtitle, text: drawing.text, heads: drawing.headers, rows: drawing.rows, ...more });
}

/** The lines below a title, for another metric and population. @param {Plain} drawing @param {string} label @param {number} questions @param {string} [note] */
function linesFor(drawing, label, questions, note) {
  const lines = drawing.template.title.subtitle;
  return [`${label} · n = ${counted(questions, "query", "queries")}`, lines[1], ...(note ? [note] : [])];
}

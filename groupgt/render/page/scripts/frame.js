// The frame around every view, and navigation between views.
"use strict";

/** @type {Record<string, () => Promise<(Child | Child[])[]>>} */
const VIEWS = { overview, systems, comparison, outcomes, questions, question };
/** @type {[string, string][]} */
const TABS = [
  ["overview", "Overview"],
  ["systems", "Systems"],
  ["comparison", "Comparison"],
  ["outcomes", "Outcomes"],
  ["questions", "Queries"],
];

function header() {
  const { view } = asked();
  const { set } = current();
  const now = view === "question" ? "questions" : view;
  const tabs = TABS.filter(([key]) => (key !== "comparison" || set.systems.length > 1 || set.previous) && (key !== "outcomes" || set.outcomes)).map(([key, label]) => h("a", { href: link(key), "aria-current": key === now ? "page" : null }, label));
  const sets = page.datasets.map((/** @type {Plain} */ each) => [each.name, each.name]);
  return h(
    "header",
    { class: "top" },
    h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => { event.preventDefault(); document.querySelector("h1")?.focus(); } }, "Skip to the content"),
    h("div", { class: "bar-top" }, h("a", { class: "brand", href: link("overview") }, named(page.title, 60)), h("span", { class: "population" }, [page.datasets.length > 1 || set.name === page.title ? "" : visible(set.name), set.population, times.made.slice(0, 10)].filter(Boolean).join(" · ")), page.datasets.length > 1 ? select("dataset", "Data set", sets, set.name, (value) => { location.hash = link(asked().view === "question" ? "questions" : asked().view, { d: value }); }) : null, h("nav", { "aria-label": "Views" }, ...tabs))
  );
}

function footer() {
  const licenses = h("details", null, h("summary", null, "Third-party licenses"));
  licenses.addEventListener("toggle", async () => {
    if (licenses.childElementCount < 2) licenses.append(h("pre", { tabindex: 0 }, await inflated("library-licenses")));
  });
  return h("footer", null, h("p", null, `Made by groupgt, ${times.made}. Works offline.`), licenses);
}

let turn = 0;
let last = "";
let clicked = false;
/** @type {Map<string, number>} */
const positions = new Map();

async function show() {
  const mine = ++turn;
  const { view, values, place } = asked();
  const identity = `${view} ${place} ${view === "question" ? values.get("id") : ""}`;
  const focused = document.activeElement;
  const id = focused && focused !== document.body ? focused.id : "";
  const caret = focused instanceof HTMLInputElement && focused.type === "search" ? focused.selectionStart : null;
  drawings = [];
  const content = await VIEWS[view]();
  if (mine !== turn) return;
  const app = document.getElementById("app");
  if (!app) return;
  const main = h("main", { id: "main", class: view }, ...content);
  app.replaceChildren(header(), main, footer());
  app.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  app.dataset.shown = location.hash;
  bubble.hidden = true;
  const title = main.querySelector("h1")?.textContent || "";
  document.title = `${view === "overview" ? "" : `${title.slice(0, 100)} · `}${visible(page.title)} · groupgt`;
  if (identity !== last) {
    if (last) main.querySelector("h1")?.focus({ preventScroll: true });
    scrollTo(0, clicked ? 0 : positions.get(location.hash) || 0);
  } else if (id) {
    const again = document.getElementById(id);
    again?.focus({ preventScroll: true });
    if (caret !== null && again instanceof HTMLInputElement) again.setSelectionRange(caret, caret);
  }
  last = identity;
  clicked = false;
  redraw();
}

function redraw() {
  for (const draw of drawings) draw();
}

async function begin() {
  const single = document.getElementById("figure-data");
  if (single) {
    const { template, config, themes } = await block("figure-data");
    Object.assign(page, { config, themes });
    const { text, subtitle } = template.title;
    const plot = document.getElementById("figure");
    const options = { drawing: { template }, title: text, lines: subtitle };
    if (plot) (await loaded())(plot, { ...specification(options, Math.min(760, plot.clientWidth), false), title: filled(template.title, {}, {}) }, { ...QUIET, renderer: "svg", tooltip: tip });
    document.body.append(bubble);
    return;
  }
  page = await block("page");
  times = await block("times");
  document.body.append(bubble);
  addEventListener("hashchange", (event) => {
    positions.set(new URL(event.oldURL).hash, scrollY);
    show();
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("a[href^='#']")) clicked = true;
  });
  /** @type {ReturnType<typeof setTimeout>} */
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });
  await show();
}

begin();

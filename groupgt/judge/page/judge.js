// The page on which people judge: it shows what the server says, and every key or button is one act.
// No text of users is ever parsed as HTML.
"use strict";

/** @type {Plain} */ let session = {};
/** @type {Plain | null} */ let shown = null;
/** The passage in focus, by id; or the number of a question. @type {string | number | null} */ let current = null;
let busy = false;
let confirming = false;
/** What is pressed next is a digit that finishes `m` or `x`. @type {string | null} */ let pending = null;

const token = location.hash.slice(1) || sessionStorage.getItem("groupgt") || "";
if (location.hash) {
  sessionStorage.setItem("groupgt", token);
  history.replaceState(null, "", location.pathname);
}
const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} path @param {Plain} [body] @returns {Promise<any>} */
async function ask(path, body) {
  const headers = { "x-groupgt-token": token, ...(body ? { "content-type": "application/json" } : {}) };
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined });
  } catch {
    throw new Error("groupgt judge has stopped. Your judgments are saved. Run it again and open the new address.");
  }
  const value = await answer.json();
  if (answer.status === 401) noToken();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

/** What to do when the page was opened by another address than the one that the command printed. */
function noToken() {
  shown = null;
  session = {};
  element("session").replaceChildren();
  element("progress").textContent = "";
  element("main").replaceChildren(
    h("h1", null, "This address is not complete"),
    h("p", null, "groupgt judge prints an address that ends in # and a key, and only that address opens the page. Copy the complete address from the terminal. If you started the command again, use the new address, because the old one no longer works."),
    h("p", null, "Nothing is lost. Every judgment is saved in the journal.")
  );
}

/** Shows how far the corpus is indexed, until it is. */
async function indexing() {
  const { indexed } = await ask("/api/progress");
  const percent = Math.floor(100 * indexed);
  element("indexing").textContent = indexed < 1 ? `Indexing the corpus: ${percent}%` : "";
  const waiting = document.getElementById("waiting");
  if (waiting) waiting.textContent = indexed < 1 ? "The next query appears once the corpus is indexed." : "Loading…";
  if (indexed < 1) setTimeout(() => void indexing().catch(() => {}), 250);
}

/** Says something to screen readers only. @param {string} text */
const announce = (text) => { element("said").textContent = text; };

/** Says something to screen readers, and shows it. @param {string} text @param {boolean} [wrong] */
function say(text, wrong = false) {
  announce(text);
  const notice = element("notice");
  notice.textContent = text;
  notice.hidden = !text;
  notice.className = wrong ? "error" : "";
}

/** One act; the page shows it when the journal has it. @param {Plain} fields @param {string} [told] */
async function act(fields, told = "") {
  if (busy || !shown) return;
  busy = true;
  try {
    const answer = await ask("/api/act", { qid: shown.qid, ...fields });
    session = answer.overview;
    shown = answer.view;
    if (answer.undone && passage(answer.undone)) current = answer.undone;
    draw();
    say(answer.warning || told, Boolean(answer.warning));
  } catch (error) {
    say(/** @type {Error} */ (error).message, true);
  } finally {
    busy = false;
  }
}

/** @param {string | null} qid @param {number | null} [at] the question */
async function open(qid, at = null) {
  if (qid === null) return finished();
  try {
    shown = await ask(`/api/query?qid=${encodeURIComponent(qid)}`);
  } catch (error) {
    return say(/** @type {Error} */ (error).message, true);
  }
  session = await ask("/api/overview");
  confirming = false;
  pending = null;
  current = at !== null ? at : session.kind === "audit" ? nextQuestion() : nextPassage(null);
  draw();
  window.scrollTo(0, 0);
  element("main").focus({ preventScroll: true });
  announce(`Query ${qid}: ${brief(shown?.text, 300)}`);
}

function finished() {
  shown = null;
  element("main").replaceChildren(
    h("h1", null, session.queue ? "All questions are answered" : "All queries are finished"),
    h("p", null, "The ground truth has been written. Open a query to change it, or end the command with Ctrl-C."),
    h("ul", { class: "queue" }, ...queueRows())
  );
  say("");
  drawTop();
}

// What is where

/** All passages that can be judged: the pool, those added by search, and suggestions. @returns {Plain[]} */
const passages = () => (shown ? [...shown.passages, ...shown.suggestions] : []);

/** @param {string | number | null} doc */
const passage = (doc) => passages().find((each) => each.doc === doc) || null;

/** The first passage without a judgment after one of them. @param {string | number | null} after */
function nextPassage(after) {
  const all = shown ? shown.passages : [];
  const at = all.findIndex((/** @type {Plain} */ each) => each.doc === after);
  const order = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  const found = order.find((/** @type {Plain} */ each) => !each.judged);
  return found ? found.doc : after !== null ? after : all.length ? all[0].doc : null;
}

function nextQuestion() {
  const all = shown ? shown.questions : [];
  const at = all.findIndex((/** @type {Plain} */ each) => each.answer === null);
  return at < 0 ? Math.max(all.length - 1, 0) : at;
}

/** The digit of a group. @param {number} number */
const digit = (number) => shown?.groups.findIndex((/** @type {Plain} */ each) => each.number === number) + 1;

/** @param {Plain} each */
const groupName = (each) => (each.name ? `${digit(each.number)} ${short(each.name, 40)}` : `${digit(each.number)}`);

/** Moves the focus. @param {number} step */
function move(step) {
  if (session.kind === "audit") {
    current = Math.min(Math.max(Number(current) + step, 0), (shown?.questions.length || 1) - 1);
  } else {
    const all = passages();
    const at = all.findIndex((each) => each.doc === current);
    const target = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    current = target ? target.doc : null;
  }
  draw();
}

// Acts

/** @param {Plain} each */
async function newGroup(each) {
  await act({ act: "group", doc: each.doc }, "New group");
  forward(each.doc);
}

/** A passage joins a group or leaves it. @param {Plain} each @param {number} place */
async function toggle(each, place) {
  const group = shown?.groups[place - 1];
  if (!group) return say(`There is no group ${place}. Press n to create one.`, true);
  const before = each.judged ? each.judged.groups : [];
  const groups = before.includes(group.number) ? before.filter((/** @type {number} */ one) => one !== group.number) : [...before, group.number];
  if (!groups.length) return act({ act: "clear", doc: each.doc }, "No longer judged");
  const kept = each.judged && before.length ? each.judged : { grade: 1, span: null };
  await act({ act: "relevant", doc: each.doc, groups, grade: kept.grade, span: kept.span }, `In group ${groups.map(digit).sort().join(" and ")}`);
  if (!each.judged) forward(each.doc);
}

/** @param {Plain} each @param {"not_relevant" | "harmful"} kind */
async function reject(each, kind) {
  await act({ act: kind, doc: each.doc }, kind === "harmful" ? "Harmful" : "Not relevant");
  if (!each.judged) forward(each.doc);
}

/** @param {Plain} each @param {number} value */
function regrade(each, value) {
  if (!each.judged || !each.judged.groups.length) return say("First put the passage into a group. Then press Shift and a digit to grade it.", true);
  return act({ act: "relevant", doc: each.doc, groups: each.judged.groups, grade: value, span: each.judged.span }, `Grade ${value}`);
}

/** Marks the selected words as those that carry the passage. @param {Plain} each */
function mark(each) {
  const chosen = getSelection();
  const text = document.querySelector(".card[aria-current] .text");
  if (!each.judged || !each.judged.groups.length) return say("First put the passage into a group. Then mark its words.", true);
  if (!chosen || chosen.isCollapsed || !text || !text.contains(chosen.anchorNode) || !text.contains(chosen.focusNode)) {
    if (each.judged.span) return act({ act: "relevant", doc: each.doc, groups: each.judged.groups, grade: each.judged.grade, span: null }, "Mark removed");
    return say("Select the words that carry the answer, then press s.", true);
  }
  const range = chosen.getRangeAt(0);
  const before = range.cloneRange();
  before.selectNodeContents(text);
  before.setEnd(range.startContainer, range.startOffset);
  // Control characters are shown with several characters; without them, offsets are those of the text.
  if (visible(each.text) !== each.text) return say("This passage has control characters, so its words cannot be marked.", true);
  const points = (/** @type {string} */ part) => [...part].length;
  const start = points(before.toString());
  const span = [start, start + points(range.toString())];
  return act({ act: "relevant", doc: each.doc, groups: each.judged.groups, grade: each.judged.grade, span }, "Words marked");
}

/** After a judgment: the next passage without one. @param {string} doc */
function forward(doc) {
  if (current === doc) {
    current = nextPassage(doc);
    draw();
  }
}

/** @type {[string, number][]} */ const answered = [];

/** @param {string} value */
async function answer(value) {
  const each = shown?.questions[Number(current)];
  if (!shown || !each) return;
  answered.push([shown.qid, Number(current)]);
  await act({ act: "answer", item: each.item, value }, `Answer: ${value}`);
  await ahead();
}

/** The next question: of all queries, or of this one. */
async function ahead() {
  if (session.queue) return session.queue.qid === shown?.qid ? jump(session.queue.at) : open(session.queue.qid, session.queue.at);
  const all = shown ? shown.questions : [];
  const at = all.findIndex((/** @type {Plain} */ one, /** @type {number} */ place) => place > Number(current) && one.answer === null);
  return jump(at >= 0 ? at : Number(current));
}

/** @param {number} at */
function jump(at) {
  current = at;
  draw();
}

async function undo() {
  const last = session.kind === "audit" ? answered.pop() : null;
  if (last && (last[0] !== shown?.qid || last[1] !== current)) await open(last[0], last[1]);
  await act({ act: "undo" }, "Undone");
}

/** Ends the query; with passages left, asks once. @param {string} [rest] */
async function done(rest) {
  if (session.queue) return ahead();
  if (!shown) return open(session.next);
  const left = session.kind === "audit" ? [] : shown.passages.filter((/** @type {Plain} */ each) => !each.judged);
  if (left.length && !rest && !confirming && shown.status === "open") {
    confirming = true;
    draw();
    return say(`${counted(left.length, "passage")} not judged. Press Enter to leave the rest unjudged, or 0 to mark it as not relevant.`);
  }
  if (shown.status === "open") await act({ act: "done", rest: rest || "unjudged" });
  await onward();
}

/** The query has no answer: this finishes it. */
async function noAnswer() {
  await act({ act: "no_answer" }, "Finished: no answer");
  if (shown?.declared) await onward();
}

/** After a query is finished: its draft, if it was hidden, and then the next query. */
async function onward() {
  confirming = false;
  if (!shown || shown.status === "open") return;
  if (shown.prior && current !== "prior") {
    current = "prior";
    draw();
    return say("Finished. The prior judgments are below. Press Enter to continue.");
  }
  const order = session.queries.map((/** @type {Plain} */ each) => each.qid);
  const rest = [...order.slice(order.indexOf(shown.qid) + 1), ...order];
  const next = rest.find((/** @type {string} */ one) => session.queries.find((/** @type {Plain} */ each) => each.qid === one).status === "open");
  await open(next || null);
}

// Dialogs

/** @param {string} title @param {...Node} children */
function dialog(title, ...children) {
  const box = /** @type {HTMLDialogElement} */ (element("dialog"));
  const close = h("button", { type: "button", class: "close", onclick: () => box.close() }, "Close ", h("kbd", null, "Esc"));
  box.replaceChildren(h("h2", { id: "dialog-title" }, title), ...children, close);
  if (!box.open) box.showModal();
  return box;
}

const KEYS = {
  judge: [
    ["n", "new group with this passage"],
    ["1 … 9", "add to this group, or remove from it"],
    ["0", "not relevant"],
    ["h", "harmful: must not be retrieved for this query"],
    ["Shift 1 … 3", "grade of a relevant passage"],
    ["s", "mark the selected words, or remove the mark"],
    ["m 1 … 9", "merge its group into group 1 … 9"],
    ["x", "split it off into a new group"],
    ["r", "name a group"],
    ["a", "no passage answers the query (finishes the query)"],
    ["↑ ↓ or k j", "previous or next passage (your first judgment of a passage moves on to the next)"],
    ["/", "search the corpus"],
  ],
  audit: [
    ["y", "yes"],
    ["n", "no"],
    ["0", "cannot tell"],
    ["2 … 9", "not needed: same as this passage"],
    ["↑ ↓ or k j", "previous or next question"],
  ],
  all: [
    ["u", "undo"],
    ["Enter", "finish this query and go to the next one (in an audit of all queries, to the next question)"],
    ["-", "skip this query"],
    ["q", "all queries"],
    ["?", "these keys"],
  ],
};

function help() {
  const own = session.kind === "audit" ? KEYS.audit : KEYS.judge;
  dialog("Keys", h("dl", { class: "keys" }, ...[...own, ...KEYS.all].flatMap(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)])));
}

function queue() {
  dialog(session.fixed ? "Queries, in the fixed order of the sample" : "Queries", h("ul", { class: "queue" }, ...queueRows()));
}

const queueRows = () =>
  session.queries.map((/** @type {Plain} */ each) =>
    h("li", null, h("button", { type: "button", onclick: () => { closeDialog(); void open(each.qid); } }, `${each.status === "done" ? "✓" : each.status === "skipped" ? "–" : "○"} `, hidden(`${each.status}: `), h("bdi", null, brief(each.text, 100))))
  );

const closeDialog = () => /** @type {HTMLDialogElement} */ (element("dialog")).close();

function searching() {
  const results = h("ul", { class: "list", id: "found", "aria-live": "polite" });
  let last = 0;
  const look = async (/** @type {string} */ text) => {
    const mine = ++last;
    const found = text.trim() && shown ? await ask(`/api/search?qid=${encodeURIComponent(shown.qid)}&text=${encodeURIComponent(text)}`) : [];
    if (mine !== last) return;
    results.replaceChildren(
      ...found.map((/** @type {Plain} */ each) =>
        h("li", { class: "card" },
          h("div", { class: "head" }, named(each.doc), h("span", { class: "state" }, stateText(each))),
          snippet(each),
          h("div", { class: "acts" }, h("button", { type: "button", onclick: () => add(each) }, "Judge this passage")))
      )
    );
  };
  const box = search("search", "Search the corpus", "", (value) => void look(value));
  dialog("Search", h("div", { class: "controls" }, box), results);
  // Escape in a search field would only clear it.
  element("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeDialog();
    if (event.key === "Enter") results.querySelector("button")?.click();
  });
  element("search").focus();
}

/** A passage that search found joins the list. @param {Plain} each */
function add(each) {
  closeDialog();
  if (shown && !passage(each.doc)) shown.passages.push(each);
  current = each.doc;
  draw();
}

/** @param {Plain} group */
function rename(group) {
  const input = h("input", { id: "group-name", type: "search", value: group.name || "", maxlength: 80, autocomplete: "off" });
  const save = () => { const name = /** @type {HTMLInputElement} */ (input).value.trim(); closeDialog(); if (name) void act({ act: "group", group: group.number, name }, `Group ${digit(group.number)} is named ${name}`); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); save(); } });
  dialog(`Name of group ${digit(group.number)}`, h("label", { class: "field", for: "group-name" }, h("span", null, "What this group is about"), input), h("div", { class: "acts" }, h("button", { type: "button", onclick: save }, "Save")));
  input.focus();
}

// Drawing

/** @param {Plain} each */
function stateText(each) {
  if (!each.judged) return "not judged";
  if (!each.judged.groups.length) return each.judged.harmful ? "harmful" : "not relevant";
  const groups = each.judged.groups.map(digit).sort();
  return `${groups.length > 1 ? "groups" : "group"} ${groups.join(" and ")}${graded(each.judged.grade)}`;
}

/** @param {number} grade */
const graded = (grade) => (grade === 1 ? "" : `, grade ${grade}`);

function drawTop() {
  const left = session.minutes ? `, about ${counted(Math.max(1, Math.round(session.minutes)), "minute")} left at your pace` : "";
  const { queue: all } = session;
  if (session.queries) element("progress").textContent = all ? `${all.answered.toLocaleString("en")} of ${counted(all.of, "question")}, the most suspicious first` : `${session.finished} of ${counted(session.queries.length, "query", "queries")}${left}`;
  const button = (/** @type {string} */ text, /** @type {string} */ key, /** @type {() => void} */ run) => h("button", { type: "button", class: "quiet", onclick: run }, `${text} `, h("kbd", null, key));
  element("session").replaceChildren(...(session.queries ? [button("Queries", "q", queue)] : []), button("Keys", "?", help));
}

function draw() {
  if (!shown) return;
  drawTop();
  const note = session.assisted ? "You started from prior judgments, so this ground truth is marked as assisted." : session.note;
  const body = session.kind === "audit" ? audit() : judging();
  element("main").replaceChildren(
    h("h1", { class: "asked", id: "query" }, hidden("Query: "), h("bdi", null, visible(shown.text))),
    shown.status === "open" ? "" : h("p", null, h("strong", null, shown.status === "skipped" ? "Skipped. " : shown.declared ? "Finished: no answer. " : "Finished. "), shown.prior ? "Any change reopens the query and marks it as assisted, because you have seen the draft." : "Any change reopens the query."),
    note ? h("p", { class: "soft" }, note) : "",
    body,
    bottom()
  );
  const card = document.querySelector(".card[aria-current]");
  if (card) card.scrollIntoView({ block: "nearest" });
}

function bottom() {
  const button = (/** @type {string} */ text, /** @type {string} */ key, /** @type {() => void} */ run, /** @type {string} */ kind = "") => h("button", { type: "button", class: kind, onclick: run }, `${text} `, h("kbd", null, key));
  return h("div", { class: "bottom" },
    confirming ? button("All others are not relevant", "0", () => void done("nonrelevant")) : null,
    session.queue ? null : button(confirming ? "Leave them unjudged, next query" : "Next query", "Enter", () => void done(), "primary"),
    button("Undo", "u", () => void undo()),
    session.queue ? null : button("Skip", "-", () => void skip()),
    session.kind === "audit" ? null : button("No answer", "a", () => void noAnswer()),
    session.kind === "audit" ? null : button("Search", "/", searching)
  );
}

async function skip() {
  await act({ act: "skip" });
  if (shown && shown.status === "skipped") await open(session.next);
}

function judging() {
  const groups = shown?.groups || [];
  const left = h("aside", { "aria-label": "Groups" },
    h("h2", null, groups.length ? `${counted(groups.length, "group")}${groups.length > 1 ? ", all needed" : ""}` : "No groups yet"),
    h("ol", { class: "own" }, ...groups.map(groupCard)),
    groups.length ? h("p", { class: "soft" }, "Any passage in a group is enough.") : h("p", { class: "soft" }, "Press ", h("kbd", null, "n"), " on a passage that answers the query, or a part of it.")
  );
  const more = shown?.suggestions || [];
  const right = h("section", { "aria-label": "Passages" },
    h("h2", null, counted(shown?.passages.length || 0, "passage")),
    h("ul", { class: "list" }, ...(shown?.passages || []).map(card)),
    more.length ? h("h2", null, "Nearly the same as a judged passage") : null,
    more.length ? h("ul", { class: "list" }, ...more.map(card)) : null,
    shown?.prior ? prior() : null
  );
  return h("div", { class: "work" }, left, right);
}

function prior() {
  return h("section", { id: "prior" }, h("h2", null, "Prior judgments"), ...shown?.prior.map((/** @type {Plain[]} */ group, /** @type {number} */ at) => h("p", null, `group ${at + 1}: `, ...group.flatMap((each, place) => [place ? " or " : "", named(each.doc), ` (${stateText(each)})`]))));
}

/** @param {Plain} group */
function groupCard(group) {
  return h("li", null,
    h("div", { class: "head" }, h("kbd", null, digit(group.number)), h("b", null, group.name ? h("bdi", null, short(group.name, 80)) : `group ${digit(group.number)}`), h("button", { type: "button", class: "quiet", onclick: () => rename(group) }, "name", hidden(` group ${digit(group.number)}`))),
    h("ul", null, ...group.docs.map((/** @type {string} */ doc) => h("li", null, h("button", { type: "button", class: "quiet", onclick: () => { current = doc; draw(); } }, named(doc, 60)))))
  );
}

/** @param {Plain} each */
function card(each) {
  const active = each.doc === current;
  const kind = !each.judged ? "state" : each.judged.groups.length ? "state in" : "state out";
  const head = h("div", { class: "head" },
    active ? named(each.doc) : h("button", { type: "button", class: "quiet", onclick: () => { current = each.doc; draw(); } }, named(each.doc)),
    each.like ? h("span", { class: "soft" }, `${Math.round(100 * each.similarity)}% like `, named(each.like)) : null,
    ...opinions(each.doc),
    h("span", { class: kind }, stateText(each))
  );
  if (!active) return h("li", { class: "card" }, head, snippet(each));
  return h("li", { class: "card", "aria-current": "true" }, head, h("p", { class: "text", tabindex: 0 }, ...marked(each)), buttons(each));
}

/** The beginning of a passage, its title in bold. @param {Plain} each */
function snippet(each) {
  const end = each.text.indexOf("\n");
  const title = end > 0 && end < 120 ? each.text.slice(0, end) : "";
  return h("p", { class: "brief" }, title ? h("b", null, brief(title), " · ") : null, brief(each.text.slice(title ? end + 1 : 0), 300));
}

/** What two annotators said. @param {string} doc */
function opinions(doc) {
  return Object.entries(shown?.opinions || {}).map(([by, said]) => {
    const one = said.passages[doc];
    const judged = !one ? "not judged" : one.groups.length ? `group ${one.groups.join(" and ")}${graded(one.grade)}` : one.harmful ? "harmful" : "not relevant";
    return h("span", { class: "tag" }, named(by, 30), `: ${said.status === "skipped" ? "skipped" : said.declared ? "no answer" : judged}`);
  });
}

/** The text, with its marked words. @param {Plain} each */
function marked(each) {
  const span = each.judged && each.judged.span;
  if (!span) return [visible(each.text)];
  const letters = [...each.text];
  const part = (/** @type {number} */ from, /** @type {number} */ to) => visible(letters.slice(from, to).join(""));
  return [part(0, span[0]), h("mark", null, part(span[0], span[1])), part(span[1], letters.length)];
}

/** @param {Plain} each */
function buttons(each) {
  const judged = each.judged ? each.judged.groups : [];
  const button = (/** @type {Child[]} */ text, /** @type {string} */ key, /** @type {() => void} */ run, /** @type {boolean | null} */ pressed = null) =>
    h("button", { type: "button", onclick: run, "aria-pressed": pressed === null ? null : String(pressed) }, ...text, " ", h("kbd", null, key));
  return h("div", { class: "acts", role: "group", "aria-label": "Judge this passage" },
    button(["New group"], "n", () => void newGroup(each)),
    ...(shown?.groups || []).slice(0, 9).map((/** @type {Plain} */ group, /** @type {number} */ at) => button([`Group ${groupName(group)}`], String(at + 1), () => void toggle(each, at + 1), judged.includes(group.number))),
    button(["Not relevant"], "0", () => void reject(each, "not_relevant"), Boolean(each.judged) && !judged.length && !each.judged.harmful),
    button(["Harmful"], "h", () => void reject(each, "harmful"), Boolean(each.judged?.harmful)),
    judged.length ? [1, 2, 3].map((value) => button([`Grade ${value}`], `⇧${value}`, () => void regrade(each, value), each.judged.grade === value)) : null,
    judged.length ? button([each.judged.span ? "Remove mark" : "Mark words"], "s", () => void mark(each)) : null,
    judged.length && (shown?.groups.length || 0) > 1 ? button(["Merge into …"], "m", () => merging(each)) : null,
    judged.length ? button(["Split off"], "x", () => void split(each)) : null
  );
}

/** @param {Plain} each */
function merging(each) {
  const from = each.judged && each.judged.groups[0];
  if (!from) return say("First put the passage into a group.", true);
  pending = "m";
  const others = shown?.groups.filter((/** @type {Plain} */ group) => group.number !== from);
  dialog(`Merge group ${digit(from)} into`, h("div", { class: "acts" }, ...others.map((/** @type {Plain} */ group) => h("button", { type: "button", onclick: () => void merge(from, group.number) }, `Group ${groupName(group)} `, h("kbd", null, digit(group.number))))));
  element("dialog").addEventListener("close", () => { pending = null; }, { once: true });
}

/** @param {number} from @param {number} into */
async function merge(from, into) {
  closeDialog();
  pending = null;
  await act({ act: "merge", group: from, into }, "Merged");
}

/** @param {Plain} each */
function split(each) {
  const from = each.judged && each.judged.groups[0];
  if (!from) return say("First put the passage into a group.", true);
  return act({ act: "split", group: from, docs: [each.doc] }, "Split off into a new group");
}

function audit() {
  const all = shown?.questions || [];
  const each = all[Number(current)];
  if (!each) return h("p", null, "There are no questions about this query. Press Enter to continue.");
  const same = each.item.kind === "same";
  const part = each.part ? `the part “${brief(each.part, 80)}”` : "the same part";
  const again = "Both passages answer one part of the query. Does each of them also answer the same other part?";
  const question = same && each.shared && !each.part ? again : same ? `Does each passage, on its own, answer ${part} of the query?` : "Is the first passage still needed, given the others?";
  const button = (/** @type {string} */ text, /** @type {string} */ key, /** @type {string} */ value) =>
    h("button", { type: "button", onclick: () => void answer(value), "aria-pressed": String(each.answer === value) }, `${text} `, h("kbd", null, key));
  const merges = same ? [] : each.passages.slice(1, 9).map((/** @type {Plain} */ one, /** @type {number} */ at) => button(`Same as passage ${at + 2}`, String(at + 2), String(one.group)));
  return h("section", { class: "card", "aria-current": "true" },
    session.queue ? null : h("p", { class: "soft" }, `question ${Number(current) + 1} of ${all.length}; ${all.filter((/** @type {Plain} */ one) => one.answer !== null).length} answered`),
    h("h2", null, question),
    h("div", { class: "pairs" }, ...each.passages.map((/** @type {Plain} */ one, /** @type {number} */ at) => h("div", null, h("b", null, `Passage ${at + 1}`), h("p", { class: "text", tabindex: 0 }, visible(one.text))))),
    h("div", { class: "acts", role: "group", "aria-label": "Answer" }, button("Yes", "y", "yes"), button("No", "n", "no"), ...merges, button("Cannot tell", "0", "unsure"))
  );
}

// Keys

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const box = /** @type {HTMLDialogElement} */ (element("dialog"));
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
  const number = /^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1] || (/^\d$/.test(event.key) ? event.key : null);
  if (box.open) {
    const from = passage(current)?.judged?.groups[0];
    const group = number && pending === "m" ? shown?.groups[Number(number) - 1] : null;
    if (group && from && group.number !== from) void merge(from, group.number);
    return;
  }
  if (event.key === "Enter" && target.matches("button, a, summary")) return;
  const run = keyed(event, number);
  if (run) {
    event.preventDefault();
    run();
  }
}

/** What a key does; null for nothing. @param {KeyboardEvent} event @param {string | null | undefined} number @returns {(() => void) | null} */
function keyed(event, number) {
  const { key } = event;
  if (key === "?") return help;
  if (!session.queries) return null;
  if (key === "q") return queue;
  if (key === "Enter") return () => void done();
  if (!shown) return null;
  if (key === "u") return () => void undo();
  if (key === "-" && !session.queue) return () => void skip();
  if (key === "ArrowDown" || key === "j") return () => move(1);
  if (key === "ArrowUp" || key === "k") return () => move(-1);
  if (session.kind === "audit") {
    if (key === "y" || key === "n") return () => void answer(key === "y" ? "yes" : "no");
    if (number === "0") return () => void answer("unsure");
    const one = number ? shown.questions[Number(current)]?.passages[Number(number) - 1] : null;
    return one && one.group ? () => void answer(String(one.group)) : null;
  }
  if (confirming && number === "0") return () => void done("nonrelevant");
  if (key === "/") return searching;
  if (key === "a") return () => void noAnswer();
  const each = passage(current);
  if (!each) return null;
  if (key === "n") return () => void newGroup(each);
  if (number === "0") return () => void reject(each, "not_relevant");
  if (key === "h") return () => void reject(each, "harmful");
  if (number && event.shiftKey) return Number(number) <= 3 ? () => void regrade(each, Number(number)) : null;
  if (number) return () => void toggle(each, Number(number));
  if (key === "s") return () => void mark(each);
  if (key === "m") return () => merging(each);
  if (key === "x") return () => void split(each);
  const group = shown.groups.find((/** @type {Plain} */ one) => each.judged?.groups.includes(one.number));
  if (key !== "r") return null;
  return group ? () => rename(group) : () => say("First put the passage into a group.", true);
}

document.addEventListener("keydown", pressed);

async function start() {
  drawTop();
  void indexing().catch(() => {});
  session = await ask("/api/overview");
  drawTop();
  await (session.queue ? open(session.queue.qid, session.queue.at) : open(session.next));
}

if (token) start().catch((error) => say(error.message, true));
else noToken();

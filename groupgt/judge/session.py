"""An annotator's session, which selects the next query, prepares its view, and records acts from the page."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Literal

from groupgt.curation.near import Passages
from groupgt.errors import ConfigError, DataError, display, listed
from groupgt.formats.journals import ADJUDICATES, ASSISTED, FIELDS, act_fault, settings_of
from groupgt.formats.replay import ANSWERS, FINISHING, OPEN, Act, QueryState, item_key, replayed
from groupgt.judge.adjudication import agreed, opinions
from groupgt.judge.audit import Question, questions, reference, shown_for
from groupgt.judge.index import Index
from groupgt.judge.log import ActLog
from groupgt.judge.pool import PoolRule, Rankings, fused, pooled, shuffled, spreads
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.sample import SAMPLE
from groupgt.render.tables import counted
from groupgt.store.journal import TIME

Kind = Literal["judge", "audit", "adjudicate"]
# Minimum similarity of an unjudged passage that is suggested for the groups of a judged one.
MIN_SIMILARITY = 0.9
# Seconds on one query above which the time counts as a break.
BREAK_S = 600
SEARCH_RESULTS = 20
# Fields that an act of the page may leave out.
DEFAULTS: dict[str, dict[str, Any]] = {
    "group": {"doc": None, "name": None},
    "relevant": {"grade": 1, "span": None},
    "done": {"rest": "unjudged"},
    "skip": {"reason": None},
}
# The acts of the page in an audit; otherwise, every act but an answer.
AUDIT_ACTS = ("answer", "undo", "done", "skip", "note")


class UnknownQueryError(DataError):
    """A query that does not belong to the session."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The scope and settings of a judging session.

    `judge` creates groups, `audit` asks about `truth`, and `adjudicate` resolves the `opinions` of two annotators.
    `next` decides which queries come first: those with the largest pools (`pool`), those with the lowest best score
    (`rrf`), or those whose unjudged results could move two runs apart most (`comparison`). With `blind`, `prior`
    judgments are hidden until the annotator has judged.
    """

    kind: Kind
    queries: Mapping[str, str]
    index: Index
    pool: PoolRule
    runs: Sequence[Rankings] = ()
    truth: GroundTruth | None = None
    prior: GroundTruth | None = None
    blind: bool = False
    sample: dict[str, Any] | None = None
    seed: int = 0
    next: str | None = None
    opinions: Mapping[str, Mapping[str, QueryState]] = field(default_factory=dict)
    out: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings recorded at the start of a journal, which cannot be continued with different settings."""
        chosen: dict[str, Any] = {"kind": self.kind, "pool": str(self.pool), "seed": self.seed}
        if self.sample is not None:
            chosen[SAMPLE] = self.sample
        if self.prior is not None:
            chosen |= {"prior": self.prior.digest, "blind": self.blind}
            chosen |= {} if self.blind else {ASSISTED: True}
        if self.kind == "audit" and self.truth is not None:
            chosen["truth"] = self.truth.digest
        if self.kind == "adjudicate":
            chosen |= {ADJUDICATES: list(self.opinions)}
        return chosen


@dataclass(frozen=True)
class _Order:
    """The order of work. `queue` lists all audit questions, most suspicious first, and `qids` the queries."""

    queue: list[Question]
    by_query: dict[str, list[Question]]
    qids: list[str]


class Session:
    """The state behind the page. Every change is written to the journal before it is shown."""

    def __init__(self, plan: Plan, log: ActLog) -> None:
        self.plan, self.log = plan, log
        begun = settings_of(log.acts)
        if log.acts and begun != plan.settings:
            differing = [key for key in {**begun, **plan.settings} if begun.get(key) != plan.settings.get(key)]
            settings = f"other settings ({', '.join(differing)}); use those, or another name with --by"
            raise ConfigError(f"{log.path}: this journal was started with {settings}")
        for source in (source for source in (plan.truth, plan.prior) if source is not None):
            for qid in plan.queries:
                starting(source, qid)
        self._lock = threading.Lock()
        self._order: _Order | None = None
        self._passages: Passages | None = None
        self._similar: dict[str, list[tuple[str, float]]] = {}
        self.near_fault = ""

    def begin(self) -> None:
        """Write the first act of a new journal."""
        if not self.log.acts:
            self.log.append({"act": "begin", "settings": self.plan.settings, "out": self.plan.out})

    def prepare(self) -> _Order:
        """Select the audit questions and order the queries. The first thread does the work, and other threads wait."""
        with self._lock:
            if self._order is None:
                queue = self._selected()
                by_query: dict[str, list[Question]] = {}
                for question in queue:
                    by_query.setdefault(question.qid, []).append(question)
                self._order = _Order(queue, by_query, self._ordered(by_query))
            return self._order

    def prepare_queries(self) -> None:
        """Prepare everything needed to show a query."""
        if self.plan.kind == "audit" or (self.plan.kind == "judge" and self.plan.pool.way == "bm25"):
            self.plan.index.build()
        self.prepare()

    def prepare_all(self) -> None:
        """Prepare everything that the page may need."""
        self.plan.index.build()
        self.prepare()

    @property
    def order(self) -> list[str]:
        """The queries of the session, in order."""
        return self.prepare().qids

    def _selected(self) -> list[Question]:
        plan = self.plan
        if plan.kind != "audit" or plan.truth is None:
            return []
        judged = {qid: starting(plan.truth, qid) for qid in plan.queries}
        docs = {qid: [list(group["docs"]) for group in groups] for qid, (groups, _) in judged.items()}
        nonrelevant = {qid: ids for qid, (_, ids) in judged.items()}
        return questions(docs, plan.queries, plan.index, plan.runs, plan.pool.size, nonrelevant)

    def _ordered(self, questions_of: Mapping[str, Sequence[Question]]) -> list[str]:
        plan = self.plan
        if plan.sample is not None:
            return list(plan.sample["order"])
        if plan.kind == "audit":
            # The order of the most suspicious question of each query.
            return list(dict.fromkeys([*questions_of, *plan.queries]))
        if plan.kind == "adjudicate" or plan.next is None:
            return list(plan.queries)
        if plan.next == "pool":
            return sorted(plan.queries, key=lambda qid: -len(self._pooled(qid)))
        if plan.next == "comparison":
            return sorted(plan.queries, key=lambda qid: -self._could_move(qid))
        scores = {qid: fused([run.get(qid, ()) for run in plan.runs]) for qid in plan.queries}
        return sorted(plan.queries, key=lambda qid: next(iter(scores[qid].values()), 0.0))

    def _could_move(self, qid: str) -> float:
        """Return how far all unjudged results of a query together could move two runs apart."""
        groups, nonrelevant = ([], []) if self.plan.truth is None else starting(self.plan.truth, qid)
        judged = [*nonrelevant, *(doc for group in groups for doc in group["docs"])]
        return sum(spreads([run.get(qid, ()) for run in self.plan.runs], judged, self.plan.pool.size).values())

    def _pooled(self, qid: str) -> list[str]:
        return pooled(self.plan.pool, qid, self.plan.queries[qid], self.plan.runs, self.plan.index)

    @property
    def states(self) -> dict[str, QueryState]:
        """The state of every query with at least one act."""
        return replayed(self.log.acts)

    def _acts_of(self, qid: str) -> list[Act]:
        return [act for act in self.log.acts if act.get("qid") == qid]

    def _is_opened(self, qid: str) -> bool:
        return any(act["act"] == "open" for act in self._acts_of(qid))

    def state(self, qid: str) -> QueryState:
        """Return the state of one query, or raise `UnknownQueryError` if it does not belong to the session."""
        sample = self.plan.sample
        if qid not in (self.plan.queries if sample is None else sample["order"]):
            part = "session" if sample is None else "sample"
            raise UnknownQueryError(f"expected a query in this {part}, found {display(qid)}")
        return replayed(self._acts_of(qid)).get(qid, QueryState())

    @property
    def progress(self) -> str:
        """The progress of the session, as text."""
        states = self.states
        if self.plan.kind == "audit" and self.plan.sample is None:
            return f"{counted(sum(len(state.answers) for state in states.values()), 'question')} answered"
        count = len(self.plan.queries if self.plan.sample is None else self.plan.sample["order"])
        finished = sum(state.status != OPEN for state in states.values())
        return f"{finished:,} of {counted(count, 'query', 'queries')} finished"

    def overview(self) -> dict[str, Any]:
        """Return all queries in order, with their progress."""
        plan, states = self.plan, self.states
        statuses = {qid: states[qid].status if qid in states else OPEN for qid in self.order}
        finished = sum(status != OPEN for status in statuses.values())
        return {
            "kind": plan.kind,
            "by": self.log.by,
            "queries": [{"qid": qid, "status": status, "text": plan.queries[qid]} for qid, status in statuses.items()],
            "finished": finished,
            "minutes": self._minutes_left(len(statuses) - finished),
            "fixed": plan.sample is not None,
            "assisted": plan.prior is not None and not plan.blind,
            "next": next((qid for qid, status in statuses.items() if status == OPEN), None),
            "note": self.near_fault,
            "queue": self._in_queue(states) if plan.kind == "audit" and plan.sample is None else None,
        }

    def _in_queue(self, states: Mapping[str, QueryState]) -> dict[str, Any]:
        """Return the number of answered audit questions, and the position of the first open one within its query."""
        answered = sum(len(state.answers) for state in states.values())
        progress = {"answered": answered, "of": len(self.prepare().queue), "qid": None, "at": None}
        for question in self.prepare().queue:
            qid, state = question.qid, states.get(question.qid, QueryState())
            if item_key(question.item) not in state.answers and not _is_moot(question, state):
                return {**progress, "qid": qid, "at": self._left(qid, state).index(question)}
        return progress

    def _left(self, qid: str, state: QueryState) -> list[Question]:
        """Return the questions about a query, except those made moot by other answers."""
        every = self.prepare().by_query.get(qid, [])
        return [each for each in every if item_key(each.item) in state.answers or not _is_moot(each, state)]

    def _minutes_left(self, left: int) -> float | None:
        """Estimate the remaining time as the median time per query, without breaks, times the remaining queries."""
        opened: dict[str, datetime] = {}
        took: list[float] = []
        for act in self.log.acts:
            if act["act"] == "begin" or "qid" not in act:
                continue
            at = datetime.strptime(act["at"], TIME)
            start = opened.setdefault(act["qid"], at)
            if act["act"] in FINISHING and 0 < (spent := (at - start).total_seconds()) < BREAK_S:
                took.append(spent)
        return left * median(took) / 60 if took and left else None

    def view(self, qid: str) -> dict[str, Any]:
        """Return the page view of one query. The first time that a query is opened is recorded as an act."""
        state = self.state(qid)
        self._check_order(qid)
        if not self._is_opened(qid):
            self.begin()
            self.log.append({"qid": qid, "act": "open", **self._opening(qid)})
            state = self.state(qid)
        shown: dict[str, Any] = {
            "qid": qid,
            "text": self.plan.queries[qid],
            "status": state.status,
            "reason": state.reason,
            "declared": not state.has_answer,
            "notes": state.notes,
            "can_undo": self._last(qid) is not None,
        }
        if self.plan.kind == "audit":
            questions_left = self._left(qid, state)
            return {**shown, "questions": [self._question(qid, question, state) for question in questions_left]}
        docs = list(dict.fromkeys([*state.pool, *state.passages]))
        kept = ((number, group) for number, group in state.groups.items() if group.docs)
        groups = [{"number": number, "name": group.name, "docs": list(group.docs)} for number, group in kept]
        similar = self._suggestions(state)
        shown |= {"groups": groups, "passages": [self._passage(doc, state) | similar.get(doc, {}) for doc in docs]}
        shown["suggestions"] = [self._passage(doc, state) | like for doc, like in similar.items() if doc not in docs]
        if self._has_draft(qid) and self.plan.prior is not None and state.status != OPEN:
            groups_before, _ = starting(self.plan.prior, qid)
            shown["prior"] = [[self._passage(doc, state) for doc in group["docs"]] for group in groups_before]
        if self.plan.kind == "adjudicate":
            shown["opinions"] = opinions(self._opinions_of(qid))
        return shown

    def _opinions_of(self, qid: str) -> dict[str, QueryState]:
        return {by: states[qid] for by, states in self.plan.opinions.items()}

    def _has_draft(self, qid: str) -> bool:
        """Return whether there is a draft that is hidden until the query is finished."""
        return self.plan.prior is not None and self.plan.blind and qid in self.plan.prior.index

    def _check_order(self, qid: str) -> None:
        """Check that the queries in a sample are opened in sample order."""
        if self.plan.sample is None:
            return
        states = self.states
        for earlier in self.order[: self.order.index(qid)]:
            if earlier not in states or states[earlier].status == OPEN:
                raise DataError(f"queries in a sample have a fixed order; finish or skip query {earlier!r} first")

    def _opening(self, qid: str) -> dict[str, Any]:
        plan = self.plan
        groups: list[dict[str, Any]] = []
        nonrelevant, harmful = list[str](), frozenset[str]()
        docs = self._pooled(qid) if plan.kind == "judge" else []
        for source in (plan.truth, plan.prior):
            if source is not None and qid in source.index:
                judged = starting(source, qid)
                docs += [doc for group in judged[0] for doc in group["docs"]]
                if (source is plan.truth and plan.kind == "audit") or (source is plan.prior and not plan.blind):
                    groups, nonrelevant = judged
                    harmful = source.harmful[source.index[qid]] if source.harmful else harmful
        if plan.kind == "adjudicate":
            groups, nonrelevant = agreed(self._opinions_of(qid))
            harmful = frozenset(nonrelevant).intersection(*(state.harmful for state in self._opinions_of(qid).values()))
            docs += [doc for state in self._opinions_of(qid).values() for doc in state.marks]
        pool = shuffled(plan.seed, qid, list(dict.fromkeys(doc for doc in docs if doc in plan.index.texts)))
        if plan.kind == "adjudicate":
            # Unsettled passages come first.
            settled = {*nonrelevant, *(doc for group in groups for doc in group["docs"])}
            pool.sort(key=settled.__contains__)
        opening = {"query": plan.queries[qid], "pool": pool, "groups": groups, "nonrelevant": nonrelevant}
        opening |= {"harmful": sorted(harmful)} if harmful else {}
        return opening | ({"draft": self._has_draft(qid)} if plan.blind else {})

    def _passage(self, doc: str, state: QueryState) -> dict[str, Any]:
        judgment = state.judgment(doc) if doc in state.marks else None
        judged = judgment and asdict(judgment)
        return {"doc": doc, "text": self.plan.index.texts.get(doc, ""), "judged": judged, "pooled": doc in state.pool}

    def _question(self, qid: str, question: Question, state: QueryState) -> dict[str, Any]:
        """Return a question with its passages in an order that does not reveal which one is in the ground truth."""
        index, shared = self.plan.index, False
        judged = [] if self.plan.truth is None else starting(self.plan.truth, qid)[0]
        groups = [list(group["docs"]) for group in judged]
        if question.doc is not None:
            similar, shared = reference(groups, question.group, question.doc, index)
            texts = [index.texts.get(doc, doc) for doc in (question.doc, similar)]
            code = hashlib.sha256(f"{self.plan.seed}\0{qid}\0{question.doc}".encode("utf-8", "surrogatepass")).digest()
            passages: list[dict[str, Any]] = [{"text": text} for text in (texts if code[0] % 2 else texts[::-1])]
        else:
            # Groups that were removed or merged are not shown again, except to show what was answered.
            answered = state.answers.get(item_key(question.item))
            others = [number for number in range(1, len(groups) + 1) if number != question.group]
            others = [number for number in others if number in state.groups or str(number) == answered]
            shown = {shown_for(groups, number): number for number in reversed([question.group, *others])}
            passages = [{"text": index.texts.get(doc, doc), "group": number} for doc, number in reversed(shown.items())]
        answer = state.answers.get(item_key(question.item))
        part = judged[question.group - 1]["name"]
        return {"item": question.item, "passages": passages, "answer": answer, "part": part, "shared": shared}

    def _suggestions(self, state: QueryState) -> dict[str, dict[str, Any]]:
        """Return unjudged passages that nearly match a relevant passage, with that passage and the similarity."""
        suggestions: dict[str, dict[str, Any]] = {}
        for doc, judgment in state.passages.items():
            if judgment.groups and doc in self.plan.index.texts:
                for name, similarity in self._similar_to(doc):
                    if name not in state.marks:
                        suggestions.setdefault(name, {"like": doc, "similarity": round(similarity, 3)})
        return suggestions

    def _similar_to(self, doc: str) -> list[tuple[str, float]]:
        if doc not in self._similar and not self.near_fault:
            texts = self.plan.index.texts
            try:
                self._passages = self._passages or Passages(texts)
                self._similar[doc] = self._passages.similar_to([texts[doc]], MIN_SIMILARITY)[texts[doc]]
            except ConfigError as error:
                self.near_fault = str(error)
        return self._similar.get(doc, [])

    def search(self, text: str, qid: str) -> list[dict[str, Any]]:
        """Return the corpus passages that best match the search text."""
        state = self.state(qid)
        return [self._passage(doc, state) for doc in self.plan.index.search(text[:1000], SEARCH_RESULTS)]

    def act(self, requested: Mapping[str, Any]) -> Act:
        """Write an act from the page to the journal, or raise `DataError` if the act is currently invalid."""
        kind, qid = requested.get("act"), requested.get("qid")
        if not isinstance(qid, str) or not isinstance(kind, str) or kind in ("begin", "open"):
            raise DataError(f"expected an action on a query, found {display(dict(requested))}")
        state = self.state(qid)
        self._check_order(qid)
        if not self._is_opened(qid):
            raise DataError(f"query {qid!r} has not been opened")
        if self.plan.kind == "audit" and kind not in AUDIT_ACTS:
            raise DataError(f"expected an answer to one of this audit's questions, found the action {display(kind)}")
        fields: dict[str, Any] = {**DEFAULTS.get(kind, {}), "qid": qid, "act": kind}
        fields |= {key: value for key, value in requested.items() if key in FIELDS.get(kind, {})}
        if kind == "undo":
            fields["of"] = self._last(qid)
            if fields["of"] is None:
                raise DataError("nothing to undo")
        elif kind == "split" or (kind == "group" and fields.get("group") is None):
            # A number that the query has never used, not even in an undone act.
            used = (act.get(key) for act in self._acts_of(qid) for key in ("group", "new"))
            numbers = [number for number in used if isinstance(number, int)]
            fields["new" if kind == "split" else "group"] = 1 + max([0, *numbers, *state.groups])
        elif kind == "group" and fields["group"] not in list(state.groups):
            raise DataError(f"expected a group from query {qid!r}, found {display(fields['group'])}")
        if fault := act_fault({"at": "", "by": "", "seq": 0, **fields}):
            raise DataError(fault)
        self._check(fields, state)
        return self.log.append(fields)

    def _check(self, act: Mapping[str, Any], state: QueryState) -> None:
        """Raise `DataError` if an act names passages or groups that do not exist."""
        texts, kind = self.plan.index.texts, act["act"]
        for doc in (act.get("doc"), *(act.get("docs") or [])):
            if doc is not None and doc not in texts and doc not in state.marks:
                raise DataError(f"expected a passage from the corpus, found {display(doc)}")
        one = act.get("group")
        of_groups = {"relevant": act.get("groups"), "merge": [one, act.get("into")], "split": [one]}
        for group in of_groups.get(kind) or []:
            if group not in state.groups:
                raise DataError(f"expected a group from query {act['qid']!r}, found {display(group)}")
        span = act.get("span")
        if kind == "relevant" and span is not None and span[1] > len(texts.get(act["doc"], "")):
            raise DataError(f"expected a span within the passage, found {display(span)}")
        if kind == "merge" and act["group"] == act["into"]:
            raise DataError(f"expected two different groups, found {act['group']} twice")
        if kind == "split" and not set(act["docs"]) <= set(state.groups[act["group"]].docs):
            raise DataError(f"expected passages in group {act['group']}, found {display(act['docs'])}")
        if kind == "no_answer" and any(group.docs for group in state.groups.values()):
            raise DataError("the query has relevant passages; remove them from their groups first")
        if kind == "answer":
            self._check_answer(act, state)

    def _check_answer(self, act: Mapping[str, Any], state: QueryState) -> None:
        asked = [question for question in self.prepare().by_query.get(act["qid"], []) if question.item == act["item"]]
        if not asked:
            raise DataError("expected one of this audit's questions")
        values = [*ANSWERS]
        if asked[0].kind == "needed":
            others = self._question(act["qid"], asked[0], state)["passages"][1:]
            values += [str(passage["group"]) for passage in others]
        if act["value"] not in values:
            raise DataError(f"expected {listed(values)} as the answer, found {display(act['value'])}")

    def _last(self, qid: str) -> int | None:
        """Return the last act of a query that can be undone."""
        acts = self._acts_of(qid)
        undone = {act["of"] for act in acts if act["act"] == "undo"}
        left = [act["seq"] for act in acts if act["act"] not in ("undo", "open", "note") and act["seq"] not in undone]
        return left[-1] if left else None


def _is_moot(question: Question, state: QueryState) -> bool:
    """Return whether other answers make a question pointless because its group was removed or is the last one left."""
    if not state.groups:
        return False
    return question.group not in state.groups or (question.kind == "needed" and len(state.groups) == 1)


def starting(truth: GroundTruth, qid: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return groups in the form of an act (grades, name, weight and importance), and the ids judged non-relevant."""
    groups: list[dict[str, Any]] = []
    nonrelevant: list[str] = []
    for group in truth[qid] if qid in truth.index else []:
        fields = group if isinstance(group, dict) else {"alternatives": group}
        cells = [{"id": cell} if isinstance(cell, str) else cell for cell in fields["alternatives"]]
        pairs = [(cell.get("id"), float(cell.get("grade", 1))) for cell in cells]
        if any(name is None for name, _ in pairs):
            what = "found spans, text or sets, which cannot be judged; put the queries in a file without ground truth"
            raise ConfigError(f"query {qid!r}: expected passage ids in the existing ground truth, {what}")
        relevant = {str(name): grade for name, grade in pairs if grade > 0}
        nonrelevant += [str(name) for name, grade in pairs if grade <= 0]
        if relevant:
            more = {key: fields[key] for key in ("weight", "importance") if key in fields}
            groups.append({"docs": relevant, "name": fields.get("name"), **({"more": more} if more else {})})
    return groups, nonrelevant

"""An annotator's session: it selects the next query, prepares its view, and records acts from the page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Literal

from groupgt.curation.matching import matching
from groupgt.curation.near import Passages
from groupgt.errors import ConfigError, DataError, display
from groupgt.formats.journals import (
    ADJUDICATES,
    ASSISTED,
    DONE,
    FIELDS,
    OPEN,
    SKIPPED,
    Act,
    QueryState,
    act_fault,
    item_key,
    replayed,
    settings_of,
)
from groupgt.judge.audit import Question, questions, reference, shown_for
from groupgt.judge.log import ActLog
from groupgt.judge.pool import Index, PoolRule, Rankings, fused, pooled, shuffled
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.sample import SAMPLE
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


@dataclass(frozen=True, eq=False)
class Plan:
    """The scope and settings of a judging session.

    Args:
        kind: `judge` makes groups; `audit` asks questions about `truth`; `adjudicate` resolves different `opinions`.
        queries: The text of each query, in order.
        index: The corpus.
        pool: The rule for selecting passages.
        runs: System results.
        truth: Existing ground truth; its passages are added to the pool.
        prior: Prior judgments.
        blind: Whether prior judgments are hidden until the annotator has judged the query.
        sample: A random sample in a fixed order.
        seed: The seed for shuffling passages and questions.
        next: `pool` puts queries with the largest pools first, `rrf` queries whose best passage has the lowest score.
        opinions: The states of two annotators.
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


class Session:
    """The state behind the page; every change is written to the journal before it is shown."""

    def __init__(self, plan: Plan, log: ActLog) -> None:
        self.plan, self.log = plan, log
        begun = settings_of(log.acts)
        if not log.acts:
            log.append({"act": "begin", "settings": plan.settings})
        elif begun != plan.settings:
            differing = [key for key in {**begun, **plan.settings} if begun.get(key) != plan.settings.get(key)]
            raise ConfigError(
                f"{log.path}: this journal was begun with other settings ({', '.join(differing)}); "
                "use those, or another name with --by"
            )
        self._queue: list[Question] = []
        self._questions: dict[str, list[Question]] = {}
        if plan.kind == "audit" and plan.truth is not None:
            judged = {qid: starting(plan.truth, qid) for qid in plan.queries}
            docs = {qid: [list(group["docs"]) for group in groups] for qid, (groups, _) in judged.items()}
            nonrelevant = {qid: ids for qid, (_, ids) in judged.items()}
            self._queue = questions(docs, plan.queries, plan.index, plan.runs, plan.pool.size, nonrelevant)
            for question in self._queue:
                self._questions.setdefault(question.qid, []).append(question)
        self.order = self._ordered()
        self._passages: Passages | None = None
        self._similar: dict[str, list[tuple[str, float]]] = {}
        self.near_fault = ""

    def _ordered(self) -> list[str]:
        plan = self.plan
        if plan.sample is not None:
            return list(plan.sample["order"])
        if plan.kind == "adjudicate":
            return list(plan.queries)
        if plan.kind == "audit":
            # The order of the most suspicious question of each query.
            return [*self._questions, *(qid for qid in plan.queries if qid not in self._questions)]
        if plan.next is None:
            return list(plan.queries)
        if plan.next == "pool":
            return sorted(plan.queries, key=lambda qid: -len(self._pooled(qid)))
        scores = {qid: fused([run.get(qid, ()) for run in plan.runs]) for qid in plan.queries}
        return sorted(plan.queries, key=lambda qid: next(iter(scores[qid].values()), 0.0))

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
        """Return the state of one query; raises `DataError` if the query is unknown."""
        if qid not in self.plan.queries:
            raise DataError(f"expected a query of this session, found {display(qid)}")
        return replayed(self._acts_of(qid)).get(qid, QueryState())

    # --- What the page shows.

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
        """Return the number of answered audit questions, and the first open question, as a position in its query."""
        answered = sum(len(state.answers) for state in states.values())
        progress = {"answered": answered, "of": len(self._queue), "qid": None, "at": None}
        for question in self._queue:
            qid, state = question.qid, states.get(question.qid, QueryState())
            if item_key(question.item) not in state.answers and not _is_moot(question, state):
                return {**progress, "qid": qid, "at": self._left(qid, state).index(question)}
        return progress

    def _left(self, qid: str, state: QueryState) -> list[Question]:
        """Return the questions about a query, except those made moot by other answers."""
        return [
            question
            for question in self._questions.get(qid, [])
            if item_key(question.item) in state.answers or not _is_moot(question, state)
        ]

    def _minutes_left(self, left: int) -> float | None:
        """Estimate the remaining time: the median time per query, without breaks, times the remaining queries."""
        opened: dict[str, datetime] = {}
        took: list[float] = []
        for act in self.log.acts:
            if act["act"] == "begin" or "qid" not in act:
                continue
            at = datetime.strptime(act["at"], TIME)
            start = opened.setdefault(act["qid"], at)
            if act["act"] in (DONE, "skip") and 0 < (spent := (at - start).total_seconds()) < BREAK_S:
                took.append(spent)
        return left * median(took) / 60 if took and left else None

    def view(self, qid: str) -> dict[str, Any]:
        """Return the page view of one query; opening it for the first time is recorded as an act."""
        state = self.state(qid)
        self._check_order(qid)
        if not self._is_opened(qid):
            self.log.append({"qid": qid, "act": "open", **self._opening(qid)})
            state = self.state(qid)
        shown: dict[str, Any] = {
            "qid": qid,
            "text": self.plan.queries[qid],
            "status": state.status,
            "reason": state.reason,
            "notes": state.notes,
            "can_undo": self._last(qid) is not None,
        }
        if self.plan.kind == "audit":
            questions_left = self._left(qid, state)
            return {**shown, "questions": [self._question(qid, question, state) for question in questions_left]}
        docs = list(dict.fromkeys([*state.pool, *state.passages]))
        groups = [
            {"number": number, "name": name, "docs": members}
            for number, name in state.groups.items()
            if (members := state.members(number))
        ]
        similar = self._suggestions(state)
        shown |= {"groups": groups, "passages": [self._passage(doc, state) | similar.get(doc, {}) for doc in docs]}
        shown["suggestions"] = [self._passage(doc, state) | like for doc, like in similar.items() if doc not in docs]
        if self.plan.prior is not None and self.plan.blind and state.status != OPEN:
            groups_before, _ = starting(self.plan.prior, qid)
            shown["prior"] = [[self._passage(doc, state) for doc in group["docs"]] for group in groups_before]
        if self.plan.kind == "adjudicate":
            shown["opinions"] = self._opinions(qid)
        return shown

    def _check_order(self, qid: str) -> None:
        """Check that the queries in a sample are opened in sample order."""
        if self.plan.sample is None:
            return
        states = self.states
        for earlier in self.order[: self.order.index(qid)]:
            if earlier not in states or states[earlier].status == OPEN:
                raise DataError(f"the order of a sample is fixed: query {earlier!r} comes first; finish or skip it")

    def _opening(self, qid: str) -> dict[str, Any]:
        plan = self.plan
        groups: list[dict[str, Any]] = []
        nonrelevant: list[str] = []
        docs = self._pooled(qid) if plan.kind == "judge" else []
        for source in (plan.truth, plan.prior):
            if source is not None and qid in source.index:
                judged = starting(source, qid)
                docs += [doc for group in judged[0] for doc in group["docs"]]
                if (source is plan.truth and plan.kind == "audit") or (source is plan.prior and not plan.blind):
                    groups, nonrelevant = judged
        if plan.kind == "adjudicate":
            groups, nonrelevant = self._agreed(qid)
            docs += [doc for states in plan.opinions.values() for doc in states[qid].passages]
        pool = shuffled(plan.seed, qid, list(dict.fromkeys(doc for doc in docs if doc in plan.index.texts)))
        if plan.kind == "adjudicate":
            # Unsettled passages come first.
            settled = {*nonrelevant, *(doc for group in groups for doc in group["docs"])}
            pool.sort(key=settled.__contains__)
        return {"query": plan.queries[qid], "pool": pool, "groups": groups, "nonrelevant": nonrelevant}

    def _aligned(self, qid: str) -> tuple[list[QueryState], list[tuple[int | None, int | None]]]:
        """Return the states of both annotators, and pairs of their groups, matched by shared passages."""
        states = [by_query[qid] for by_query in self.plan.opinions.values()]
        members = [
            {number: docs for number in state.groups if (docs := set(state.members(number)))} for state in states
        ]
        pairs = matching(*(list(groups.values()) for groups in members))
        numbers: list[dict[int | None, int]] = [dict(enumerate(groups)) for groups in members]
        return states, [(numbers[0].get(one), numbers[1].get(two)) for one, two in pairs]

    def _agreed(self, qid: str) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the groups and judgments on which both annotators agree; everything else stays open."""
        (first, second), pairs = self._aligned(qid)
        apart = {
            doc
            for one, two in pairs
            for doc in set(first.members(one) if one else ()) ^ set(second.members(two) if two else ())
        }
        groups: list[dict[str, Any]] = []
        for one, two in pairs:
            both = [doc for doc in first.members(one) if doc in second.members(two)] if one and two else []
            agreed = {doc: first.passages[doc].grade for doc in both if doc not in apart}
            if agreed and one and two:
                groups.append({"docs": agreed, "name": first.groups[one] or second.groups[two]})
        return groups, [doc for doc in first.nonrelevant if doc in second.nonrelevant]

    def _opinions(self, qid: str) -> dict[str, Any]:
        """Return each annotator's groups for each passage, numbered consistently; None if the query was skipped."""
        states, pairs = self._aligned(qid)
        judgments: dict[str, Any] = {}
        for side, (by, state) in enumerate(zip(self.plan.opinions, states)):
            numbers = {pair[side]: number for number, pair in enumerate(pairs, 1) if pair[side] is not None}
            by_passage = {
                doc: sorted(numbers[group] for group in judgment.groups) for doc, judgment in state.passages.items()
            }
            judgments[by] = None if state.status == SKIPPED else by_passage
        return judgments

    def _passage(self, doc: str, state: QueryState) -> dict[str, Any]:
        judgment = state.passages.get(doc)
        judged = judgment and {"groups": judgment.groups, "grade": judgment.grade, "span": judgment.span}
        return {"doc": doc, "text": self.plan.index.texts.get(doc, ""), "judged": judged, "pooled": doc in state.pool}

    def _question(self, qid: str, question: Question, state: QueryState) -> dict[str, Any]:
        """Return a question with its texts in an order that does not reveal which passage is in the ground truth."""
        index, shared = self.plan.index, False
        judged = [] if self.plan.truth is None else starting(self.plan.truth, qid)[0]
        groups = [list(group["docs"]) for group in judged]
        if question.doc is not None:
            similar, shared = reference(groups, question.group, question.doc, index)
            texts = [index.texts.get(doc, doc) for doc in (question.doc, similar)]
            code = hashlib.sha256(f"{self.plan.seed}\0{qid}\0{question.doc}".encode("utf-8", "surrogatepass")).digest()
            passages: list[dict[str, Any]] = [{"text": text} for text in (texts if code[0] % 2 else texts[::-1])]
        else:
            numbers = [question.group, *(number for number in range(1, len(groups) + 1) if number != question.group)]
            shown = {shown_for(groups, number): number for number in reversed(numbers)}
            passages = [{"text": index.texts.get(doc, doc), "group": number} for doc, number in reversed(shown.items())]
        answer = state.answers.get(item_key(question.item))
        part = state.groups.get(question.group)
        return {"item": question.item, "passages": passages, "answer": answer, "part": part, "shared": shared}

    def _suggestions(self, state: QueryState) -> dict[str, dict[str, Any]]:
        """Return unjudged passages that nearly match a relevant passage, with that passage and the similarity."""
        suggestions: dict[str, dict[str, Any]] = {}
        for doc, judgment in state.passages.items():
            if judgment.groups and doc in self.plan.index.texts:
                for name, similarity in self._similar_to(doc):
                    if name not in state.passages:
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
        """Return the corpus passages that best match a text."""
        state = self.state(qid)
        return [self._passage(doc, state) for doc in self.plan.index.search(text[:1000], SEARCH_RESULTS)]

    # --- What an act becomes.

    def _new_group(self, qid: str, state: QueryState) -> int:
        """Return a group number that the query has never used, not even in an undone act."""
        acts = self._acts_of(qid)
        had = [int(act[key]) for act in acts for key in ("group", "new") if isinstance(act.get(key), int)]
        return 1 + max([0, *had, *state.groups])

    def act(self, requested: Mapping[str, Any]) -> Act:
        """Write an act from the page to the journal; raises `DataError` if the act is currently invalid."""
        kind, qid = requested.get("act"), requested.get("qid")
        if not isinstance(qid, str) or not isinstance(kind, str) or kind in ("begin", "open"):
            raise DataError(f"expected an act on a query, found {display(dict(requested))}")
        state = self.state(qid)
        self._check_order(qid)
        if not self._is_opened(qid):
            raise DataError(f"query {qid!r} was not opened")
        fields: dict[str, Any] = {**DEFAULTS.get(kind, {}), "qid": qid, "act": kind}
        fields |= {key: value for key, value in requested.items() if key in FIELDS.get(kind, {})}
        if kind == "undo":
            fields["of"] = self._last(qid)
            if fields["of"] is None:
                raise DataError("nothing to undo")
        elif kind == "split" or (kind == "group" and fields.get("group") is None):
            fields["new" if kind == "split" else "group"] = self._new_group(qid, state)
        elif kind == "group" and fields["group"] not in list(state.groups):
            raise DataError(f"expected a group of query {qid!r}, found {display(fields['group'])}")
        if fault := act_fault({"at": "", "by": "", "seq": 0, **fields}):
            raise DataError(fault)
        self._check(fields, state)
        return self.log.append(fields)

    def _check(self, act: Mapping[str, Any], state: QueryState) -> None:
        """Raise `DataError` if an act names passages or groups that do not exist."""
        texts, kind = self.plan.index.texts, act["act"]
        for doc in (act.get("doc"), *(act.get("docs") or [])):
            if doc is not None and doc not in texts and doc not in state.passages:
                raise DataError(f"expected a passage of the corpus, found {display(doc)}")
        of_groups = {
            "relevant": act.get("groups"),
            "merge": [act.get("group"), act.get("into")],
            "split": [act.get("group")],
        }
        for group in of_groups.get(kind) or []:
            if group not in state.groups:
                raise DataError(f"expected a group of query {act['qid']!r}, found {display(group)}")
        span = act.get("span")
        if (
            kind == "relevant"
            and span is not None
            and not (isinstance(span, list) and span[-1:] <= [len(texts[act["doc"]])])
        ):
            raise DataError(f"expected a span within the passage, found {display(span)}")
        if kind == "answer":
            items = [question.item for question in self._questions.get(str(act["qid"]), [])]
            if act.get("item") not in items:
                raise DataError("expected a question of this audit")

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
    """Return groups as in an act, with grades, name, weight and importance, and the ids judged non-relevant."""
    groups: list[dict[str, Any]] = []
    nonrelevant: list[str] = []
    for group in truth[qid] if qid in truth.index else []:
        fields = group if isinstance(group, dict) else {"alternatives": group}
        pairs = [
            (cell, 1.0) if isinstance(cell, str) else (cell.get("id"), float(cell.get("grade", 1)))
            for cell in fields["alternatives"]
        ]
        if any(name is None for name, _ in pairs):
            raise ConfigError(
                f"query {qid!r}: expected ids of passages in existing ground truth, found spans, texts or sets"
            )
        relevant = {str(name): grade for name, grade in pairs if grade > 0}
        nonrelevant += [str(name) for name, grade in pairs if grade <= 0]
        if relevant:
            more = {key: fields[key] for key in ("weight", "importance") if key in fields}
            groups.append({"docs": relevant, "name": fields.get("name"), **({"more": more} if more else {})})
    return groups, nonrelevant

"""Grouped ground truth, stored as columns: each query has groups (AND) of alternatives (OR)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, islice
from typing import Any

import numpy as np

from groupgt import native
from groupgt.errors import ConfigError, DataError, display, listed, near_names, refuse
from groupgt.model.groups import ALONE, Read, declared_unanswerable, read_groups, read_judgments, read_named, read_qrels
from groupgt.model.hits import Bools, Floats, Ints, Judgments
from groupgt.model.policy import Policy
from groupgt.model.validity import BLANK_IDS
from groupgt.model.values import Form, count_distinct, kind_of, normal_text
from groupgt.model.written import Shape, Written
from groupgt.runtime import hashlib


@dataclass(frozen=True, eq=False, repr=False)
class GroundTruth(Written):
    """Grouped ground truth for a set of queries; `[["a", "b"], ["c"]]` means (a or b) and c.

    The data are stored as columns: `ids`, `grade` and `group_of` for each alternative; `group_query`, `group_weight`
    and `group_name` for each group, sorted by query. For an alternative that is not an id, `forms` contains its `Span`
    or marks it as text, and `ids` contains its name. `texts` contains the query texts, and `columns` contains the other
    query columns, for slicing with `by`. `repeated_ids` counts duplicate ids in groups, `dropped` lists the query of
    each empty group, and `blank` the query of each remaining group with a blank id. `keys` lists the JSON Lines keys in
    file order. `importance` contains the group importance levels, if any are set. `policy` decides which grades are
    relevant and which groups count. `shape` describes the input: single documents (`flat`, one per group), documents
    for `subtopics`, or `groups`. `excluded` contains the ids to exclude from each query's results, if any. `harmful`
    contains the ids that must not be among a query's results; these ids are judged non-relevant. If some alternatives
    are needed together as a set (`{"all": ["a1", "a2"]}`), `set_of` contains the set number of each alternative, or −1
    for alternatives in no set; otherwise, it is None. `comments` counts lines of the file that begin with `#` and are
    not rows. If the policy selects groups by importance, `judged` marks the queries that have alternatives in any
    group. If these queries were selected from other ground truth, `highest` is its highest grade, `has_rejected` is
    True if it judges any document non-relevant, and `selected_from` contains all its query ids. `unsplit` contains
    texts that were read as one id although a list of ids was expected, with their locations.

    >>> truth = GroundTruth.of({"q1": [["a", "b"], ["c"]], "q2": [["d"]]})
    >>> len(truth), truth["q1"]
    (2, [['a', 'b'], ['c']])
    """

    @classmethod
    def of(
        cls,
        groups: Mapping[Any, Any],
        policy: Policy | str | Sequence[str] | Mapping[str, Any] | None = None,
        *,
        excluded_ids: Mapping[Any, Any] | None = None,
        harmful_ids: Mapping[Any, Any] | None = None,
        shape: Shape = "groups",
    ) -> GroundTruth:
        """Read `{qid: groups}`, or qrels as `{qid: {id: grade}}`, or raise a `DataError` that lists all errors.

        A group is a sequence of ids, or `{"alternatives": [...], "weight": 2, "name": "capital", "importance":
        "vital"}`. An alternative is an id or `{"id": "b", "grade": 2}`, a span `{"doc": "d", "start": 120, "end":
        480}`, or `{"text": "…"}`. Integer ids are converted to decimal text. `excluded_ids` maps queries to ids that
        are removed from their results before evaluation, and `harmful_ids` maps queries to ids that must not be
        returned (metrics `harmful` and `clean`). `shape` declares that groups are `subtopics`, or `flat`
        (single documents, one per group), which changes the default convention.
        """
        named: list[list[Any] | None] = []
        for column, ids in (("excluded_ids", excluded_ids or {}), ("harmful_ids", harmful_ids or {})):
            unknown = [qid for qid in ids if qid not in groups]
            refuse((f"{column} of query {qid!r}", "this query is not in the ground truth") for qid in unknown)
            named.append([ids.get(qid) for qid in groups] if ids else None)
        qids, rows = list(groups), list(groups.values())
        if rows and isinstance(rows[0], Mapping):
            if others := {kind for kind in set(map(type, rows)) if not issubclass(kind, Mapping)}:
                qid, row = next((qid, row) for qid, row in zip(qids, rows) if type(row) in others)
                what = f"expected {{id: grade}}, as for query {qids[0]!r}, found {display(row)}"
                way = "write all queries as {id: grade}, or all as lists of groups"
                raise DataError(f"query {qid!r}: {what}; {way}")
            return cls._built(read_qrels(qids, rows), named, policy=Policy.of(policy), shape="flat")
        return cls.from_rows(qids, rows, Policy.of(policy), excluded=named[0], harmful=named[1]).of_shape(shape)

    def of_shape(self, shape: Shape) -> GroundTruth:
        """Change the shape. Raise `DataError` if the new shape is `flat` and some groups have several alternatives."""
        if shape == self.shape:
            return self
        if shape == "flat" and len(self.ids) > count_distinct(self.group_of):
            group = int(self.group_of[1:][self.group_of[1:] == self.group_of[:-1]][0])
            qid = self.qids[int(self.group_query[group])]
            raise DataError(f"query {qid!r}: expected single documents (flat), found groups with alternatives")
        return replace(self, shape=shape)

    @classmethod
    def from_rows(
        cls,
        qids: Sequence[Any],
        groups: Sequence[Any],
        policy: Policy,
        *,
        place: Callable[[int], str] | None = None,
        texts: list[str | None] | None = None,
        columns: Mapping[str, list[Any]] | None = None,
        excluded: Sequence[Any] | None = None,
        harmful: Sequence[Any] | None = None,
    ) -> GroundTruth:
        """Read one row per query. `place(i)` returns the location of row i (file and line) for error messages.

        `excluded` and `harmful` contain the ids to exclude from each query's results, and the ids that must not occur
        in them. Each cell is a list, or None or "N/A" for no ids.
        """
        read = read_groups(qids, groups, policy, place)
        return cls._built(read, (excluded, harmful), place, texts=texts, columns=columns or {}, policy=policy)

    @classmethod
    def from_judgments(
        cls,
        qids: Sequence[str],
        ids: Sequence[str],
        grades: Floats,
        groups: Sequence[str] | None = None,
        weights: Floats | None = None,
        *,
        excluded: Mapping[str, list[Any]] | None = None,
        harmful: Mapping[str, list[Any]] | None = None,
        **others: Any,
    ) -> GroundTruth:
        """Build ground truth from one judgment per row. Rows with the same query and group form a group.

        Without `groups`, each row is a separate group. Ids and grades must be valid; a group has the weight of its
        first row. The other arguments are fields, except `more_qids`, which lists queries that may have no judgments.
        """
        columns = read_judgments(qids, ids, grades, groups, weights, others.pop("more_qids", ()))
        named = [ids and [ids.get(qid) for qid in columns["qids"]] for ids in (excluded, harmful)]
        return cls._built((columns, {}), named, **others)

    @classmethod
    def _built(cls, read: Read, named: Sequence[Any], place: Any = None, **others: Any) -> GroundTruth:
        """Build ground truth from parsed columns. `named` contains the excluded and the harmful ids of each query."""
        truth = cls(**read[0], **others)
        vars(truth).update(read[1])
        truth = truth._without_repeats()
        if not any(ids is not None for column in named for ids in column or ()):
            return truth
        excluded, harmful = named
        others_of: dict[str, Sequence[Collection[str]]] = {"relevant": truth._relevant_ids()}
        if left_out := read_named("excluded", truth.qids, excluded, others_of, place):
            others_of["excluded"] = left_out
        banned = read_named("harmful", truth.qids, harmful, others_of, place)
        return replace(truth, excluded=left_out, harmful=banned)._with_harmful_judged()

    def _with_harmful_judged(self) -> GroundTruth:
        """Judge harmful passages non-relevant. Each passage without a judgment becomes its own group with grade 0."""
        if self.harmful is None:
            return self
        judged = set(compress(zip(self.query_of.tolist(), self.ids), (self.grade >= 0).tolist()))
        rows = [
            [*self[qid], *([{"id": name, "grade": 0}] for name in sorted(ids) if (query, name) not in judged)]
            for query, (qid, ids) in enumerate(zip(self.qids, self.harmful))
        ]
        more = self.from_rows(self.qids, rows, self.policy, texts=self.texts, columns=self.columns)
        more = replace(more, dropped=self.dropped, blank=self.blank)
        more = replace(more, repeated_ids=self.repeated_ids, unsplit=self.unsplit)
        return replace(more, shape=self.shape, excluded=self.excluded, harmful=self.harmful)

    def _relevant_ids(self) -> list[set[str]]:
        ids: list[set[str]] = [set() for _ in self.qids]
        for alternative in np.flatnonzero(self.grade > 0).tolist():
            if not self.forms or self.forms[alternative] is None:
                ids[int(self.query_of[alternative])].add(self.ids[alternative])
        return ids

    def __repr__(self) -> str:
        return f"GroundTruth({len(self):,} queries, {len(self.group_query):,} groups, {len(self.ids):,} alternatives)"

    def relevant(self, qid: str) -> list[Any]:
        """Return the groups that a query's results must cover, in input form, with only their relevant alternatives."""
        query = self.index[qid]
        groups = self.relevant_groups[self.group_query[self.relevant_groups] == query].tolist()
        return [self._group_as_written(group, self.relevant_in(group)) for group in groups]

    def members_of(self, group: int) -> list[tuple[str, ...]]:
        """Return a group's relevant alternatives as tuples of names that are needed together (usually one name)."""
        # The order of members does not matter.
        sets = self._sets(self.relevant_in(group))
        return [tuple(sorted(self.ids[member] for member in members)) for members in sets]

    def alternatives_of(self, group: int) -> list[tuple[str, float]]:
        """Return the names and grades of a group's relevant alternatives. Members of a set are joined with `and`."""
        sets = self._sets(self.relevant_in(group))
        names = [" and ".join(self.ids[member] for member in members) for members in sets]
        if len(sets) > 1:
            names = [f"({name})" if len(members) > 1 else name for name, members in zip(names, sets)]
        return [(name, float(self.grade[members[0]])) for name, members in zip(names, sets)]

    @property
    def file_order(self) -> list[str]:
        """The ids of all queries in file order, before any queries were selected."""
        return self.qids if self.selected_from is None else self.selected_from

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The ids of the queries that were not selected, and whose results do not count as extra."""
        return frozenset(self.selected_from or ()).difference(self.qids)

    def select(self, keep: Iterable[int]) -> GroundTruth:
        """Select the queries at these positions, in this order."""
        positions = list(keep)
        texts = [self.texts[position] for position in positions] if self.texts else None
        columns = {name: [values[position] for position in positions] for name, values in self.columns.items()}
        qids = [self.qids[position] for position in positions]
        chosen = self.from_rows(qids, [self[qid] for qid in qids], self.policy, texts=texts, columns=columns)
        excluded, harmful = (ids and [ids[position] for position in positions] for ids in (self.excluded, self.harmful))
        judged = None if self.judged is None else self.judged[positions]
        chosen = replace(chosen, keys=self.keys, shape=self.shape, highest=self.judgments.highest_grade)
        rejected = self.has_rejected or bool(self.judgments.rejected.any())
        chosen = replace(chosen, selected_from=self.file_order, has_rejected=rejected)
        return replace(chosen, excluded=excluded, harmful=harmful, judged=judged, unsplit=self.unsplit)

    def under(self, policy: Policy) -> GroundTruth:
        """Apply another policy. The policy decides which grades are relevant and which groups count.

        Raise `ConfigError` if the policy requires an importance level that no group has.
        """
        judged_by = self if policy == self.policy else replace(self, policy=policy)
        return judged_by._of_importance(policy.importance) if policy.importance else judged_by

    def _of_importance(self, selected: tuple[str, ...]) -> GroundTruth:
        importances = list(dict.fromkeys(name for name in self.importance or () if name is not None))
        unknown = [name for name in selected if name not in importances]
        if unknown and self.selected_from is None:
            has = f"its groups have {listed(importances)}" if importances else "none of its groups has an importance"
            what = f"the ground truth has no groups with importance {unknown[0]!r}"
            raise ConfigError(f"policy importance: {what}; {has}{near_names(unknown[0], importances)}")
        kept = np.array([name in selected for name in self.importance or ()], dtype=np.bool_)
        # Harmful passages have no importance, and stay judged.
        chosen = self.of_alternatives(np.flatnonzero(kept[self.group_of] | self.is_harmful))
        kept[self.group_of[self.is_harmful]] = True
        return replace(chosen.of_groups(kept), judged=self.per_query > 0)

    def of_groups(self, kept: Bools) -> GroundTruth:
        """Keep only these groups and their alternatives."""
        groups, chosen = np.flatnonzero(kept), self.of_alternatives(np.flatnonzero(kept[self.group_of]))
        return replace(
            chosen,
            group_of=(np.cumsum(kept) - 1)[chosen.group_of],
            group_query=self.group_query[groups],
            group_weight=self.group_weight[groups],
            group_name=self.group_name and [self.group_name[group] for group in groups],
            importance=self.importance and [self.importance[group] for group in groups],
        )

    def of_alternatives(self, alternatives: Ints) -> GroundTruth:
        """Keep only these alternatives. The groups stay the same."""
        return replace(
            self,
            ids=[self.ids[position] for position in alternatives],
            group_of=self.group_of[alternatives],
            grade=self.grade[alternatives],
            forms=self.forms and [self.forms[position] for position in alternatives],
            set_of=None if self.set_of is None else self.set_of[alternatives],
        )

    @property
    def _group_and_set(self) -> Ints:
        """Keys that combine group and set to distinguish alternatives with the same name."""
        if self.set_of is None:
            return self.group_of
        return self.group_of * (int(self.set_of.max(initial=ALONE)) + 2) + self.set_of + 1

    def renamed(self, names: list[str], forms: list[Form] | None = None) -> GroundTruth:
        """Rename alternatives. Equal names within a group are merged into one alternative with the highest grade."""
        within = self._group_and_set * len(names) + _codes(names, forms)
        _, first, place = np.unique(within, return_index=True, return_inverse=True)
        renamed = replace(self, ids=names, forms=forms)
        if len(first) == len(names):
            return renamed
        highest = np.full(len(first), -np.inf)
        np.maximum.at(highest, place, self.grade)
        order = np.argsort(first)
        return replace(renamed.of_alternatives(first[order]), grade=highest[order])

    @cached_property
    def digest(self) -> str:
        """SHA-256 hash of queries, texts, answerability, groups, names, weights and alternatives, in order."""
        digest = hashlib.sha256()
        for texts in (self.qids, self.ids, self.texts or [], self.group_name or [], self.importance or []):
            digest.update(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        for numbers, kind in ((self.group_of, "<i8"), (self.group_query, "<i8"), (self.grade, "<f8")):
            digest.update(numbers.astype(kind).tobytes())
        digest.update(self.group_weight.astype("<f8").tobytes())
        digest.update(self.unanswerable.tobytes())
        if self.forms:
            digest.update(json.dumps([kind_of(form) for form in self.forms]).encode())
        if self.set_of is not None:
            digest.update(self.set_of.astype("<i8").tobytes())
        if self.excluded:
            digest.update(json.dumps([sorted(ids) for ids in self.excluded]).encode("utf-8", "surrogatepass"))
        digest.update(self.is_harmful.tobytes() if self.harmful else b"")
        return digest.hexdigest()

    @cached_property
    def by_text(self) -> bool:
        """True if queries have no ids and are identified by their texts."""
        rows = zip(self.qids, self.texts or ())
        return bool(self.texts) and all(text and normal_text(text) == qid for qid, text in rows)

    @cached_property
    def query_of(self) -> Ints:
        """Position of each alternative's query."""
        return self.group_query[self.group_of]

    @cached_property
    def per_query(self) -> Ints:
        """Number of alternatives for each query."""
        return np.bincount(self.query_of, minlength=len(self.qids))

    @cached_property
    def id_sets(self) -> list[frozenset[str]]:
        """Names that may match each query's results: its ids, plus the blank strings that are never ids."""
        rest = iter(self.ids)
        return [BLANK_IDS.union(islice(rest, size)) for size in self.per_query.tolist()]

    @cached_property
    def judged_ids(self) -> list[frozenset[str]]:
        """Names in `id_sets`, except for documents that count as unjudged because their grade is negative."""
        unjudged: dict[int, set[str]] = {}
        for at in np.flatnonzero(~self.judgments.is_judged).tolist():
            unjudged.setdefault(int(self.query_of[at]), set()).add(self.ids[at])
        return [ids - unjudged.get(query, set()) for query, ids in enumerate(self.id_sets)]

    @cached_property
    def compiled(self) -> bytes | None:
        """Id index for the compiled module, or None if the module is missing or an id is not plain."""
        return None if self._index is None else self._index[-1]

    @cached_property
    def _index(self) -> tuple[bytes, bytes] | None:
        return native.index_of(self.qids, self.ids, np.concatenate(([0], np.cumsum(self.per_query))).tolist())

    @cached_property
    def document_of(self) -> Ints:
        """Document number of each alternative, which is the position of the first alternative with the same id."""
        if not self.forms and self._index is not None:
            return np.frombuffer(self._index[0], dtype=np.int64)
        # Most queries repeat no id, and the sets are needed to match results.
        if not self.forms and sum(map(len, self.id_sets)) == len(self.ids) + len(BLANK_IDS) * len(self.qids):
            return np.arange(len(self.ids))
        within = self.query_of * len(self.ids) + _codes(self.ids, self.forms)
        _, first, place = np.unique(within, return_index=True, return_inverse=True)
        return np.asarray(first[place])

    def _without_repeats(self) -> GroundTruth:
        documents = self.document_of
        if np.all(documents == np.arange(len(documents))):
            return self
        _, first = np.unique(self._group_and_set * len(documents) + documents, return_index=True)
        repeated = len(self.ids) - len(first)
        return replace(self.of_alternatives(np.sort(first)), repeated_ids=repeated) if repeated else self

    @cached_property
    def is_relevant(self) -> Bools:
        """Mask of the relevant alternatives: grade above 0, or at least the policy's level if one is set."""
        level = self.policy.level
        return np.asarray(self.grade > 0 if level is None else self.grade >= level)

    @cached_property
    def is_harmful(self) -> Bools:
        """Mask of the harmful alternatives, which must not be among the results of their query."""
        if self.harmful is None:
            return np.zeros(len(self.ids), dtype=np.bool_)
        named = map(self.harmful.__getitem__, self.query_of.tolist())
        return np.array([name in ids for ids, name in zip(named, self.ids)], dtype=np.bool_)

    @cached_property
    def only_harmful(self) -> Bools:
        """Mask of the groups with only harmful alternatives, which need not be covered."""
        groups = len(self.group_query)
        harmful = np.bincount(self.group_of[self.is_harmful], minlength=groups)
        return np.asarray((harmful > 0) & (harmful == np.bincount(self.group_of, minlength=groups)))

    @cached_property
    def relevant_groups(self) -> Ints:
        """Input positions of the groups that metrics use.

        Only groups with a relevant alternative count. With `empty_groups=unmeetable`, a group without relevant
        alternatives also counts if another group in the query can be covered (unless the shape is `flat`).
        """
        can_be_met = np.bincount(self.group_of[self.is_relevant], minlength=len(self.group_query)) > 0
        if self.policy.empty_groups == "unmeetable" and self.shape != "flat":
            can_be_met |= np.isin(self.group_query, self.group_query[can_be_met]) & ~self.only_harmful
        return np.flatnonzero(can_be_met)

    @cached_property
    def judgments(self) -> Judgments:
        """Numeric form for metrics, with only the groups that count."""
        kept = self.relevant_groups
        renumber = np.zeros(len(self.group_query), dtype=np.int64)
        renumber[kept] = np.arange(len(kept))
        judged = self.per_query > 0 if self.judged is None else self.judged
        return Judgments(
            size=len(self.qids),
            alternative_query=self.query_of,
            alternative_group=np.where(self.is_relevant, renumber[self.group_of], -1),
            alternative_grade=self.grade,
            alternative_document=self.document_of,
            group_query=self.group_query[kept],
            group_weight=self.group_weight[kept],
            documents=len(self.ids),
            byte_order=self._byte_order,
            qid=self.qids.__getitem__,
            level=self.policy.level,
            alternative_set=self.set_of,
            zeros=judged & ~self.unanswerable if self.policy.undefined == "zero" else None,
            unanswerable=self.unanswerable if self.unanswerable.any() else None,
            harmful=self.is_harmful if self.harmful else None,
            with_level=self._at_level,
            highest=self.highest,
        )

    def _at_level(self, level: float) -> Judgments:
        return replace(self, policy=replace(self.policy, level=level)).judgments

    @cached_property
    def unanswerable(self) -> Bools:
        """Mask of the queries that are declared to have no answer."""
        return declared_unanswerable(self.qids, self.columns, self.query_of[self.is_relevant])

    @cached_property
    def irrelevant_groups(self) -> int:
        """Number of groups that no metric uses because they have no relevant alternative, except harmful groups."""
        return len(self.group_query) - len(self.judgments.group_query) - int(self.only_harmful.sum())

    @cached_property
    def negative(self) -> int:
        """Number of documents with a negative grade, which count as unjudged."""
        judgments = self.judgments
        # Numbers without a document have no query.
        return int(((judgments.document_grade < 0) & (judgments.document_query >= 0)).sum())

    @cached_property
    def groups_never_met(self) -> int:
        """Number of groups without a relevant alternative, even if metrics use them, except harmful groups."""
        covered = count_distinct(self.group_of[self.is_relevant])
        return len(self.group_query) - covered - int(self.only_harmful.sum())

    @cached_property
    def group_number(self) -> Ints:
        """Number of each group within its query, starting at 1, or 0 if metrics do not use the group."""
        relevant = np.zeros(len(self.group_query), dtype=np.bool_)
        relevant[self.relevant_groups] = True
        counted = np.cumsum(relevant)
        first = np.searchsorted(self.group_query, self.group_query)
        return np.asarray(np.where(relevant, counted - counted[first] + relevant[first], 0))

    def group_label(self, group: int) -> str:
        """Return a label with the group's number and its name, if any. `group` is the group's position in the input.

        >>> truth = GroundTruth.of({"q": [[{"id": "n", "grade": 0}], {"ids": ["a"], "name": "capital"}, ["b"]]})
        >>> [truth.group_label(group) for group in range(3)]
        ['no group', 'group 1 (capital)', 'group 2']
        """
        number = int(self.group_number[group])
        name = self.group_name[group] if self.group_name else None
        return ("no group" if not number else f"group {number}") + (f" ({name})" if name is not None else "")

    def relevant_in(self, group: int) -> list[int]:
        """Return the relevant alternatives of a group. `group` is the group's position in the input."""
        first, last = np.searchsorted(self.group_of, [group, group + 1]).tolist()
        return [alternative for alternative in range(first, last) if self.is_relevant[alternative]]

    def _byte_order(self, alternatives: Ints) -> Ints:
        """Rank the documents of these alternatives by query, then by id in byte order."""
        documents, where = np.unique(self.document_of[alternatives], return_inverse=True)
        # Strings have the same order as their UTF-8 bytes.
        keys = list(zip(self.query_of[documents].tolist(), map(self.ids.__getitem__, documents.tolist())))
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        return np.argsort(order)[where]


def _codes(names: list[str], forms: list[Form] | None) -> Ints:
    """Assign numbers to distinct alternatives. An id, a span and a text with the same spelling are distinct."""
    keys: Iterable[Hashable] = zip(names, map(kind_of, forms)) if forms else names
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(names))

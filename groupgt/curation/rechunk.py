"""Ground truth carried over to another chunking: through the places of chunks, or through what they say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, listed
from groupgt.evaluation.request import Sources, as_ground_truth
from groupgt.labellers import spans, text
from groupgt.labellers.likeness import METHODS, SLACK, Meeting, Normalization, alternative_texts, distinct, token_recall
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.validity import shown
from groupgt.options import options_from

# So many of an alternative's rarest words are looked for at least: to say what comes nearest.
SOME = 3
WAYS = ("spans", *METHODS)


@dataclass(frozen=True)
class Carried:
    """One alternative and what became of it: `share` is how much of it the new chunk has.

    `number` is the group's among all groups. Where it was `lost`, `new` is the chunk that has most of it, if any has
    something.
    """

    qid: str
    group: str
    old: str
    new: str | None
    share: float
    lost: bool = False
    number: int = 0


@dataclass(frozen=True, eq=False)
class Rechunked:
    """The ground truth in other chunks, and how it got there.

    `rows` has one row for each alternative and each new chunk that stands for it, or says that it was lost. `dropped`
    are the queries left out because a group of theirs was lost whole, with the numbers of these groups.
    """

    truth: GroundTruth
    rows: list[Carried]
    method: str
    dropped: dict[str, list[str]] = field(default_factory=dict)

    @property
    def lost(self) -> list[Carried]:
        """The alternatives that could not be carried."""
        return [row for row in self.rows if row.lost]

    def counts(self) -> dict[str, int]:
        """How many alternatives there were, what became of them, and what was left out."""
        alternatives: dict[tuple[int, str], list[Carried]] = {}
        for row in self.rows:
            alternatives.setdefault((row.number, row.old), []).append(row)
        kept = [own for own in alternatives.values() if not own[0].lost]
        return {
            "queries carried": len(self.truth),
            "alternatives": len(alternatives),
            "carried to one chunk": sum(len(own) == 1 for own in kept),
            "carried to several chunks": sum(len(own) > 1 for own in kept),
            "lost": len(alternatives) - len(kept),
            "queries left out": len(self.dropped),
        }


def rechunk(
    truth: Any,
    old: Any = None,
    new: Any = None,
    *,
    method: str | None = None,
    min_overlap: float = 0.5,
    threshold: float = 0.9,
    unit: str = "chars",
    drop_lost: bool = False,
    policy: Policy | str | dict[str, str] | None = None,
    truth_format: str | None = None,
) -> Rechunked:
    """Carries ground truth over from `old` chunks to `new` ones; without `new`, to the places of the old.

    Both are chunk tables (`chunk_id, doc_id, start, end`, in `unit`: chars, pages or lines) or corpora
    (`doc_id, contents`): paths or mappings. Through `spans` a new chunk stands for an alternative of which it covers at
    least `min_overlap`; through texts, one that contains it (`contained`), or is as like it as `threshold` asks
    (`partial_ratio`, `token_recall`). The default is `spans` where both tables have places. An alternative for which no
    chunk stands is lost. A group that loses all its relevant ones is an error, for its query would ask for less than
    before; with `drop_lost` such queries are left out. Raises `DataError` or `ConfigError`.

    >>> old, new = {"o1": ("d", 0, 100), "o2": ("d", 100, 200)}, {"n1": ("d", 0, 80), "n2": ("d", 80, 200)}
    >>> rechunk({"q": [["o1"], ["o2"]]}, old, new).truth["q"]  # n1 has 80 of 100, n2 all 100
    [['n1'], ['n2']]
    """
    for option, value in (("min_overlap", min_overlap), ("threshold", threshold)):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ConfigError(f"{option}: expected a number, found {shown(value)}")
    rules = Policy.of(policy)
    given = as_ground_truth(truth, rules, truth_format)
    places = [None if each is None else _places(each, option) for each, option in ((old, "old"), (new, "new"))]
    if method is None:
        lacking = new is not None and (places[1] is None or (old is not None and places[0] is None))
        method = "contained" if lacking else "spans"
    if method not in WAYS:
        raise ConfigError(f"method: expected {listed(WAYS)}, found {shown(method)}")
    if new is None and method != "spans":
        raise ConfigError(f"method {method}: texts are carried to other chunks, and none were given; name them (--to)")
    if new is None:
        labeller = spans.Spans(options_from(spans.Options, {"reference": places[0] or "", "unit": unit}), Sources())
        read = _places_of(labeller, given)
        names = _names(read, places[0])
        whole = ((place, name, 1.0, True) for place, name in enumerate(read.ids))
        return replace(_carried(read, names, whole, "spans", drop_lost=drop_lost), truth=read)
    if method == "spans":
        found = _through_places(given, places, min_overlap, unit=unit)
    else:
        found = _through_texts(given, old, new, method, threshold)
    return _carried(*found, method, drop_lost=drop_lost)


def _places(table: Any, option: str) -> Any:
    """The places of a table; None where it has only texts."""
    if isinstance(table, Mapping):
        return None if all(isinstance(cell, str) for cell in table.values()) else Sources().chunks(table, option)
    return Sources(corpus=table).chunks(None, option)


# The ground truth, what each alternative was called, and rows of (alternative, new chunk, its share, whether enough).
Found = tuple[GroundTruth, list[str], list[tuple[int, str, float, bool]]]


def _through_places(truth: GroundTruth, places: Sequence[Any], min_overlap: float, *, unit: str) -> Found:
    if places[1] is None or (places[0] is None and truth.forms is None):
        lacking = "new chunks (--to)" if places[1] is None else "old chunks (--from)"
        what = "have no places (doc, start, end), or are not named"
        raise ConfigError(f"method spans: the {lacking} {what}; name a table that has them, or choose another method")
    given = {"min_overlap": min_overlap, "chunks": places[1], "reference": places[0] or "", "unit": unit}
    labeller = spans.Spans(options_from(spans.Options, {**given, "joint": True}), Sources())
    read = _places_of(labeller, truth)
    matches = labeller.match(read, _Nothing())
    if matches.low is None or matches.high is None:
        raise DataError("there are no places to carry")
    form = read.forms or []
    length = labeller.lengths(form)
    owner = np.repeat(np.arange(len(matches.keys)), np.diff(matches.starts))
    overlap, whole = matches.high - matches.low, length[matches.alternatives]
    share, good = overlap / whole, labeller.enough(overlap, whole, whole)
    rows = [
        (alternative, matches.keys[pair], part, enough)
        for alternative, pair, part, enough in zip(
            matches.alternatives.tolist(), owner.tolist(), share.tolist(), good.tolist()
        )
    ]
    return read, _names(read, places[0]), rows


def _places_of(labeller: spans.Spans, truth: GroundTruth) -> GroundTruth:
    """The ground truth as places; what has none is told in the words of who carries it over."""
    try:
        return labeller.truth(truth)
    except DataError as error:
        texts = [text.replace("the reference", "the old chunks (--from)") for text in error.faults]
        texts = [text.replace("choose the labeller text", "name a method that compares texts") for text in texts]
        raise DataError(*texts, total=error.total) from None


def _names(read: GroundTruth, old: Any) -> list[str]:
    """What alternatives were called before they were places."""
    known = {} if old is None else {str(span): name for name, span in reversed(old.spans().items())}
    return [known.get(name, name) for name in read.ids]


class _Nothing:
    """No results: a table of chunks says everything."""

    def pairs(self) -> tuple[Ints, list[str]]:
        return np.zeros(0, dtype=np.int64), []

    def texts(self) -> list[str | None]:
        return []


def _through_texts(truth: GroundTruth, old: Any, new: Any, method: str, threshold: float) -> Found:
    options_from(text.Options, {"method": method, "threshold": threshold})
    sources = Sources()
    reference = {} if old is None else sources.texts(old, "old")
    corpus = sources.texts(new, "new")
    normal = Normalization()
    wanted = [normal(each) for each in alternative_texts(truth, reference, "name the chunks it is from (--from)")]
    said, names = [normal(each) for each in corpus.values()], list(corpus)
    right, number = distinct(wanted)
    met = Meeting(said, right, *_candidates(said, right, method, threshold), each=number)
    score = METHODS[method](met, 0.0)
    hit = score >= threshold - SLACK
    if method == "contained":
        # Of what is not contained, the words it has say which chunk comes nearest.
        score = np.where(hit, score, token_recall(met))
    rows_of: dict[int, list[tuple[str, float, bool]]] = {}
    for row in np.flatnonzero(hit | _best(met.second, score)).tolist():
        cell = (names[met.first[row]], float(score[row]), bool(hit[row]))
        rows_of.setdefault(int(met.second[row]), []).append(cell)
    rows = [(place, *row) for place, own in enumerate(number.tolist()) for row in rows_of.get(own, [])]
    return truth, truth.ids, rows


def _candidates(said: list[str], wanted: list[str], method: str, threshold: float) -> tuple[Ints, Ints]:
    """(chunk, alternative) of all that can reach the threshold, and of some that come near.

    A chunk that contains an alternative has its rarest word; one that lacks at most a share of its words has one of
    that many and one more. What is written a little differently may share no word: of that all are candidates.
    """
    if method == "partial_ratio":
        return np.tile(np.arange(len(said)), len(wanted)), np.repeat(np.arange(len(wanted)), len(said))
    chunks: dict[str, list[int]] = {}
    for place, each in enumerate(said):
        for word in set(each.split()):
            chunks.setdefault(word, []).append(place)
    pairs: list[tuple[int, int]] = []
    for number, each in enumerate(wanted):
        words = each.split()
        rare = sorted(set(words) & set(chunks), key=lambda word: (len(chunks[word]), word))
        enough = 1 if method == "contained" else int((1 - threshold) * len(words) + SLACK) + 1
        found = dict.fromkeys(place for word in rare[: max(enough, SOME)] for place in chunks[word])
        pairs += [(place, number) for place in found]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _best(alternative: Ints, score: Floats) -> Bools:
    """Which rows are the first of the highest score, above 0, of their alternative."""
    order = np.lexsort((-score, alternative))
    _, first = np.unique(alternative[order], return_index=True)
    best = np.zeros(len(score), dtype=np.bool_)
    best[order[first]] = True
    return best & (score > 0)


def _carried(
    truth: GroundTruth, old: list[str], found: Iterable[tuple[int, str, float, bool]], method: str, *, drop_lost: bool
) -> Rechunked:
    own: dict[int, list[tuple[str, float, bool]]] = {}
    for alternative, name, share, enough in found:
        own.setdefault(alternative, []).append((name, share, enough))
    rows: list[Carried] = []
    groups: list[dict[str, float]] = [{} for _ in range(len(truth.group_query))]
    faults = Faults()
    unmet: dict[str, list[str]] = {}
    lost_of: dict[int, list[Carried]] = {}
    for alternative in range(len(truth.ids)):
        group = int(truth.group_of[alternative])
        qid, label = truth.qids[int(truth.group_query[group])], truth.group_label(group)
        taken = sorted(own.get(alternative, []), key=lambda each: (-each[1], each[0]))
        good = [each for each in taken if each[2]]
        grade = float(truth.grade[alternative])
        for name, share, _ in good:
            rows.append(Carried(qid, label, old[alternative], name, share, number=group))
            groups[group][name] = max(grade, groups[group].get(name, grade))
        if not good:
            best = taken[0] if taken else (None, 0.0)
            row = Carried(qid, label, old[alternative], best[0], best[1], lost=True, number=group)
            rows.append(row)
            lost_of.setdefault(group, []).append(row)
    relevant = np.bincount(truth.group_of[truth.grade > 0], minlength=len(groups)) > 0
    for group, lost in lost_of.items():
        if relevant[group] and not any(grade > 0 for grade in groups[group].values()):
            unmet.setdefault(lost[0].qid, []).append(lost[0].group)
            some = "; ".join(_told(row) for row in lost[:3])
            faults.add(f"query {lost[0].qid!r}", f"{lost[0].group} is lost, for no new chunk stands for {some}")
    if faults and not drop_lost:
        way = "ask for less (--min-overlap, --threshold), or leave these queries out (--drop-lost); places survive as "
        faults.texts[-1] += f"\n{way}they are: leave out --to, and evaluate with the labeller spans"
        faults.fail(DataError)
    return Rechunked(_written(truth, groups, set(unmet)), rows, method, unmet)


def _told(row: Carried) -> str:
    best = f" ({shown(row.new)} has {math.floor(100 * row.share) / 100:.2f} of it)" if row.new is not None else ""
    return f"{shown(row.old)}{best}"


def _written(truth: GroundTruth, groups: list[dict[str, float]], dropped: set[str]) -> GroundTruth:
    """The groups of new chunks, with weights, names, texts and columns as they were."""
    listed: list[list[Any]] = [[] for _ in truth.qids]
    for group, found in enumerate(groups):
        if not found:
            continue
        cells = [name if grade == 1 else {"id": name, "grade": grade} for name, grade in found.items()]
        extra: dict[str, Any] = {}
        if truth.group_weight[group] != 1:
            extra["weight"] = float(truth.group_weight[group])
        if truth.group_name and truth.group_name[group] is not None:
            extra["name"] = truth.group_name[group]
        listed[int(truth.group_query[group])].append({"alternatives": cells, **extra} if extra else cells)
    keep = [place for place, qid in enumerate(truth.qids) if qid not in dropped]
    return GroundTruth.from_rows(
        [truth.qids[place] for place in keep],
        [listed[place] for place in keep],
        Policy(),
        texts=[truth.texts[place] for place in keep] if truth.texts else None,
        columns={name: [values[place] for place in keep] for name, values in truth.columns.items()},
    )

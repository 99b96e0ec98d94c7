"""Maps ground truth to a different chunking, by spans or by passage text."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, display, first_of, listed, warn
from groupgt.evaluation.options import Truth, TruthOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.sources import Sources
from groupgt.formats.corpus import table_rows
from groupgt.formats.parts import is_url
from groupgt.formats.source import Source
from groupgt.labellers import likeness, spans, text
from groupgt.labellers.likeness import METHODS, SLACK
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.options import Doc, options_from
from groupgt.render.results import Result
from groupgt.render.tables import Grid, counted

# Minimum number of an alternative's rarest words to search for, to find the nearest chunk.
LEAST_WORDS = 3
WAYS = ("spans", *METHODS)
# A chunk that holds less of a passage than this may lack what the passage was judged for.
MOST_OF_IT = 0.9


@dataclass(frozen=True)
class Carried:
    """The mapping of one alternative. `share` is the fraction of the alternative in the new chunk.

    `number` is the group's index. For a `lost` alternative, `new` is the chunk with its largest part.
    """

    qid: str
    group: str
    old: str
    new: str | None
    share: float
    lost: bool = False
    number: int = 0


@dataclass(frozen=True, eq=False)
class Rechunked(Result):
    """Ground truth mapped to new chunks, with a record of the mapping.

    `rows` has one row for each alternative and each new chunk that replaces it. A lost alternative has only one row.
    `dropped` maps each query that was dropped for losing an entire group to the labels of its lost groups.
    """

    truth: GroundTruth
    rows: list[Carried]
    method: str
    dropped: dict[str, list[str]] = field(default_factory=dict)

    @property
    def lost(self) -> list[Carried]:
        """Alternatives that could not be mapped."""
        return [row for row in self.rows if row.lost]

    @property
    def weak(self) -> list[Carried]:
        """Groups whose new chunks all contain less than 90% of a passage, worst first. Rows show the best chunk."""
        best: dict[int, Carried] = {}
        for row in self.rows:
            if not row.lost and row.qid not in self.dropped:
                best[row.number] = max(best.get(row.number, row), row, key=lambda each: each.share)
        weak = [row for row in best.values() if row.share < MOST_OF_IT - SLACK]
        return sorted(weak, key=lambda row: row.share)

    def counts(self) -> dict[str, int]:
        """Return the numbers of all, mapped and lost alternatives, weakly mapped groups, and dropped queries."""
        alternatives: dict[tuple[int, str], list[Carried]] = {}
        for row in self.rows:
            alternatives.setdefault((row.number, row.old), []).append(row)
        kept = [rows for rows in alternatives.values() if not rows[0].lost]
        return {
            "queries carried": len(self.truth),
            "alternatives": len(alternatives),
            "carried to one chunk": sum(len(rows) == 1 for rows in kept),
            "carried to several chunks": sum(len(rows) > 1 for rows in kept),
            "groups with under 90%": len(self.weak),
            "lost": len(alternatives) - len(kept),
            "queries dropped": len(self.dropped),
        }

    def carried_rows(self) -> Grid:
        """Return headers and one row for each pair of an alternative and a new chunk that replaces it."""
        return _rows_of(self.rows)

    def weak_rows(self) -> Grid:
        """Return headers and one row for each weakly mapped group, in the form of `carried_rows`."""
        return _rows_of(self.weak)


def _rows_of(carried: Sequence[Carried]) -> Grid:
    rows = [[row.qid, row.group, row.old, row.new, row.share, str(row.lost).lower()] for row in carried]
    return ["query", "group", "alternative", "chunk", "share", "lost"], rows


def notes_of(truth: Path) -> Path:
    """Return the path for a list of the weakly mapped groups in a ground truth file, next to that file."""
    return truth.with_name(f"{truth.name}.weak.jsonl")


def weak_in(truth: str | os.PathLike[str], grouped: GroundTruth) -> list[str] | None:
    """Return the weakly mapped groups still in the ground truth, as text, or None if there is no such list."""
    notes, faults = notes_of(Path(truth)), Faults()
    if is_url(truth) or not notes.is_file():
        return None
    rows = [row for _, row in table_rows(Source.at(notes), faults)]
    faults.stop()
    ids = dict(zip(grouped.qids, grouped.id_sets))
    kept = [row for row in rows if row["chunk"] in ids.get(row["query"], ())]
    return [f"{row['query']}: {row['chunk']} has {row['share']:.2f} of {row['alternative']}" for row in kept]


@takes_options(TruthOptions)
def rechunk(
    truth: Truth,
    old: Annotated[
        Any,
        Doc(
            "The chunks that the ground truth refers to: a table (`chunk_id, doc_id, start, end`) or a corpus (`doc_id,"
            " contents`), as a path or a mapping."
        ),
    ] = None,
    new: Annotated[
        Any, Doc("The new chunks, in the same form as `old`; if None, alternatives are mapped to spans.")
    ] = None,
    *,
    method: Annotated[
        Literal["spans", "contained", "partial_ratio", "token_recall"] | None,
        Doc(
            "With `spans`, a new chunk replaces an alternative if it covers at least `min_overlap` of that "
            "alternative. If groupgt compares text, the chunk must contain the alternative (`contained`) or reach a "
            "similarity of `threshold` (`partial_ratio`, `token_recall`). The default is `spans` if both tables have "
            "spans, otherwise `contained`."
        ),
    ] = None,
    min_overlap: Annotated[
        float, Doc("Minimum share of an alternative that a new chunk must cover, for `spans`.")
    ] = 0.5,
    threshold: Annotated[float, Doc("Minimum similarity, for `partial_ratio` and `token_recall`.")] = 0.9,
    unit: Annotated[
        Literal["chars", "pages", "lines"], Doc("The unit of spans: `chars`, `pages` or `lines`.")
    ] = "chars",
    drop_lost: Annotated[
        bool, Doc("Drop queries that would lose an entire group, instead of raising an error.")
    ] = False,
    **options: Unpack[TruthOptions],
) -> Rechunked:
    """Map ground truth from `old` chunks to `new` ones, or to the spans of the old chunks if `new` is omitted.

    An alternative is lost if no chunk replaces it. If a group loses all its relevant alternatives, an error is raised,
    because the query would otherwise require less than before. Raises `DataError` or `ConfigError`.

    >>> old, new = {"o1": ("d", 0, 100), "o2": ("d", 100, 200)}, {"n1": ("d", 0, 80), "n2": ("d", 80, 200)}
    >>> rechunk({"q": [["o1"], ["o2"]]}, old, new).truth["q"]  # n1 has 80 of 100, n2 all 100
    [['n1'], ['n2']]
    """
    for option, value in (("min_overlap", min_overlap), ("threshold", threshold)):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ConfigError(f"{option}: expected a number, found {display(value)}")
    grouped = Request.of(**options).truth_of(truth)
    if grouped.set_of is not None:
        raise DataError("rechunk does not support sets of jointly required passages; make each member a group")
    old_places, new_places = _places_in(old, "old"), _places_in(new, "new")
    if method is None:
        lacking = new is not None and (new_places is None or (old is not None and old_places is None))
        method = "contained" if lacking else "spans"
    if method not in WAYS:
        raise ConfigError(f"method: expected {listed(WAYS)}, found {display(method)}")
    if new is None and method != "spans":
        raise ConfigError(f"method {method} compares passage text with new chunks; pass the new chunks with --to")
    if new is None:
        places = options_from(spans.Options, {"reference": old_places or "", "unit": unit})
        placed = _as_places(spans.Spans(places, Sources()), grouped)
        shares = [Share(alternative, name, 1.0, True) for alternative, name in enumerate(placed.ids)]
        carried = _carried(placed, _names_in(old_places, placed), shares, method, drop_lost=drop_lost)
        if placed.harmful:
            warn("harmful_ids contains ids of old chunks, which groupgt does not map to spans")
        return replace(carried, truth=replace(placed, harmful=None))
    if method == "spans":
        grouped, names, shares = _through_places(grouped, old_places, new_places, min_overlap, unit)
    else:
        shares = _through_texts(grouped, old, new, method, threshold)
        names = grouped.ids
    return _carried(grouped, names, shares, method, drop_lost=drop_lost)


class Share(NamedTuple):
    """The share of an alternative in a new chunk. `enough` is True if the chunk can replace the alternative."""

    alternative: int
    chunk: str
    share: float
    enough: bool


def _places_in(table: Any, option: str) -> Any:
    """Return the spans from a table of chunks, or None if there is no table, or if it contains only text."""
    if isinstance(table, Mapping):
        return None if all(isinstance(cell, str) for cell in table.values()) else Sources().chunks(table, option)
    return None if table is None else Sources(corpus=table).chunks(None, option)


def _as_places(labeller: spans.Spans, truth: GroundTruth) -> GroundTruth:
    """Convert ground truth to spans. Errors mention the old chunks instead of a labeller."""
    try:
        return labeller.truth(truth)
    except DataError as error:
        texts = [text.replace("the reference", "the old chunks (--from)") for text in error.faults]
        texts = [text.replace("choose the text labeller", "choose a method that compares text") for text in texts]
        raise DataError(*texts, total=error.total) from None


def _names_in(old_places: Any, placed: GroundTruth) -> list[str]:
    """Return the names that alternatives had before they were converted to spans."""
    names = {} if old_places is None else {str(span): name for name, span in reversed(old_places.spans().items())}
    return [names.get(name, name) for name in placed.ids]


def _through_places(
    truth: GroundTruth, old_places: Any, new_places: Any, min_overlap: float, unit: str
) -> tuple[GroundTruth, list[str], list[Share]]:
    """Return the ground truth as spans, the original alternative names, and their shares in new chunks."""
    if new_places is None or (old_places is None and truth.forms is None):
        lacking = "new chunks (--to)" if new_places is None else "old chunks (--from)"
        what = "have no spans (doc, start, end) or were not given"
        raise ConfigError(f"method spans: the {lacking} {what}; pass a table with spans, or choose another method")
    options = {"min_overlap": min_overlap, "joint": True, "chunks": new_places, "reference": old_places or ""}
    labeller = spans.Spans(options_from(spans.Options, {**options, "unit": unit}), Sources())
    placed = _as_places(labeller, truth)
    matches = labeller.match(placed, None)
    chunk = np.repeat(np.arange(len(matches.keys)), np.diff(matches.starts))
    overlap, length = matches.high - matches.low, labeller.lengths(placed)[matches.alternatives]
    enough = labeller.enough(overlap, length, length)
    rows = zip(matches.alternatives.tolist(), chunk.tolist(), (overlap / length).tolist(), enough.tolist())
    shares = [Share(alternative, matches.keys[key], share, is_enough) for alternative, key, share, is_enough in rows]
    return placed, _names_in(old_places, placed), shares


def _through_texts(truth: GroundTruth, old: Any, new: Any, method: str, threshold: float) -> list[Share]:
    """Compare text to compute the share of every sufficient chunk, or of the best chunk if no chunk is sufficient."""
    options_from(text.Options, {"method": method, "threshold": threshold})
    sources = Sources()
    reference = {} if old is None else sources.texts(old, "old")
    corpus = sources.texts(new, "new")
    normalized = likeness.Normalization()
    chunks, names = list(map(normalized, corpus.values())), list(corpus)
    alternatives = likeness.alternative_texts(truth, reference, "pass the chunks it comes from with --from")
    texts, text_of = likeness.distinct(list(map(normalized, alternatives)))
    pairs = likeness.TextPairs(chunks, texts, *_candidates(chunks, texts, method, threshold), pair_of=text_of)
    score = METHODS[method](pairs, 0.0)
    enough = score >= threshold - SLACK
    if method == "contained":
        # If a text is not contained in any chunk, token recall determines the nearest chunk.
        score = np.where(enough, score, likeness.token_recall(pairs))
    of_text: dict[int, list[tuple[str, float, bool]]] = {}
    for row in np.flatnonzero(enough | _best(pairs.alternative, score)).tolist():
        chunk = (names[pairs.result[row]], float(score[row]), bool(enough[row]))
        of_text.setdefault(int(pairs.alternative[row]), []).append(chunk)
    found = enumerate(of_text.get(number, []) for number in text_of.tolist())
    return [Share(alternative, *chunk) for alternative, chunks_of in found for chunk in chunks_of]


def _candidates(chunks: list[str], texts: list[str], method: str, threshold: float) -> tuple[Ints, Ints]:
    """Return all (chunk, text) pairs that could reach the threshold, and a few others that come close.

    A chunk that contains a passage contains the passage's rarest word. A chunk that lacks at most n of a passage's
    words contains at least one of any n + 1 of these words. With `partial_ratio`, spelling may differ in every word, so
    all chunks are candidates.
    """
    if method == "partial_ratio":
        return np.tile(np.arange(len(chunks)), len(texts)), np.repeat(np.arange(len(texts)), len(chunks))
    chunks_with: dict[str, list[int]] = {}
    for chunk, contents in enumerate(chunks):
        for word in set(contents.split()):
            chunks_with.setdefault(word, []).append(chunk)
    pairs: list[tuple[int, int]] = []
    for number, contents in enumerate(texts):
        words = contents.split()
        rare = sorted(set(words) & set(chunks_with), key=lambda word: (len(chunks_with[word]), word))
        enough = 1 if method == "contained" else int((1 - threshold) * len(words) + SLACK) + 1
        candidates = chain.from_iterable(chunks_with[word] for word in rare[: max(enough, LEAST_WORDS)])
        pairs += [(chunk, number) for chunk in dict.fromkeys(candidates)]
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _best(text: Ints, score: Floats) -> Bools:
    """Mark the first row with the highest score above 0 for each text."""
    order = np.lexsort((-score, text))
    _, first = np.unique(text[order], return_index=True)
    best = np.zeros(len(score), dtype=np.bool_)
    best[order[first]] = True
    return best & (score > 0)


def _carried(
    truth: GroundTruth, old_names: list[str], shares: Sequence[Share], method: str, *, drop_lost: bool
) -> Rechunked:
    """Build ground truth from sufficient chunks. Raise `DataError` for a lost group unless `drop_lost` is set."""
    shares_of: dict[int, list[Share]] = defaultdict(list)
    for share in shares:
        shares_of[share.alternative].append(share)
    rows: list[Carried] = []
    # The new chunks of each group with their grades, and the lost alternatives of each group.
    groups: list[dict[str, float]] = [{} for _ in range(len(truth.group_query))]
    lost: dict[int, list[Carried]] = {}
    harmful: list[set[str]] = [set() for _ in truth.qids]
    lost_harmful: list[str] = []
    for alternative in range(len(truth.ids)):
        group, grade = int(truth.group_of[alternative]), float(truth.grade[alternative])
        of_group = (truth.qids[int(truth.group_query[group])], truth.group_label(group), old_names[alternative])
        ranked = sorted(shares_of[alternative], key=lambda share: (-share.share, share.chunk))
        enough = [share for share in ranked if share.enough]
        for _, chunk, part, _ in enough:
            rows.append(Carried(*of_group, chunk, part, number=group))
            groups[group][chunk] = max(grade, groups[group].get(chunk, grade))
        query = int(truth.group_query[group])
        if truth.harmful and old_names[alternative] in truth.harmful[query]:
            harmful[query].update(chunk for _, chunk, _, _ in enough)
            lost_harmful += [] if enough else [old_names[alternative]]
        if not enough:
            nearest: tuple[str | None, float] = ranked[0][1:3] if ranked else (None, 0.0)
            rows.append(Carried(*of_group, *nearest, lost=True, number=group))
            lost.setdefault(group, []).append(rows[-1])
    faults = Faults()
    dropped: dict[str, list[str]] = {}
    relevant = np.bincount(truth.group_of[truth.grade > 0], minlength=len(groups)) > 0
    for group, lost_rows in lost.items():
        if relevant[group] and not any(grade > 0 for grade in groups[group].values()):
            qid, label = lost_rows[0].qid, lost_rows[0].group
            dropped.setdefault(qid, []).append(label)
            examples = "; ".join(map(_lost_text, lost_rows[:3]))
            faults.add(f"query {qid!r}", f"{label} would be lost: no new chunk contains enough of {examples}")
    if faults and not drop_lost:
        hints = ways_to_keep(method, "drop these queries (--drop-lost), or ")
        queries = f"{len(dropped):,} of {counted(len(truth), 'query', 'queries')}"
        faults.fail(DataError, before=f"{queries} would lose a group; {hints}. Lost groups:")
    if lost_harmful:
        warn(f"no new chunk contains enough of these harmful passages to map them: {first_of(lost_harmful, 3)}")
    if truth.excluded:
        warn("excluded_ids contains ids of old chunks, which groupgt does not map")
    graded = ([name if grade == 1 else {"id": name, "grade": grade} for name, grade in each.items()] for each in groups)
    carried = with_alternatives(truth, graded, list(map(sorted, harmful)))
    kept = [query for query, qid in enumerate(truth.qids) if qid not in dropped]
    return Rechunked(carried.select(kept) if dropped else carried, rows, method, dropped)


def ways_to_keep(method: str, further: str = "") -> str:
    """Suggest ways to keep groups from being lost. `further` adds another suggestion."""
    less = "lower --min-overlap" if method == "spans" else "lower --threshold"
    if method == "contained":
        less = "compare less strictly (--method token_recall --threshold 0.8)"
    places = "write spans instead of chunks (omit --to, then evaluate with the spans labeller)"
    return f"{less}, or {further}{places}"


def _lost_text(row: Carried) -> str:
    best = f" ({display(row.new)} has {math.floor(100 * row.share) / 100:.2f} of it)" if row.new is not None else ""
    return f"{display(row.old)}{best}"


def with_alternatives(truth: GroundTruth, groups: Iterable[list[Any]], harmful: Sequence[Any] = ()) -> GroundTruth:
    """Replace all alternatives and harmful ids, and keep everything else except excluded ids. Omit empty groups."""
    groups = iter(groups)
    rows = []
    for _, written in truth.items():
        kept = [(group, alternatives) for group, alternatives in zip(written, groups) if alternatives]
        rows.append([{**group, "alternatives": each} if isinstance(group, dict) else each for group, each in kept])
    columns, texts = truth.columns, truth.texts
    changed = GroundTruth.from_rows(truth.qids, rows, Policy(), texts=texts, columns=columns, harmful=harmful)
    return replace(changed, keys=truth.keys, shape=truth.shape)

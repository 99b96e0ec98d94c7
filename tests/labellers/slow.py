"""Slow labellers: which result hits which alternative, decided pair by pair in plain loops.

The tests hold the package to these, so this module shares no code with it and never tries to be fast. Alternatives and
results are what a user writes: ids, `{"doc", "start", "end"}`, `{"text"}`, `{"id", "text"}`, `{"id", "parent"}`.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import polars as pl

# Without it the method partial_ratio has nothing to be compared with.
RAPIDFUZZ = find_spec("rapidfuzz") is not None

# (rank, number of the alternative within its query, whether an earlier result hit it)
Row = tuple[int, int, bool]
Place = tuple[str, int, int]

# ---- what is left of a text -------------------------------------------------------------------------------------

# One character for another, in the few scripts that the tests write.
ALIKE = {"e\u0301": "é", "E\u0301": "É", "ﬁ": "fi", "Ａ": "A", "…": "...", "\u00a0": " ", "\u3000": " "}
INVISIBLE = "\u00ad\u200b"
SIGNS = ".,!?()-–'\"«»、。"
BLANKS = " \n\t"
ALONE = "北京首都"


def normalized(text: str, *, case_sensitive: bool = False, punctuation: bool = False) -> str:
    """The words of a text with single blanks between them, character by character."""
    for form, plain in ALIKE.items():
        text = text.replace(form, plain)
    made = ""
    for character in text:
        if character in INVISIBLE:
            continue
        if character in BLANKS:
            made += " "
        elif character in SIGNS:
            made += f" {character} " if punctuation else " "
        elif character in ALONE:
            made += f" {character} "
        elif case_sensitive:
            made += character
        else:
            made += "ss" if character in "ßẞ" else character.lower()
    words = [word for word in made.split(" ") if word]
    return " ".join(words)


# ---- labellers --------------------------------------------------------------------------------------------------


class Slow:
    """A labeller that is asked about one result and one alternative at a time."""

    def alternative(self, given: Any) -> Any:
        """What an alternative is; two of a group that are the same are one."""
        return given

    def result(self, cell: Any) -> Any:
        """What a result is; the same one twice in a ranking is a repeat."""
        return cell.get("id", cell.get("text")) if isinstance(cell, dict) else cell

    def hits(self, result: Any, alternative: Any) -> bool:
        raise NotImplementedError

    def decide(self, alternatives: Sequence[Any], results: Sequence[Any]) -> list[Row]:
        """Every hit, in the order of ranks and alternatives."""
        rows: list[Row] = []
        already: set[int] = set()
        for rank, result in enumerate(results, start=1):
            for number, alternative in enumerate(alternatives):
                if self.hits(result, alternative):
                    rows.append((rank, number, number in already))
                    already.add(number)
        return rows


@dataclass
class Parents(Slow):
    """Both become their parents; `carried` where results say what theirs is and alternatives are parents."""

    parent_of: Callable[[str], str] = str
    carried: bool = False

    def alternative(self, given: Any) -> str:
        return given if self.carried else self.parent_of(given)

    def result(self, cell: Any) -> str:
        return str(cell["parent"]) if self.carried else self.parent_of(cell)

    def hits(self, result: Any, alternative: Any) -> bool:
        return bool(result == alternative)


@dataclass
class Spans(Slow):
    """Places as sets of characters, pages or lines; the table and the reference say where ids stand."""

    min_overlap: float = 0.5
    of: str = "alternative"
    joint: bool = False
    unit: str = "chars"
    table: Mapping[str, Place] | None = None
    reference: Mapping[str, Place] = field(default_factory=dict)

    def alternative(self, given: Any) -> Place:
        return self.reference[given] if isinstance(given, str) else (given["doc"], given["start"], given["end"])

    def result(self, cell: Any) -> Any:
        if self.table is not None:
            return cell
        place = cell.get("span", cell)
        return (place["doc"], place["start"], place["end"])

    def covered(self, place: Place) -> set[tuple[str, int]]:
        """Every character, page or line of a place."""
        doc, start, end = place
        last = end if self.unit == "chars" else end + 1
        return {(doc, at) for at in range(start, last)}

    def parts(self, result: Any) -> set[tuple[str, int]]:
        """What a result covers: nothing where the table does not know it."""
        if self.table is None:
            return self.covered(result)
        return self.covered(self.table[result]) if result in self.table else set()

    def hits(self, result: Any, alternative: Any) -> bool:
        mine, theirs = self.parts(result), self.covered(alternative)
        whole = {"alternative": theirs, "result": mine, "union": mine | theirs}[self.of]
        common = len(mine & theirs)
        return common > 0 and common >= Fraction(str(self.min_overlap)) * len(whole)

    def decide(self, alternatives: Sequence[Any], results: Sequence[Any]) -> list[Row]:
        """Together: the result with which what is covered so far first reaches the share, and no other."""
        if not self.joint:
            return super().decide(alternatives, results)
        rows: list[Row] = []
        for number, alternative in enumerate(alternatives):
            theirs = self.covered(alternative)
            so_far: set[tuple[str, int]] = set()
            for rank, result in enumerate(results, start=1):
                so_far |= self.parts(result) & theirs
                if len(so_far) >= Fraction(str(self.min_overlap)) * len(theirs):
                    rows.append((rank, number, False))
                    break
        return sorted(rows)


@dataclass
class Text(Slow):
    """Normalized texts, word by word; `texts` are those of results and of alternatives that are ids."""

    method: str = "contained"
    threshold: float = 0.9
    case_sensitive: bool = False
    punctuation: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)

    def read(self, text: str) -> str:
        return normalized(text, case_sensitive=self.case_sensitive, punctuation=self.punctuation)

    def alternative(self, given: Any) -> str:
        return self.read(given["text"] if isinstance(given, dict) else self.texts[given])

    def score(self, result: Any, alternative: Any) -> Fraction:
        """How much of the alternative the result says, from 0 to 1."""
        said = self.read(self.texts[result])
        words, wanted = said.split(), alternative.split()
        if self.method == "contained":
            places = range(len(words) - len(wanted) + 1)
            return Fraction(any(words[at : at + len(wanted)] == wanted for at in places))
        if self.method == "token_recall":
            there = Counter(words)
            common = sum(min(times, there[word]) for word, times in Counter(wanted).items())
            return Fraction(common, len(wanted))
        from rapidfuzz import fuzz

        ratio = fuzz.ratio if len(said) < len(alternative) else fuzz.partial_ratio
        return Fraction(ratio(alternative, said)) / 100

    def hits(self, result: Any, alternative: Any) -> bool:
        return self.score(result, alternative) >= Fraction(str(self.threshold))


@dataclass
class Embedding(Slow):
    """Vectors of results and of alternatives, and the cosine between them, term by term."""

    threshold: float = 0.8
    documents: Mapping[str, Sequence[float]] = field(default_factory=dict)
    alternatives: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def score(self, result: Any, alternative: Any) -> float:
        """The cosine; 0 where a vector has no length."""
        mine, theirs = self.documents[result], self.alternatives[alternative]
        product = sum(a * b for a, b in zip(mine, theirs, strict=True))
        lengths = math.sqrt(sum(a * a for a in mine)) * math.sqrt(sum(b * b for b in theirs))
        return product / lengths if lengths else 0.0

    def hits(self, result: Any, alternative: Any) -> bool:
        return self.score(result, alternative) >= self.threshold


@dataclass
class Code(Slow):
    """A table of verdicts on (result, alternative)."""

    verdicts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    threshold: float = 0.5

    def hits(self, result: Any, alternative: Any) -> bool:
        return self.verdicts[result, alternative] >= self.threshold


# ---- one query --------------------------------------------------------------------------------------------------


@dataclass
class Truth:
    """The alternatives of one query, numbered as they stand, each with its group and its grade."""

    what: list[Any] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    grade: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)


def read_truth(slow: Slow, groups: Sequence[Any]) -> Truth:
    """Alternatives of a group that are the same become one, of the highest grade, where the first one stands."""
    truth = Truth()
    for j, group in enumerate(groups):
        cells = group["alternatives"] if isinstance(group, dict) else group
        truth.weight.append(group.get("weight", 1) if isinstance(group, dict) else 1)
        for cell in cells:
            grade = cell.get("grade", 1) if isinstance(cell, dict) else 1
            what = slow.alternative(cell["id"] if isinstance(cell, dict) and "id" in cell else cell)
            for number, (known, own) in enumerate(zip(truth.what, truth.group, strict=True)):
                if own == j and known == what:
                    truth.grade[number] = max(truth.grade[number], grade)
                    break
            else:
                truth.what.append(what)
                truth.group.append(j)
                truth.grade.append(grade)
    return truth


def read_ranking(slow: Slow, ranking: Sequence[Any], duplicates: str) -> list[Any]:
    """What the results are; with `drop` each only once."""
    results: list[Any] = []
    for cell in ranking:
        result = slow.result(cell)
        if duplicates != "drop" or result not in results:
            results.append(result)
    return results


# ---- carriers ---------------------------------------------------------------------------------------------------


def frame_of(run: dict[str, list[Any]], rng: random.Random | None = None) -> pl.DataFrame:
    """The same results as rows with falling scores, shuffled where something shuffles them."""
    rows = []
    for qid, ranking in run.items():
        for place, cell in enumerate(ranking):
            row = {"qid": qid, "score": float(len(ranking) - place)}
            if isinstance(cell, dict):
                span = cell.get("span", cell)
                row |= {name: span[name] for name in ("start", "end") if name in span}
                row |= {name: cell[name] for name in ("text", "parent") if name in cell}
                # A text that names itself is no id where it has lines.
                text = str(cell.get("text")).replace("\n", "⏎").replace("\t", "⇥")
                row["doc_id"] = span["doc"] if "doc" in span else cell.get("id", text)
            else:
                row["doc_id"] = cell
            rows.append(row)
    if rng is not None:
        rng.shuffle(rows)
    names = {"qid": pl.String, "doc_id": pl.String, "score": pl.Float64}
    names |= {"start": pl.Int64, "end": pl.Int64, "text": pl.String, "parent": pl.String}
    kept = {name: kind for name, kind in names.items() if not rows or name in rows[0]}
    return pl.DataFrame(rows, schema=kept)


# ---- a few measures, from rows alone ----------------------------------------------------------------------------


def measures(truth: Truth, rows: Sequence[Row], length: int, k: int | None) -> dict[str, float] | None:
    """Measures of one query that say which results hit what; None where nothing is relevant."""
    relevant = [number for number, grade in enumerate(truth.grade) if grade > 0]
    groups = sorted({truth.group[number] for number in relevant})
    if not groups:
        return None
    top = length if k is None else min(k, length)
    depth = length if k is None else k
    first_rank: dict[int, int] = {}
    news: set[int] = set()
    results: set[int] = set()
    found: list[Any] = []
    for rank, number, repeat in rows:
        if rank > top or number not in relevant or repeat:
            continue
        results.add(rank)
        if truth.group[number] not in first_rank:
            first_rank[truth.group[number]] = rank
            news.add(rank)
        if truth.what[number] not in found:
            found.append(truth.what[number])
    wanted: list[Any] = []
    for number in relevant:
        if truth.what[number] not in wanted:
            wanted.append(truth.what[number])
    weight = sum(truth.weight[group] for group in groups)
    return {
        "precision.autorag": len(results) / top if top else 0.0,
        "precision.trec": len(results) / depth if depth else 0.0,
        "precision.coverage": len(news) / top if top else 0.0,
        "recall.autorag": len(first_rank) / len(groups),
        "recall.trec": len(found) / len(wanted),
        "recall.coverage": sum(truth.weight[group] for group in first_rank) / weight,
        "hit_rate.autorag": float(bool(first_rank)),
        "complete.autorag": float(len(first_rank) == len(groups)),
        "complete.trec": float(len(found) == len(wanted)),
        "complete.coverage": float(len(first_rank) == len(groups)),
        "mrr.autorag": sum(1 / rank for rank in first_rank.values()) / len(groups),
        "mrr.trec": 1 / min(results) if results else 0.0,
        "hits": float(len(results)),
        "redundancy": (len(results) - len(news)) / top if top else math.nan,
        "completion_rr": 1 / max(first_rank.values()) if len(first_rank) == len(groups) else 0.0,
    }


def as_ids(truth: Truth, rows: Sequence[Row], length: int) -> tuple[list[Any], list[str]] | None:
    """The same query with ids: groups and a ranking for a reference that knows ids alone.

    None where a result is the first to hit two different alternatives, which no id does.
    """
    distinct: list[Any] = []
    for what in truth.what:
        if what not in distinct:
            distinct.append(what)
    groups = []
    for j, weight in enumerate(truth.weight):
        own = [number for number, group in enumerate(truth.group) if group == j]
        cells = [{"id": f"a{distinct.index(truth.what[number])}", "grade": truth.grade[number]} for number in own]
        groups.append({"alternatives": cells, "weight": weight})
    ranking = []
    for rank in range(1, length + 1):
        fresh = {distinct.index(truth.what[number]) for at, number, repeat in rows if at == rank and not repeat}
        if len(fresh) > 1:
            return None
        ranking.append(f"a{fresh.pop()}" if fresh else f"irrelevant {rank}")
    return groups, ranking


# ---- worlds -----------------------------------------------------------------------------------------------------


@dataclass
class World:
    """A labeller, its slow twin, and queries: groups, and rankings of the cells that lists hold."""

    labeller: Any
    slow: Slow
    truth: dict[str, list[Any]] = field(default_factory=dict)
    run: dict[str, list[Any]] = field(default_factory=dict)
    corpus: Any = None


def fill(
    world: World, rng: random.Random, queries: int, alternative: Callable[[], Any], cell: Callable[[], Any]
) -> None:
    """Queries with grades and weights or without, some without ground truth, without results, or in the run alone."""
    for number in range(queries):
        graded, weighted = rng.random() < 0.4, rng.random() < 0.3
        groups: list[Any] = []
        pool = [alternative() for _ in range(rng.randint(1, 5))]
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
            cells = rng.choices([*pool, alternative()], k=rng.randint(1, 4))
            if graded:
                mappings = [each if isinstance(each, dict) else {"id": each} for each in cells]
                cells = [{**each, "grade": rng.choice((-1, 0, 0.5, 1, 2, 3))} for each in mappings]
            groups.append({"alternatives": cells, "weight": rng.choice((0.3, 1, 2, 7.5))} if weighted else cells)
        world.truth[f"q{number}"] = groups
        if rng.random() < 0.9:
            # A ranking with very many hits takes another way through a shuffled frame.
            results = [cell() for _ in range(90 if number == 20 else rng.choice((0, 1, 2, 3, 5, 8, 13)))]
            again = rng.choices(results, k=rng.choice((0, 0, 1, 3))) if results else []
            world.run[f"q{number}"] = rng.sample([*results, *again], len(results) + len(again))
    # A run that answers no query of the ground truth is refused.
    if any(world.run.values()):
        world.run["no ground truth"] = [cell()]
    world.run = {qid: world.run[qid] for qid in rng.sample(list(world.run), len(world.run))}


def named(rng: random.Random, names: dict[str, Any]) -> Callable[[], str]:
    """What draws one of these names."""
    listed = list(names)
    return lambda: rng.choice(listed)

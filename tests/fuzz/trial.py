"""One file read by the strict parser and by every engine: they refuse together, or agree to the last figure."""

from __future__ import annotations

import contextlib
import hashlib
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import groupgt
from groupgt.formats import source
from tests.fuzz import files, parsers

# How each reading is brought about: what counts as small and as huge.
ENGINES = {"small": (8 << 20, 512 << 20), "streamed": (0, 512 << 20), "huge": (0, 0)}
METRICS = ["hits", "recall.trec@3", "mrr.trec", "precision.trec@2"]
TRUTH = {
    "q1": ["a", "doc_0001"],
    "q2": ["b", "007"],
    "10": ["7", "한국어"],
    "질문": ["c", "x\u200dy"],
    "q-ü": ["e\u0301", "d,1"],
}
RUN = {
    "q1": ["b", "a", "x\u200dy"],
    "q2": ["a", "007"],
    "10": ["한국어", "7"],
    "질문": ["z;2", "c"],
    "q-ü": ["d,1", "A", "é"],
}

REFUSED = "refused"
# A verdict is what was refused, or the values of each query.
Verdict = str | dict[str, list[float]]


@dataclass(frozen=True)
class Disagreement:
    """A file about which not all agree."""

    kind: str
    data: bytes
    verdicts: dict[str, Any]

    def __str__(self) -> str:
        shown = "\n".join(f"  {name}: {str(verdict)[:400]}" for name, verdict in self.verdicts.items())
        return f"{self.kind} {self.data[:400]!r}\n{shown}"

    @property
    def name(self) -> str:
        return f"{self.kind}-{hashlib.sha256(self.data).hexdigest()[:12]}"


@contextlib.contextmanager
def engine(name: str) -> Iterator[None]:
    """Files are read as this engine reads them, however small they are."""
    before = source.SMALL, source.HUGE
    source.SMALL, source.HUGE = ENGINES[name]
    try:
        yield
    finally:
        source.SMALL, source.HUGE = before


def figures(truth: dict[str, set[str]], run: dict[str, list[str]]) -> dict[str, list[float]]:
    """`METRICS` by hand; a repeated id counts once, and keeps its place."""
    values = {}
    for qid, relevant in truth.items():
        ranking = run.get(qid, [])
        hits = [name in relevant and name not in ranking[:at] for at, name in enumerate(ranking)]
        first = hits.index(True) + 1 if any(hits) else 0
        values[qid] = [sum(hits), sum(hits[:3]) / len(relevant), 1 / first if first else 0.0, sum(hits[:2]) / 2]
    return values


def expected(kind: str, data: bytes) -> Verdict | None:
    """What the strict parser makes of a file; None where it leaves the meaning open."""
    try:
        if kind in files.RUNS:
            read = getattr(parsers, kind)(data)
            # The better score first, equal ones by the greater id in bytes.
            run = {
                qid: [doc for doc, _ in sorted(own, key=lambda row: (row[1], row[0].encode()), reverse=True)]
                for qid, own in read.items()
            }
            if run and not run.keys() & TRUTH.keys():
                return f"{REFUSED}: no query in common"
            return figures({qid: set(docs) for qid, docs in TRUTH.items()}, run)
        groups = parsers.qrels(data, subtopics=True) if kind == "subtopics" else getattr(parsers, kind)(data)
        if not groups.keys() & RUN.keys():
            return f"{REFUSED}: no query in common"
        relevant = {
            qid: {doc for group in own for doc, grade in group.items() if grade > 0} for qid, own in groups.items()
        }
        return figures({qid: docs for qid, docs in relevant.items() if docs}, RUN)
    except parsers.Refused as error:
        return f"{REFUSED}: {error}"
    except parsers.Unsure:
        return None


def verdict(kind: str, path: Path, how: str) -> Verdict:
    """What the product makes of a file; anything but figures and errors of its own is told as what it is."""
    form = (files.RUNS | files.TRUTHS)[kind][0]
    with engine(how), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if kind in files.RUNS:
                found = groupgt.evaluate(
                    {q: [[d] for d in docs] for q, docs in TRUTH.items()}, path, METRICS, run_format=form
                )
            else:
                found = groupgt.evaluate(path, RUN, METRICS, truth_format=form)
        except groupgt.GroupgtError as error:
            return f"{REFUSED}: {error}"
        except Exception as error:  # whatever is none of ours is the fault looked for
            return f"CRASH: {type(error).__name__}: {error}"
    columns = [found.values[text].tolist() for text in found.metrics]
    return {qid: list(row) for qid, *row in zip(found.truth.qids, *columns) if row[0] == row[0]}


def same(one: Verdict, other: Verdict) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one.startswith(REFUSED) and other.startswith(REFUSED)
    return one == other


def trial(kind: str, data: bytes, path: Path) -> Disagreement | None:
    """Reads one file in every way."""
    path.write_bytes(data)
    wanted = expected(kind, data)
    ways = ENGINES if kind in files.RUNS else {"small": ENGINES["small"]}
    verdicts: dict[str, Any] = {name: verdict(kind, path, name) for name in ways}
    first = wanted if wanted is not None else verdicts["small"]
    crashed = any(isinstance(found, str) and found.startswith("CRASH") for found in verdicts.values())
    if crashed or not all(same(first, found) for found in verdicts.values()):
        return Disagreement(kind, data, {"parser": wanted, **verdicts})
    return None


def trials(seed: int, folder: Path, kinds: list[str] | None = None) -> Iterator[tuple[bytes, Disagreement | None]]:
    """File after file, without end."""
    rng = random.Random(seed)
    every = kinds or [*files.RUNS, *files.TRUTHS]
    while True:
        kind = rng.choice(every)
        data = files.mutated(files.made(kind, rng), rng)
        yield data, trial(kind, data, folder / f"trial.{kind}")

"""Made-up ground truth and results, the same on every machine: a seed, and nothing but `random.random` and its kin."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

Truth = dict[str, list[list[str]]]
Results = dict[str, list[str]]

FOLDER = Path(__file__).resolve().parent / "data"
SEED = 20250101
DOCUMENTS = 5_000_000
SHARE_HIT = 0.4


@dataclass(frozen=True)
class Files:
    """A workload as files: grouped ground truth, flat judgments, a run in order, and the run's lines shuffled."""

    truth: Path
    qrels: Path
    ordered: Path
    shuffled: Path


def queries(count: int, depth: int) -> Iterator[tuple[str, list[list[str]], list[str]]]:
    """Each query: its id, 1 to 4 groups of 1 to 3 alternatives, `depth` results; 40% of the groups are hit."""
    rng = random.Random(f"{SEED} {count} {depth}")
    for number in range(1, count + 1):
        results = rng.sample(range(DOCUMENTS), depth)
        groups = []
        for _ in range(rng.randint(1, 4)):
            group = rng.sample(range(DOCUMENTS), rng.randint(1, 3))
            if rng.random() < SHARE_HIT:
                # Squared, so that hits are denser at the top. Two groups may be met by one result, as in real data.
                group[rng.randrange(len(group))] = results[int(rng.random() ** 2 * depth)]
            groups.append([_name(document) for document in dict.fromkeys(group)])
        yield f"q{number:05d}", groups, [_name(document) for document in results]


def _name(document: int) -> str:
    return f"doc_{document:07d}"


def lists(count: int, depth: int) -> tuple[Truth, Results]:
    truth: Truth = {}
    results: Results = {}
    for qid, groups, ranking in queries(count, depth):
        truth[qid] = groups
        results[qid] = ranking
    return truth, results


def fresh_truth(truth: Truth) -> Truth:
    """The same with new string objects: a string keeps its hash once it was computed, and a tool must pay for it."""
    return {_copy(qid): [[_copy(name) for name in group] for group in groups] for qid, groups in truth.items()}


def fresh_results(results: Results) -> Results:
    return {_copy(qid): [_copy(name) for name in ranking] for qid, ranking in results.items()}


def _copy(text: str) -> str:
    return text[:1] + text[1:]


def files(count: int, depth: int) -> Files:
    """Writes the workload, unless it is there."""
    folder = FOLDER / f"{count}x{depth}-{SEED}"
    found = Files(folder / "qa.jsonl", folder / "qrels.trec", folder / "ordered.trec", folder / "shuffled.trec")
    if (folder / "done").exists():
        return found
    print(f"writing {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(SEED)
    lines: list[str] = []
    with (
        found.truth.open("w", encoding="utf-8", newline="\n") as truth,
        found.qrels.open("w", encoding="utf-8", newline="\n") as qrels,
    ):
        for qid, groups, ranking in queries(count, depth):
            truth.write(json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n")
            qrels.writelines(f"{qid} 0 {name} 1\n" for name in dict.fromkeys(chain.from_iterable(groups)))
            # Whole parts fall by one and the rest is below one, so scores fall strictly.
            parts = rng.choices(range(1000), k=depth)
            lines += [
                f"{qid} Q0 {name} {rank} {depth - rank}.{part:03d} made\n"
                for rank, (name, part) in enumerate(zip(ranking, parts, strict=True), 1)
            ]
    _write(found.ordered, lines)
    rng.shuffle(lines)
    _write(found.shuffled, lines)
    (folder / "done").touch()
    return found


def runs(count: int, depth: int, systems: int, *, judged: int, style: str) -> tuple[Path, list[Path]]:
    """Writes qrels and runs of several systems, unless they are there; `style` is plain or submitted.

    A third of the results is judged. Submitted runs have the marks of real ones: tabs, scores of 17 digits, ranks from
    zero, and equal scores whose ranks are not in the order of the lines.
    """
    folder = FOLDER / f"runs-{count}x{depth}x{systems}-{judged}-{style}-{SEED}"
    qrels, paths = folder / "qrels.trec", [folder / f"system{number:02d}.run" for number in range(systems)]
    if (folder / "done").exists():
        return qrels, paths
    print(f"writing {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(f"{SEED} {folder.name}")
    pools = {f"q{number}": rng.sample(range(DOCUMENTS), judged + depth) for number in range(1, count + 1)}
    _write(
        qrels, [f"{qid} 0 {_name(each)} {rng.choice((0, 0, 1, 2))}\n" for qid in pools for each in pools[qid][:judged]]
    )
    for path in paths:
        lines: list[str] = []
        for qid, pool in pools.items():
            relevant = rng.sample(pool[:judged], min(judged, depth // 3))
            names = [_name(each) for each in relevant + rng.sample(pool[judged:], depth - len(relevant))]
            rng.shuffle(names)
            scores = sorted((rng.random() for _ in names), reverse=True)
            if style == "plain":
                rows = enumerate(zip(names, scores, strict=True), 1)
                lines += [f"{qid} Q0 {name} {rank} {30 * score:.4f} {path.stem}\n" for rank, (name, score) in rows]
                continue
            places = list(range(depth))
            for at in range(0, depth - 1, 10):
                scores[at + 1] = scores[at]
                places[at], places[at + 1] = places[at + 1], places[at]
            rows = zip(places, zip(names, scores, strict=True), strict=True)
            lines += [f"{qid}\tQ0\t{name}\t{rank}\t{score!r}\t{path.stem}\n" for rank, (name, score) in rows]
        _write(path, lines)
    (folder / "done").touch()
    return qrels, paths


def _write(path: Path, lines: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)

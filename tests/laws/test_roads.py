"""Every road and every medium says the same, and what plain loops over the rows say."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.laws import roads
from tests.laws.roads import Book, Row, World


def truth_of(queries: int, **columns: Callable[[int], Any]) -> list[Row]:
    """Queries with two groups of two alternatives."""
    rows = []
    for n in range(queries):
        groups = [[f"g{group}a{one}q{n}" for one in range(2)] for group in range(2)]
        rows.append(
            {"qid": f"q{n}", "query": f"text {n}", "retrieval_gt": groups, **{k: f(n) for k, f in columns.items()}}
        )
    return rows


def system_of(
    seed: str, truth: list[Row], share: float, trials: int = 0, skip: int = 0, build: bool = False
) -> list[Row]:
    """Rankings in which each alternative appears with this probability, at a random rank; every `skip`th is missing."""
    rng, rows = random.Random(seed), []
    for trial in range(max(trials, 1)):
        for n, query in enumerate(truth):
            if skip and n % skip == 0:
                continue
            ids = [
                one for group in query["retrieval_gt"] for one in group if rng.random() < share + 0.1 * build * trial
            ]
            ids += [f"x{k}q{n}" for k in range(4)] + [
                one for one in query.get("harmful_ids", []) if rng.random() < share
            ]
            rng.shuffle(ids)
            row = {"qid": query["qid"], "retrieved_ids": ids[:6]}
            rows.append(row | ({"build" if build else "trial": trial + 1} if trials else {}))
    return rows


def plain() -> World:
    truth = truth_of(24)
    systems = {"a": system_of("a", truth, 0.4), "b": system_of("b", truth, 0.8), "c": system_of("c", truth, 0.4)}
    return World(truth, systems, ["recall@3", "complete@3", "ndcg@5"])


def missing() -> World:
    """Systems that lack different queries, left out of their means."""
    truth = truth_of(24)
    systems = {
        "a": system_of("a", truth, 0.6),
        "b": system_of("b", truth, 0.6, skip=3),
        "c": system_of("c", truth, 0.6, skip=4),
    }
    return World(truth, systems, ["recall@3", "complete@3"], policy="missing=skip")


def unanswerable() -> World:
    truth = truth_of(24, answerable=lambda n: n % 3 > 0)
    truth = [row if row["answerable"] else {**row, "retrieval_gt": []} for row in truth]
    return World(
        truth, {name: system_of(name, truth, 0.6) for name in "ab"}, ["recall@3", "complete@3", "false_returns@3"]
    )


def harmful() -> World:
    """A metric for which less is better, defined for half of the queries."""
    truth = truth_of(24, harmful_ids=lambda n: [f"h{n}"] if n % 2 else [])
    return World(truth, {name: system_of(name, truth, 0.5) for name in "abc"}, ["recall@3", "harmful@3", "clean@3"])


def undefined() -> World:
    """A primary metric that no query defines."""
    truth = truth_of(12)
    systems = {name: system_of(name, truth, 0.5) for name in "ab"}
    return World(truth, systems, ["clean@3", "recall@3"], gate={"metric": "clean@3", "min": 0.0}, passes=False)


def trials() -> World:
    truth = truth_of(20)
    systems = {
        "a": system_of("a", truth, 0.6),
        "b": system_of("b", truth, 0.5, trials=3),
        "c": system_of("c", truth, 0.6, trials=2),
    }
    return World(truth, systems, ["recall@3", "complete@3", "ndcg@5"])


def builds() -> World:
    truth = truth_of(20)
    systems = {"a": system_of("a", truth, 0.5), "b": system_of("b", truth, 0.5, trials=3, build=True)}
    return World(truth, systems, ["recall@3", "complete@3"])


def gaps() -> World:
    """Trials in which other queries have results than in the rest, left out of the means."""
    truth = truth_of(20)
    systems = {name: system_of(name, truth, 0.6, trials=3) for name in "ab"}
    systems["b"] = [row for n, row in enumerate(systems["b"]) if n % 7]
    return World(truth, systems, ["recall@3", "complete@3"], policy="missing=skip")


def human_of(truth: list[Row]) -> list[Row]:
    """A sample in which some queries need less."""
    of = len(truth)
    return [
        {**row, "retrieval_gt": row["retrieval_gt"][: 1 + (n % 3 > 0)], "sample": {"seed": 7, "of": of, "position": n}}
        for n, row in enumerate(truth[:16])
    ]


def other_of(truth: list[Row]) -> list[Row]:
    """A second opinion, which needs one group of each query."""
    return [{**row, "retrieval_gt": [row["retrieval_gt"][n % 2]]} for n, row in enumerate(truth)]


def audited() -> World:
    truth = truth_of(30)
    systems = {name: system_of(name, truth, 0.5) for name in "ab"}
    return World(truth, systems, ["recall@3", "complete@3"], audit=human_of(truth))


def annotated() -> World:
    truth = truth_of(20)
    systems = {name: system_of(name, truth, 0.5) for name in "ab"}
    return World(truth, systems, ["recall@3", "complete@3"], annotator=other_of(truth))


def builds_audited() -> World:
    truth = truth_of(30)
    systems = {"a": system_of("a", truth, 0.5), "b": system_of("b", truth, 0.4, trials=3, build=True)}
    return World(truth, systems, ["recall@3", "complete@3"], audit=human_of(truth))


def builds_annotated() -> World:
    truth = truth_of(20)
    systems = {"a": system_of("a", truth, 0.5), "b": system_of("b", truth, 0.4, trials=3, build=True)}
    return World(truth, systems, ["recall@3", "complete@3"], annotator=other_of(truth))


def several() -> World:
    """Two data sets, of which one holds half of the queries."""
    truth = truth_of(24)
    systems = {"a": system_of("a", truth, 0.4), "b": system_of("b", truth, 0.6, trials=2)}
    return World(truth, systems, ["recall@3", "complete@3"], second=truth[::2])


WORLDS = (
    *(plain, missing, unanswerable, harmful, undefined, several),
    *(trials, gaps, builds, audited, annotated, builds_audited, builds_annotated),
)


def value_of(metric: str, query: Row, ids: list[str], cutoff: int) -> float | None:
    """Return recall, complete, clean or harmful by its definition; None if it is not defined."""
    harmful = query.get("harmful_ids", [])
    if metric in ("clean", "harmful"):
        found = [one for one in ids[:cutoff] if one in harmful]
        return None if not harmful else float(not found) if metric == "clean" else len(found) / cutoff
    groups = query["retrieval_gt"]
    if not groups:
        return None
    covered = [any(one in ids[:cutoff] for one in group) for group in groups]
    return sum(covered) / len(groups) if metric == "recall" else float(all(covered))


def by_loops(book: Book, world: World, truth: list[Row]) -> None:
    """Reckon means, numbers of queries, and complete, lost and gained queries over all trials and pairs of trials."""
    ranked: dict[str, dict[Any, dict[str, list[str]]]] = {}
    for name, rows in world.systems.items():
        ranked[name] = defaultdict(dict)
        for row in rows:
            ranked[name][row.get("trial", row.get("build", 1))][row["qid"]] = row["retrieved_ids"]
    queries = {row["qid"]: row for row in truth}
    skips = world.policy == "missing=skip"

    def values(name: str, metric: str, cutoff: int) -> dict[str, list[float]]:
        found: dict[str, list[float]] = defaultdict(list)
        for of_trial in ranked[name].values():
            for qid, query in queries.items():
                value = value_of(metric, query, of_trial.get(qid, []), cutoff)
                if value is not None and (qid in of_trial or not skips):
                    found[qid].append(value)
        return found

    for text in world.metrics:
        metric, cutoff = text.split("@")
        if metric in ("recall", "complete", "clean", "harmful"):
            for name in world.systems:
                found = [sum(each) / len(each) for each in values(name, metric, int(cutoff)).values()]
                book.put("loops", name, text, "mean", sum(found) / len(found) if found else None)
    complete = {name: values(name, "complete", world.cutoff) for name in world.systems}
    for name, mine in complete.items():
        book.put("loops", name, "", "done", sum(sum(each) / len(each) for each in mine.values()))
        book.put("loops", name, "", "of", len(mine))
        if name != "a":
            two = [(mine[qid], complete["a"][qid]) for qid in mine if qid in complete["a"]]
            lost = [sum(b > a for a in one for b in other) / len(one) / len(other) for one, other in two]
            gained = [sum(a > b for a in one for b in other) / len(one) / len(other) for one, other in two]
            book.put("loops", name, "", "lost", sum(lost))
            book.put("loops", name, "", "gained", sum(gained))


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_every_road_says_the_same(make: Callable[[], World], pytester: pytest.Pytester) -> None:
    world, book = make(), Book()
    world.write(pytester.path)
    roads.by_experiment(book, world)
    for book.dataset, truth in zip(world.datasets, (world.truth, world.second)):
        for road in roads.ROADS:
            road(book, world)
        roads.by_pytest(book, world, pytester)
        if not (world.audit or world.annotator):
            by_loops(book, world, truth)
    assert book.disagreements() == []
    # Nothing was left unread.
    most = 5 if world.annotator else 20
    assert {fact: len(media) for fact, media in book.facts.items() if fact[-1] == "mean" and len(media) < most} == {}
    assert {fact[0] for fact in book.facts} == set(world.datasets)


def rounded(value: Any) -> Any:
    """Sums in another order may differ in the last bit."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return (
        list(map(rounded, value)) if isinstance(value, list) else f"{value:.12g}" if isinstance(value, float) else value
    )


def in_another_order(world: World, of: str) -> None:
    """Reverse the queries, the systems, or the trials of each system, which then have new numbers."""
    if of == "queries":
        world.truth.reverse()
        for rows in world.systems.values():
            rows.reverse()
    elif of == "systems":
        world.systems = dict(reversed(world.systems.items()))
    else:
        for rows in world.systems.values():
            for row in rows:
                row |= {key: 9 - row[key] for key in ("trial", "build") if key in row}


@pytest.mark.parametrize("of", ["queries", "systems", "trials"])
@pytest.mark.parametrize("make", [missing, trials, builds, audited], ids=lambda make: make.__name__)
def test_order_changes_nothing(
    make: Callable[[], World], of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for is_turned in (False, True):
        world = make()
        if is_turned:
            in_another_order(world, of)
        world.write(tmp_path)
        plain = json.loads(roads.shell("compare", *world.words("d"), "--baseline", "a", "--format", "json")[1])
        rows = [{**(row.pop("against_baseline") or {}), **row} for row in plain["rows"]]
        found.append(
            {(row["system"], row["metric"]): rounded(row) for row in rows}
            | {key: plain["failures"][key] for key in ("solved", "queries_of", "everybody")}
        )
    assert found[0] == found[1]

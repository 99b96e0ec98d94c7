"""Figures of every kind from made-up tables, and a page of them, for tests of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.render import figures, tradeoffs
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.page import data
from groupgt.render.page.blocks import score_texts
from groupgt.render.page.page import untimed_page

SYSTEMS = ["hybrid[k=10]", "bm25[k1=1.2,b=0.75]", "lsa", "dense"]
ABOUT = About("ndcg@10", 40, "coverage", "default policy")


def samples() -> dict[str, Figure]:
    """One figure of each kind, and of each way in which a kind can be drawn."""
    kinds = ["better", "baseline", "worse", "not significant"]
    means = [
        {"name": name, "value": 0.8 - place / 10, "low": 0.7 - place / 10, "high": 0.9 - place / 10, "kind": kind}
        for place, (name, kind) in enumerate(zip(SYSTEMS, kinds))
    ]
    mean = {"value": 0.05, "low": 0.01, "high": 0.09}
    sorted_deltas = [(20 - place) / 40 if abs(20 - place) > 4 else 0.0 for place in range(40)]
    many = [(500 - place) / 500 for place in range(1000)]
    depths = [
        {"system": name, "metric": metric, "k": k, "value": 1 - 1 / (1 + k / (place + 1))}
        for place, name in enumerate(SYSTEMS)
        for metric in ("recall", "complete", "ndcg")
        for k in (1, 5, 10, 100)
    ]
    steps = [
        {"system": name, "kind": kind, "rank": rank, "share": rank / 10}
        for name in SYSTEMS
        for kind in ("first hit", "complete")
        for rank in (1, 3, 9)
    ]
    parts = [f"type = {kind} ({count})" for kind, count in (("single", 20), ("multi", 15), ("vague", 5))]
    cells = [
        {"slice": part, "system": name, "value": (place - row) / 10, "queries": 20}
        for row, part in enumerate(parts)
        for place, name in enumerate(SYSTEMS)
    ]
    counts = {"better": 10, "same": 25, "worse": 5}
    met = [
        {"group": f"q{number}: group 1", "system": name, "rank": [None, 1, 2, 7, 40][(number + place) % 5]}
        for number in range(6)
        for place, name in enumerate(SYSTEMS)
    ]
    covered = {name: sum(row["rank"] is not None for row in met if row["system"] == name) for name in SYSTEMS}
    one = [{"family": "bm25", "x": x, "value": 0.5 + x / 10, "low": 0.4, "high": 0.8} for x in (0.4, 0.75, 1.2)]
    words = [{"family": "bm25", "x": x, "value": 0.5, "low": None, "high": None} for x in ("none", "english")]
    two = [{"family": "bm25", "x": x, "y": y, "value": x - y / 10} for x in (0.9, 1.2) for y in (0.4, 0.75)]
    points = [
        {
            "system": name,
            "latency": 50 / (place + 1),
            "fast": 45 / (place + 1),
            "slow": 55 / (place + 1),
            "value": 0.8 - place / 10,
            "low": 0.1,
            "high": 0.9,
            "front": front,
        }
        for place, (name, front) in enumerate(zip(SYSTEMS, ("yes", "no", "yes", "no")))
    ]
    powers = [
        {"system": name, "difference": 0.1 / (place + 1), "queries": queries, "power": 1 - 0.5 ** (queries / 40)}
        for place, name in enumerate(SYSTEMS[:2])
        for queries in (10, 40, 160)
    ]
    thresholds = [
        {"system": name, "threshold": place / 10, "figure": figure, "share": share}
        for name in SYSTEMS[:2]
        for place in range(5)
        for figure, share in (("unanswerable empty", place / 5), ("recall of answerable", 1 - place / 8))
    ]
    return {
        "forest": figures.forest(means, ABOUT),
        "forest of one": figures.forest([{**means[0], "kind": ""}], ABOUT),
        "differences": figures.forest(means[:3], ABOUT, delta=True),
        "deltas": figures.deltas(_deltas(sorted_deltas), ABOUT, *SYSTEMS[:2], mean),
        "deltas of many": figures.deltas(_deltas(many), ABOUT, *SYSTEMS[:2], mean),
        "scatter": figures.scatter(
            [
                {"x": place / 8, "y": y / 8, "times": 1 + place, "qids": f"q{place}{y}", "kind": kind, "name": name}
                for place in range(9)
                for y, kind, name in (
                    (place, "same", ""),
                    (8, "better", f"q{place}8"[place:]),
                    (place / 2, "worse", ""),
                )
            ],
            ABOUT,
            *SYSTEMS[:2],
        ),
        "depth": figures.depth(depths, ABOUT),
        "depth in tokens": figures.depth(depths[:12], ABOUT, "tokens"),
        "ecdf": figures.ecdf(steps, ABOUT),
        "iprec": figures.precision_recall(
            [
                {"system": name, "recall": step / 10, "precision": 1 - step / (10 + place)}
                for place, name in enumerate(SYSTEMS)
                for step in range(11)
            ],
            ABOUT,
        ),
        "outcomes": figures.outcomes(
            [{"system": name, "outcome": kind, "count": count} for name in SYSTEMS for kind, count in counts.items()],
            ABOUT,
            "lsa",
        ),
        "slices": figures.slices([{**cell, "value": abs(cell["value"])} for cell in cells], ABOUT),
        "groups": figures.group_ranks(met, ABOUT, covered),
        "sweep of one": tradeoffs.sweep(one, ABOUT, ["k1"]),
        "sweep of words": tradeoffs.sweep(words, ABOUT, ["stemmer"]),
        "sweep of two": tradeoffs.sweep(two, ABOUT, ["k1", "b"]),
        "latency": tradeoffs.latency(points, ABOUT),
        "correlation": tradeoffs.correlation(
            [{"system": name, "x": 0.5 + place / 10, "y": 0.3 + place / 5} for place, name in enumerate(SYSTEMS)],
            ABOUT,
            ("map, human", "map, model"),
        ),
        "trials": figures.trials(
            [
                {"query": f"q{query}", "system": name, "value": value, "times": times}
                for name in SYSTEMS[:2]
                for query, counts in enumerate(((2, 3), (1, 4), (5, 0)))
                for value, times in enumerate(counts)
            ],
            ABOUT,
            ["two runs of bm25 differ by more than 0.0500 in 5% of cases"],
        ),
        "stages": tradeoffs.funnel(
            [
                {"stage": stage, "fate": fate, "count": count, "order": order}
                for stage, kept in (("retrieved", 90), ("reranked", 70), ("cited", 0))
                for order, (fate, count) in enumerate({"covered": kept, "not covered": 100 - kept}.items())
            ],
            ABOUT,
            "retrieved",
        ),
        "thresholds": tradeoffs.thresholds(thresholds, ABOUT),
        "power": tradeoffs.power(powers, ABOUT, 0.8, 40, "lsa", dict.fromkeys(SYSTEMS, "93")),
    }


def _deltas(values: list[float]) -> list[dict[str, Any]]:
    return [
        {
            "qid": f"q{place}",
            "place": place,
            "delta": value,
            "kind": "better" if value > 0 else "worse" if value < 0 else "same",
        }
        for place, value in enumerate(values, 1)
    ]


def metric(name: str = "recall@10", **more: Any) -> data.Row:
    """A metric, as the page has it."""
    usual: dict[str, Any] = {
        "order": "down",
        "best": [0],
        "bounded": True,
        "summary": "what it says",
        "formula": "met ÷ m",
    }
    return {"name": name, "label": name, "full": name, **usual, **more}


def dataset(questions: int = 4, systems: int = 2, passages: dict[str, str] | None = None, **more: Any) -> data.Dataset:
    """A data set of a few questions, each of one group."""
    names = [f"system {place}" for place in range(systems)]
    values: data.Values = {
        "numbers": [0.0, 0.5, 1.0],
        "texts": ["0.0000", "0.5000", "1.0000"],
        "levels": [0, 1, 2],
        "steps": [0, 3, 5],
        "cells": [[(question + place) % 3 for question in range(questions)] for place in range(systems)],
        "spreads": [1.0] * questions,
        "spread_texts": ["1.0000"] * questions,
    }
    details = []
    for question in range(questions):
        # What all systems find is in the second and third place.
        ids = [f"d{question}", f"x{question}-0", "y", *(f"x{question}-{place}" for place in range(1, systems))]
        own = [1, *range(3, systems + 2)]
        rankings: list[Any] = [[3, [at, 0, 2], score_texts([3.0, 2.0, 1.0]), [[2, 0, [0]]], {}] for at in own]
        groups = [["group 1", 1, [[0, 1]]]]
        details.append(data.Detail(question, groups, ids, {f"d{question}"}, rankings, [["1 / 1"]] * systems))
    usual: dict[str, Any] = {
        "name": "set",
        "decision": {
            "badge": "Better",
            "system": names[0],
            "sentence": ["", names[0], " is better."],
            "evidence": [],
            "note": "",
        },
        "population": f"{questions} of {questions} queries evaluated",
        "notes": [],
        "standings": standing_rows(names),
        "first": {"why": "", "queries": [], "all": f"All {questions} queries"},
        "gates_title": "",
        "primary": 0,
        "baseline": None,
        "subject": 0,
        "metrics": [metric()],
        "systems": [
            {
                "name": name,
                "about": "",
                **{"means": [0.5], "texts": ["0.5000"], "steps": [3]},
                **{"intervals": [(0.25, 0.75)], "spans": ["0.2500 to 0.7500"], "queries": [questions]},
            }
            for name in names
        ],
        "failed": [],
        "gates": [],
        "contrasts": {"names": [], "heads": [], "rows": []},
        "slices": [],
        "tests": [],
        "headroom": [],
        "previous": None,
        "outcomes": None,
        "trials_note": "",
        "cutoff": "@10",
        "facts": [("convention", "coverage")],
        "drawings": {},
        "questions": {
            "qids": [f"q{question}" for question in range(questions)],
            "texts": [f"what is {question}?" for question in range(questions)],
            "groups": [1] * questions,
            "slices": {},
            "complete": [[1] * systems for _ in range(questions)],
            "out": {},
            "by_labels": False,
            "values": [values],
        },
        "details": details,
        "passages": passages or {},
        "left_out": [],
    }
    return {**usual, **more}  # type: ignore[typeddict-item]


def standing_rows(names: Sequence[str]) -> data.Standings:
    """A table of systems without a baseline."""
    rows = [
        data.StandingRow(
            name=name,
            base=name,
            options="",
            kind="",
            cells={"mean": "0.500"},
            marks={},
            sort={"name": name, "mean": 0.5},
            bar=[50.0, 25.0, 75.0],
            limit=None,
            label=f"{name}: mean 0.500",
            details=[],
            lost=[],
            gained=[],
        )
        for name in names
    ]
    columns = [("name", "System"), ("mean", "recall@10")]
    about: dict[str, Any] = {"title": "Systems", "baseline": "", "interval": "95% CI of the mean", "note": ""}
    return data.Standings(columns=columns, ticks=[], rows=rows, legend=[], **about)


def page(*datasets: data.Dataset, **more: Any) -> data.Page:
    """A page of some data sets."""
    usual = untimed_page("sample", list(datasets))
    usual["times"]["made"] = "2026-01-01T00:00:00+00:00"
    return {**usual, **more}  # type: ignore[typeddict-item]

"""A slow reference for fusion, written from the definitions alone: plain loops and exact fractions.

The tests hold the package to these functions, so this module shares no code with it. An input is
`{qid: [(id, score), …]}`, best first; a result is `{qid: {id: fused score}}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

Input = Mapping[str, Sequence[tuple[str, float]]]
Fused = dict[str, dict[str, float]]


def first_places(results: Sequence[tuple[str, float]]) -> dict[str, int]:
    """The rank at which each id stands first, from 1."""
    places: dict[str, int] = {}
    for rank, (name, _) in enumerate(results, 1):
        if name not in places:
            places[name] = rank
    return places


def rrf(inputs: Sequence[Input], k: int, weights: Sequence[float], depth: int) -> Fused:
    """score = Σ over inputs of weight ÷ (k + rank), ranks from 1."""
    fused: Fused = {}
    for qid in inputs[0]:
        sums: dict[str, Fraction] = {}
        for each, weight in zip(inputs, weights, strict=True):
            for name, rank in first_places(each[qid][:depth]).items():
                sums[name] = sums.get(name, Fraction(0)) + Fraction(weight) / (k + rank)
        fused[qid] = {name: float(value) for name, value in sums.items()}
    return fused


def min_max(scores: Sequence[float], least: float) -> list[float]:
    """(s − min) ÷ (max − min); where all are equal, 1."""
    low, high = Fraction(min(scores)), Fraction(max(scores))
    return [1.0 if low == high else float((Fraction(score) - low) / (high - low)) for score in scores]


def theoretical(scores: Sequence[float], least: float) -> list[float]:
    """(s − least) ÷ (max − least); where all are equal, 1."""
    low, high = Fraction(least), Fraction(max(scores))
    if min(scores) == max(scores):
        return [1.0 for _ in scores]
    return [float((Fraction(score) - low) / (high - low)) for score in scores]


def z_score(scores: Sequence[float], least: float) -> list[float]:
    """(s − mean) ÷ standard deviation of the population; where all are equal, 0."""
    exact = [Fraction(score) for score in scores]
    mean = sum(exact) / len(exact)
    variance = sum((score - mean) ** 2 for score in exact) / len(exact)
    if variance == 0:
        return [0.0 for _ in scores]
    return [math.copysign(math.sqrt((score - mean) ** 2 / variance), score - mean) for score in exact]


NORMALIZE = {"min_max": min_max, "theoretical": theoretical, "z_score": z_score}


def convex(
    inputs: Sequence[Input], normalization: str, weights: Sequence[float], least: Sequence[float], depth: int
) -> Fused:
    """score = Σ over inputs of weight × normalized score, weights divided by their sum.

    What an input did not find gets 0, under z_score the input's lowest value.
    """
    total = sum(Fraction(weight) for weight in weights)
    fused: Fused = {}
    for qid in inputs[0]:
        everything = {name for each in inputs for name, _ in each[qid][:depth]}
        sums = dict.fromkeys(everything, 0.0)
        for each, weight, floor in zip(inputs, weights, least, strict=True):
            results = each[qid][:depth]
            if not results:
                continue
            normal = NORMALIZE[normalization]([score for _, score in results], floor)
            places = first_places(results)
            missing = min(normal) if normalization == "z_score" else 0.0
            for name in everything:
                own = normal[places[name] - 1] if name in places else missing
                sums[name] += float(Fraction(weight) / total) * own
        fused[qid] = sums
    return fused


def place(name: str, qid: str, inputs: Sequence[Input], depth: int) -> tuple[int, int]:
    """What orders equal scores: the first input that has it, and the rank there."""
    for number, each in enumerate(inputs):
        places = first_places(each[qid][:depth])
        if name in places:
            return number, places[name]
    raise AssertionError(f"{name} is in no input")

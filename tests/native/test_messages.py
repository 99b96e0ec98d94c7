"""What bad input is told is the same with and without the compiled module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt import native
from groupgt.formats import source
from tests.formats import outcomes

pytestmark = pytest.mark.skipif(native.built is None, reason="groupgt._native is not built, or turned off")

TRUTH = {"q": [["a"], ["b"]], "p": [["c"]]}


class Text(str):
    """A text that is not plain."""


NO_IDS = [
    None,
    True,
    1.0,
    "",
    " ",
    "a\nb",
    "a\x85b",
    "\ufeffa",
    "\ud800",
    "x" * 70_000,
    b"a",
    ("a",),
    {"doc_id": "a"},
    {},
]
IDS = [1, np.int64(3), np.str_("a"), Text("a"), {"id": "a"}]
NO_SCORES = [None, True, "1", float("nan"), float("inf"), 10**400, "x", 1 + 2j]
NO_RANKINGS = ["ab", 5, None, {"a": [1]}, ["a", ("b", 1)], [("a",)], ["a", "a"], [7, 7, "7"], [["a", "b"]], [[]]]


def runs() -> list[Any]:
    found: list[Any] = [5, None, "x", [1], {}]
    for odd in (*NO_IDS, *IDS):
        found += [{"q": ["a", odd]}, {"q": (odd, "a")}, {"q": [("a", 1.0), (odd, 0.5)]}, {"q": ["a"], "p": [odd]}]
        found += [{"q": ["a"], "no": [odd]}]
        if odd.__hash__ is not None:
            found += [{"q": {"a": 1.0, odd: 0.5}}, {odd: ["a"], "q": ["a"]}]
    for score in NO_SCORES:
        found += [{"q": [("a", 1.0), ("b", score)]}, {"q": {"a": 1.0, "b": score}}, {"q": ["a"], "no": {"b": score}}]
    return [*found, *({"q": ["a"], "p": ranking} for ranking in NO_RANKINGS)]


def truths() -> list[Any]:
    found: list[Any] = [
        {"q": "abc"},
        {"q": {"a": 1}},
        {"q": [[], ["a"]]},
        {1: [["a"]], "1": [["a"]]},
        {"q": ["a", ["b"]]},
    ]
    for odd in (*NO_IDS, *IDS):
        found += [{"q": [["a", odd]]}, {"q": [odd]}, {"q": odd}, {"q": [["a"]], "p": [[odd], ["c"]]}]
        if odd.__hash__ is not None:
            found += [{odd: [["a"]], "q": [["a"]]}]
    return found


def told(function: Callable[[], Any]) -> tuple[str, list[str]]:
    """What comes of it, or the error; and what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            outcome = repr(function())
        except groupgt.GroupgtError as error:
            outcome = f"{type(error).__name__}: {error}"
    return outcome, [str(warning.message) for warning in warned]


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> list[Any]:
    """What a function returns with the module and without it."""
    with_module = function()
    with monkeypatch.context() as without:
        without.setattr(native, "built", None)
        return [with_module, function()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [None, "autorag", {"duplicates": "drop"}, {"duplicates": "error"}, {"ties": "input"}]
)
def test_of_what_is_in_memory(monkeypatch: pytest.MonkeyPatch, policy: Any) -> None:
    for truth, run in [*((TRUTH, run) for run in runs()), *((truth, {"q": ["a"]}) for truth in truths())]:

        def evaluated(truth: Any = truth, run: Any = run) -> Any:
            found = groupgt.evaluate(truth, run, ["recall", "mrr"], policy=policy)
            return found.means, found.counts

        with_module, without = both_ways(monkeypatch, lambda: told(evaluated))
        assert with_module == without, (truth, run)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, large: bool) -> None:
    if large:
        monkeypatch.setattr(source, "SMALL", 0)
    for name, side, data, file in outcomes.rows():
        with_module, without = both_ways(monkeypatch, lambda: outcomes.outcome(side, data, file, tmp_path))  # noqa: B023
        assert with_module == without, name

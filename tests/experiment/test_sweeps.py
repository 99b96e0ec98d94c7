"""Sweeps: names, what is retrieved and what is kept, what --set and --only change, what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupgt.experiment.config import SystemConfig
from groupgt.experiment.experiment import load
from groupgt.experiment.systems import matching, variants
from tests.experiment.conftest import MEMBERS


def test_names_in_order(sweep: Path) -> None:
    assert list(load(sweep).systems) == [*MEMBERS, "fused[k=10]", "fused[k=60]"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0.4, 1.0, 1e-3, 2], ["x[a=0.4]", "x[a=1]", "x[a=0.001]", "x[a=2]"]),
        ([1e20, 1e-7, True, None], ["x[a=1e+20]", "x[a=1e-07]", "x[a=true]", "x[a=null]"]),
        (["english", "two words", "a,b"], ["x[a=english]", 'x[a="two words"]', 'x[a="a,b"]']),
        ([[0.5, 0.5], {"k": 1}], ["x[a=[0.5,0.5]]", 'x[a={"k":1}]']),
    ],
)
def test_values_print_one_way(values: list[Any], names: list[str]) -> None:
    config = SystemConfig("bm25", matrix={"a": values})
    assert [name for name, _, _ in variants("x", config)] == names


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("bm25[k1=0.9,b=0.4]", ["bm25[k1=0.9,b=0.4]"]),  # a name, though [ … ] would be a set of letters
        ("bm25[*", ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]"]),
        ("?sa", ["lsa"]),
        ("*", ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]", "lsa", "a*"]),
        ("a*", ["a*"]),
        ("BM25*", []),
        ("l.a", []),
    ],
)
def test_patterns(pattern: str, found: list[str]) -> None:
    assert matching(pattern, ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.4]", "lsa", "a*"]) == found

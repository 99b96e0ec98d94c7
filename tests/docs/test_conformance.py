"""The cases for other implementations: as the code has them, valid, and able to fail."""

from __future__ import annotations

import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import groupgt
from docs.generate import DOCS, conformance

CHECK = DOCS / "conformance" / "check.py"
differences = runpy.run_path(str(CHECK))["differences"]


def score(truth: Any, ranking: list[str], metric: dict[str, Any]) -> float | None:
    """One value by the package itself, from the parts of a metric."""
    inside = ", ".join(f"{name}={value}" for name, value in metric["parameters"].items())
    convention = f".{metric['convention']}" if metric["convention"] else ""
    cutoff = "" if metric["k"] is None else f"@{metric['k']}"
    text = f"{metric['name']}{convention}{f'({inside})' if inside else ''}{cutoff}"
    return groupgt.score(truth, ranking, [text])[text]


def test_the_cases_are_valid() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the extra groupgt[checks] is not installed")
    cases = json.loads(conformance.CASES.read_text(encoding="utf-8"))
    jsonschema.validate(cases, json.loads(conformance.SCHEMA.read_text(encoding="utf-8")))
    assert all(set(case["values"]) == set(cases["metrics"]) for case in cases["cases"])


@pytest.mark.slow
def test_one_query_at_a_time_gives_the_same_values() -> None:
    compared, skipped, lines = differences(score, tolerance=0)
    assert (skipped, lines) == (0, [])
    assert compared > 1500


def test_a_wrong_function_is_found() -> None:
    def off(truth: Any, ranking: list[str], metric: dict[str, Any]) -> float | None:
        value = score(truth, ranking, metric)
        return None if value is None else value + 1e-6

    compared, _, lines = differences(off, only="ndcg.trec")
    undefined = sum(line.endswith("None") for line in lines)
    assert len(lines) + undefined == compared - sum(
        case["values"][text] is None
        for case in json.loads(conformance.CASES.read_text(encoding="utf-8"))["cases"]
        for text in case["values"]
        if "ndcg.trec" in text
    )
    assert differences(lambda *_: None, only="recall.coverage")[2]
    assert differences(lambda *_: math.nan, only="recall.coverage")[2]


def test_the_script_alone(tmp_path: Path) -> None:
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    (tmp_path / "mine.py").write_text(code[1], encoding="utf-8")
    # With -S no installed package can be imported.
    command = [sys.executable, "-S", str(CHECK), "mine:score"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"$ python docs/conformance/check.py mine:score\n{ended.stdout}" in page
    (tmp_path / "wrong.py").write_text("def score(truth, ranking, metric):\n    return 0.5\n", encoding="utf-8")
    command = [sys.executable, "-S", str(CHECK), "wrong:score", "--only", "mrr.trec"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "case 1: mrr.trec: expected 1.0, found 0.5" in ended.stdout

"""What is missing is named, and only what may be is left out of the count."""

from __future__ import annotations

from typing import Any

import pytest

from tests import coverage_floor
from tests.coverage_floor import FLOOR, NEEDS, ROOT, WHOLE, faults


def file(lines: int, branches: int, missing: list[int], jumps: list[list[int]]) -> dict[str, Any]:
    counts = {"covered_lines": lines - len(missing), "num_statements": lines}
    counts |= {"covered_branches": branches - len(jumps), "num_branches": branches}
    return {"summary": counts, "missing_lines": missing, "missing_branches": jumps}


def test_what_figures_come_from_is_reached_whole() -> None:
    found, rest = faults(
        {
            "files": {
                "/somewhere/groupgt/metrics/sets.py": file(9, 4, [3, 7], [[3, 4], [5, -1], [6, 8]]),
                "groupgt/model/policy.py": file(5, 2, [], []),
                "groupgt/options.py": file(80, 20, [1], [[2, 3]]),
            }
        }
    )
    assert found == [f"groupgt/metrics/sets.py:{place}: not reached" for place in ("3", "5→exit", "6→8", "7")]
    assert rest == f"98.0 % of the lines and branches of 1 other modules (at least {FLOOR} %)"


@pytest.mark.parametrize(("missing", "is_fault"), [(range(10), False), (range(11), True)])
def test_the_rest_is_held_together(missing: range, is_fault: bool) -> None:
    files = {"groupgt/cli/main.py": file(40, 10, [*missing], []), "groupgt/options.py": file(40, 10, [], [])}
    found, _ = faults({"files": files})
    assert len(found) == is_fault
    assert not is_fault or found[0].startswith("groupgt/cli/main.py: 78.0 %, missing 0, 1, 2")


def test_what_needs_what_is_not_here_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    report = {"files": {"groupgt/engines/spark/steps.py": file(10, 0, [*range(10)], [])}}
    monkeypatch.setattr(coverage_floor, "is_here", lambda need: need != "java")
    assert faults(report)[0] == []
    monkeypatch.setattr(coverage_floor, "is_here", lambda need: True)
    assert len(faults(report)[0]) == 1


def test_the_modules_named_are_there() -> None:
    for pattern in (*WHOLE, *NEEDS):
        assert list(ROOT.glob(pattern)), pattern

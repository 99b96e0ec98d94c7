"""Mutants are the changes one expects, by lasting names; code is changed in living functions as if read anew."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.mutants import mutants

SOURCE = '''
"""A module."""
LIMIT: int = 5


def worth(values, kind="linear"):
    """What it is worth."""
    total = 0
    for value in values:
        if value > LIMIT and kind != "none":
            continue
        total += -value * 2
    print("a message")
    return total
'''


def test_every_change_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    names = [mutant.name for mutant in mutants(tmp_path / "module.py")]
    assert names == [
        "module: 5 → 6",
        "worth: 0 → 1",
        "worth: if value > LIMIT and kind != 'none' → if not (value > LIMIT and kind != 'none')",
        "worth: value > LIMIT and kind != 'none' → value > LIMIT or kind != 'none'",
        "worth: value > LIMIT and kind != 'none' → kind != 'none'",
        "worth: value > LIMIT and kind != 'none' → value > LIMIT",
        "worth: value > LIMIT → value >= LIMIT",
        "worth: kind != 'none' → kind == 'none'",
        "worth: kind != 'none' → kind != 'none?'",
        "worth: continue → break",
        "worth: total += -value * 2 → total -= -value * 2",
        "worth: -value * 2 → -value / 2",
        "worth: -value → value",
        "worth: 2 → 3",
        "worth: print('a message') → pass",
    ]


def test_a_mutant_differs_and_runs(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    worths = set()
    for mutant in mutants(tmp_path / "module.py"):
        scope: dict[str, object] = {"print": lambda text: None}
        exec(compile(mutant.tree, "module.py", "exec"), scope)
        worths.add(scope["worth"]([1, 6, 5]))  # type: ignore[operator]
    assert len(worths) > 5


LIVING = """
def outer(step):
    def inner(value):
        return value + step

    return inner


kept = outer(2)


class Kind:
    def twice(self, value):
        return max((one * 2 for one in (value,)), key=lambda one: one - 1)


def unused(step):
    return lambda value: value < 1 and step
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the search needs an operating system that forks")
def test_living_functions_are_changed(tmp_path: Path) -> None:
    """A closure that was made before and a method are changed in place; what has other closures is not."""
    from tests.mutation.warm import change

    path = tmp_path / "living.py"
    path.write_text(LIVING)

    def read() -> ModuleType:
        spec = importlib.util.spec_from_file_location("living", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    by_name = {mutant.name: mutant for mutant in mutants(path)}
    values: dict[str, Callable[[ModuleType], int]] = {
        "outer.inner: value + step → value - step": lambda module: module.kept(5),  # 5 + 2 becomes 5 − 2
        "Kind.twice: one * 2 → one / 2": lambda module: module.Kind().twice(6),  # 6 · 2 becomes 6 ÷ 2
        "Kind.twice: 2 → 3": lambda module: module.Kind().twice(1),  # 1 · 2 becomes 1 · 3
    }
    for name, value in values.items():
        module = read()
        before = value(module)
        assert change(path, by_name[name])
        assert (before, value(module)) in ((7, 3), (12, 3), (2, 3))
    # The function inside loses `step`: a function that lives cannot.
    assert not change(path, by_name["unused: value < 1 and step → value < 1"])

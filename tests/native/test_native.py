"""The compiled module: what it returns, what it leaves to Python, and when it is used at all."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt import native
from tests.native import fuzz

ROOT = Path(native.__file__).parent.parent
needs_module = pytest.mark.skipif(native.built is None, reason="groupgt._native is not built, or turned off")


@pytest.fixture
def module() -> ModuleType:
    assert native.built is not None
    return native.built


def numbers(data: bytes) -> list[int]:
    return np.frombuffer(data, np.int64).tolist()


@needs_module
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.property) for seed in (1, 2, 3))])
def test_random_input_against_python(module: ModuleType, seed: int) -> None:
    fuzz.run(module, seed, 40 if seed == 0 else 200)


@needs_module
def test_lists_that_another_thread_changes(module: ModuleType) -> None:
    fuzz.check_threads(module, random.Random(1))


@needs_module
def test_an_index_says_what_it_read(module: ModuleType) -> None:
    ids, groups, sizes, grades, firsts, _ = module.index(["q", "r"], [[["a", "b"], ("a",)], []], 1)
    assert ids == ["a", "b", "a"]
    assert numbers(groups) == [2, 0]
    assert numbers(sizes) == [2, 1]
    assert grades is None
    assert numbers(firsts) == [0, 1, 0]


@needs_module
def test_an_index_of_grades_says_what_it_read(module: ModuleType) -> None:
    ids, groups, sizes, grades, firsts, _ = module.index(["q", "r"], [{"a": 1, "b": -0.5}, {}], 1)
    assert (ids, numbers(groups), numbers(sizes), numbers(firsts)) == (["a", "b"], [2, 0], [1, 1], [0, 1])
    assert np.frombuffer(grades).tolist() == [1.0, -0.5]


@needs_module
@pytest.mark.parametrize(
    "rows",
    [
        [{"a": True}],
        [{"a": "1"}],
        [{"a": None}],
        [{"a": float("nan")}],
        [{"a": 2**53}],
        [{1: 1}],
        [{"": 1}],
        [{"a": 1}, []],
        [[], {}],
        [OrderedDict(a=1)],
    ],
)
def test_grades_that_are_not_plain_are_left_to_python(module: ModuleType, rows: list[object]) -> None:
    assert module.index([f"q{number}" for number in range(len(rows))], rows, 1) is None


@needs_module
@pytest.mark.parametrize("truth", [{"q": [["a", "b"], ["c"]]}, {"q": {"a": 1, "c": 0}}])
def test_ground_truth_is_indexed_once(module: ModuleType, monkeypatch: pytest.MonkeyPatch, truth: Any) -> None:
    indexed = []

    def index(*arguments: Any) -> Any:
        indexed.append(arguments)
        return module.index(*arguments)

    monkeypatch.setattr(native, "built", SimpleNamespace(index=index, plain=module.plain, probe=module.probe))
    assert groupgt.evaluate(truth, {"q": ["a", "x", "c"]}, ["hit_rate@2", "ndcg@3"])["hit_rate@2"] == 1
    assert len(indexed) == 1


@needs_module
@pytest.mark.parametrize(
    "row",
    [
        "ab",
        ["a"],
        [[]],
        [["a", 1]],
        [["a", None]],
        [[""]],
        [[" "]],
        [["a\0"]],
        [["a\tb"]],
        [["\x7f"]],
        [["\x85"]],
        [["\u2028"]],
        [["\ufeffa"]],
        [["\ud800"]],
        [["a" * 65537]],
        [[fuzz.Text("a")]],
        [{"alternatives": ["a"]}],
    ],
)
def test_what_is_not_plain_is_left_to_python(module: ModuleType, row: object) -> None:
    assert module.index(["q"], [row], 1) is None
    index = module.index(["q"], [[["a"]]], 1)[-1]
    for cell in row if isinstance(row, list) else []:
        if cell != "a" and cell != []:
            lengths, hits = module.probe({"q": cell}, None, ["q"], index, True, False)
            assert (numbers(lengths), hits) == ([-2], b"")


@needs_module
def test_equal_scores_go_by_id_or_as_given(module: ModuleType) -> None:
    index = module.index(["q"], [[["a", "b"]]], 1)[-1]
    ranking = {"q": {"a": 1.0, "x": 2, "b": 1, "c": 1.0}}
    assert numbers(module.probe(ranking, None, ["q"], index, True, False)[1]) == [0, 1, 3, 2, 4, 0, 0, 4, 2, 4]
    assert numbers(module.probe(ranking, None, ["q"], index, False, False)[1]) == [0, 0, 2, 2, 4, 0, 1, 3, 2, 4]


@needs_module
def test_short_ids_that_differ_are_not_taken_for_duplicates(module: ModuleType) -> None:
    index = module.index(["q"], [[["a"]]], 1)[-1]
    names = [str(number) for number in range(100_000)] + list("abcdefghijklmnopqrstuvwxyz")
    names += [one + other for one in names[-26:] for other in names[-26:]]
    lengths, _ = module.probe({"q": names}, None, ["q"], index, True, True)
    assert numbers(lengths) == [len(names)]


@needs_module
def test_results_that_must_be_distinct_and_may_not_be_are_left_to_python(module: ModuleType) -> None:
    index = module.index(["p", "q", "r"], [[["a"]]] * 3, 1)[-1]
    rankings = {"p": [f"x{number}" for number in range(99)] + ["a"], "q": ["b", "a", "b"], "r": {"b": 1.0, "a": 2.0}}
    lengths, hits = module.probe(rankings, None, ["p", "q", "r"], index, True, True)
    assert numbers(lengths) == [100, native.NOT_PLAIN, 2]
    assert numbers(hits) == [0, 0, 100, 100, 100, 2, 2, 1, 1, 1]


@needs_module
def test_tuples_and_doubles_of_numpy_are_plain(module: ModuleType) -> None:
    index = module.index(["p", "q", "r"], [[["a"]]] * 3, 1)[-1]
    rankings = {"p": ("b", "a"), "q": {"b": np.float64(2), "a": np.float64(1)}, "r": (("b", 1), ["a", np.float64(2)])}
    assert numbers(module.probe(rankings, None, ["p", "q", "r"], index, True, False)[0]) == [2, 2, 2]
    assert numbers(module.probe({"p": {"a": np.float64("nan")}}, None, ["p", "q", "r"], index, True, False)[0])[0] == -2


@needs_module
def test_ids_beyond_ascii_leave_no_copy_of_themselves(module: ModuleType) -> None:
    truth = [f"문서_{number}" for number in range(100)]
    results = [f"문서_{number}" for number in range(100)]
    before = sum(map(sys.getsizeof, truth + results))
    index = module.index(["질문"], [[truth]], 1)[-1]
    lengths, hits = module.probe({"질문": results}, None, ["질문"], index, True, False)
    assert numbers(lengths) == [100]
    assert len(hits) == 100 * 40
    # The first that each call meets keeps a copy.
    assert sum(map(sys.getsizeof, truth + results)) - before < 3 * 20


@needs_module
@pytest.mark.faults
def test_a_line_of_a_hundred_megabytes(module: ModuleType) -> None:
    index = module.index(["q"], [[["a"]]], 1)[-1]
    line = b"q Q0 a 1 1 t\n"
    for odd in (b"x" * 10**8, b"q Q0 " + b"x" * 10**8 + b" 1 1 t", b"q Q0 a 1 " + b"1" * 10**8 + b" t"):
        assert module.scan(line + odd + b"\n" + line, index, native.WHOLE, True, 0, b"")[2] == len(line)
    hits, segments, doubt = module.scan(line + b"q Q0 b 2 0 " + b"t" * 10**8, index, native.WHOLE, True, 0, b"")
    assert (numbers(hits), numbers(segments), doubt) == ([0, 0, 1, 1, 1], [0, 2, 0, 1, 0], -1)


@needs_module
def test_other_threads_run_while_bytes_are_scanned(module: ModuleType) -> None:
    index = module.index(["q"], [[["a"]]], 1)[-1]
    data = b"q Q0 a 1 1 t\n" * 1_000_000
    thread = threading.Thread(target=module.scan, args=(data, index, native.FIRST, True, 0, b""))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    assert turns > 100


@needs_module
def test_few_lines() -> None:
    assert len(native.SOURCE.read_text(encoding="utf-8").splitlines()) <= 1100


def imported(folder: Path, **environ: str) -> str:
    """Whether a copy of the package, in a process of its own, uses the module."""
    code = "from groupgt import native; print(native.built is not None)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@needs_module
def test_a_module_of_another_source_is_not_used(tmp_path: Path) -> None:
    for name in ("__init__.py", "native.py", "_native.c"):
        (tmp_path / "groupgt").mkdir(exist_ok=True)
        shutil.copy(ROOT / "groupgt" / name, tmp_path / "groupgt")
    assert imported(tmp_path) == "False"
    assert native.built is not None
    shutil.copy(str(native.built.__file__), tmp_path / "groupgt")
    assert imported(tmp_path) == "True"
    assert imported(tmp_path, GROUPGT_NATIVE="0") == "False"
    with (tmp_path / "groupgt" / "_native.c").open("a") as file:
        file.write("/* changed */\n")
    assert imported(tmp_path) == "False"

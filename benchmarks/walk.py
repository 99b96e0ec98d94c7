"""How far a call walks: functions and modules of groupgt on its road, and how often a call leads to another room.

    python benchmarks/walk.py

`groupgt.evaluate` on two dicts, the same as a command on files, and `run` of a small experiment, each in this process
after one call that has imported everything. A room is a folder of the package, or a file beside them. Functions with a
name are counted once (no comprehensions and lambdas), calls that change the room each time; those that C code makes (a
sort's key, say) lead from where the C code was called.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PACKAGE = str(ROOT / "groupgt") + os.sep
FIRST = ROOT / "examples" / "first"
EVALUATE = ["evaluate", str(FIRST / "truth.jsonl"), str(FIRST / "bm25.trec"), "-m", "recall@5"]


def room(file: str) -> str:
    """The folder of the package that a file is in, or its own name; empty for files of others."""
    return file.removeprefix(PACKAGE).split(os.sep)[0] if file.startswith(PACKAGE) else ""


def walk(work: Callable[[], object]) -> tuple[int, int, int]:
    """The numbers of functions and modules that some work calls, and of calls that change the room."""
    functions: set[tuple[str, str]] = set()
    changes = 0

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal changes
        code = frame.f_code
        here = room(code.co_filename)
        if event != "call" or not here:
            return
        if not code.co_name.startswith("<"):
            functions.add((code.co_filename, code.co_qualname))
        caller = frame.f_back
        while caller is not None and not room(caller.f_code.co_filename):
            caller = caller.f_back
        changes += caller is not None and room(caller.f_code.co_filename) != here

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(functions), len({file for file, _ in functions}), changes


def two_dicts() -> object:
    """An evaluation of data in memory."""
    import groupgt

    truth = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
    return groupgt.evaluate(truth, {"q1": ["a", "x", "b"], "q2": ["d"]}, ["recall"])


def command(arguments: Sequence[str]) -> Callable[[], object]:
    """A command, whose words go nowhere."""

    def work() -> None:
        from groupgt.cli.main import main

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(arguments)

    return work


def main() -> None:
    """Prints all walks."""
    from tabulate import tabulate

    with tempfile.TemporaryDirectory() as folder:
        run = ["run", str(ROOT / "configs" / "quickstart.yaml"), "--output", folder, "--refresh"]
        rows = []
        for name, work in (
            ("groupgt.evaluate", two_dicts),
            ("evaluate", command(EVALUATE)),
            ("run", command(run)),
        ):
            work()
            rows.append([name, *walk(work)])
    print(tabulate(rows, ["call", "functions", "modules", "changes of room"]))


if __name__ == "__main__":
    main()

"""How far a command walks: functions of groupgt that it calls, and how often a call leads from one room to another.

    python benchmarks/walk.py

`evaluate` on four queries and `run` of a small experiment, each in this process after one call that has imported
everything. A room is a folder of the package, or a file beside them. Functions are counted once, calls that change the
room each time; those that C code makes (a sort's key, say) lead from where the C code was called.
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


def walk(work: Callable[[], object]) -> tuple[int, int]:
    """The number of functions that some work calls, and of calls that change the room."""
    functions: set[tuple[str, int, str]] = set()
    changes = 0

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal changes
        code = frame.f_code
        here = room(code.co_filename)
        if event != "call" or not here:
            return
        functions.add((code.co_filename, code.co_firstlineno, code.co_qualname))
        caller = frame.f_back
        while caller is not None and not room(caller.f_code.co_filename):
            caller = caller.f_back
        changes += caller is not None and room(caller.f_code.co_filename) != here

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(functions), changes


def command(arguments: Sequence[str]) -> Callable[[], object]:
    """A command, whose words go nowhere."""

    def work() -> None:
        from groupgt.cli.main import main

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(arguments)

    return work


def main() -> None:
    """Prints both walks."""
    from tabulate import tabulate

    with tempfile.TemporaryDirectory() as folder:
        run = ["run", str(ROOT / "configs" / "quickstart.yaml"), "--output", folder, "--refresh"]
        rows = []
        for name, arguments in (("evaluate", EVALUATE), ("run", run)):
            work = command(arguments)
            work()
            rows.append([name, *walk(work)])
    print(tabulate(rows, ["command", "functions", "changes of room"]))


if __name__ == "__main__":
    main()

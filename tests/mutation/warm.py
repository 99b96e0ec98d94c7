"""Mutants in a process that has imported and collected everything: a fork changes the code of living functions.

What importing a module does cannot be changed so; the command starts anew for it.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.mutation.mutants import Mutant

# No mutant may take more of the machine.
MEMORY = 16 << 30
# The status of a child that cannot change the code in place.
COLD = 77


def forked(work: Callable[[], int], limit: float) -> str:
    """What came of work in a child: `passed`, `failed`, `late`, or `cold` where it says so.

    The limit is of CPU: a machine that is busy with other things makes no mutant slow. What waits forever ends by the
    clock, much later.
    """
    end = time.monotonic() + 20 * limit
    child = os.fork()
    if child == 0:
        code = 2
        with contextlib.suppress(BaseException):
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
            with contextlib.suppress(ValueError, OSError):  # not every system limits memory
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = work()
        os._exit(code)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "passed", COLD: "cold", -signal.SIGXCPU: "late", -signal.SIGKILL: "late"}.get(code, "failed")
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "late"


def silence() -> None:
    """Sends what this process prints nowhere, unless MUTATION_SHOWS is set."""
    if not os.environ.get("MUTATION_SHOWS"):
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)


def change(path: Path, mutant: Mutant) -> bool:
    """Gives the living functions of a file the code of a mutant; False where that cannot be done."""
    before = compile(ast.parse(path.read_text(encoding="utf-8")), str(path), "exec")
    pairs = list(_pairs(before, compile(mutant.tree, str(path), "exec")))
    new = {_place(old): new for old, new in pairs if old != new and new is not None}
    if any(new is None or old.co_freevars != new.co_freevars for old, new in pairs):
        return False
    for function in gc.get_objects():
        # isinstance() raises for a weak proxy whose object is gone.
        if type(function) is FunctionType and function.__code__.co_filename == str(path):
            function.__code__ = new.get(_place(function.__code__), function.__code__)
    return True


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """The code of every function before and after; None where one is gone."""
    yield old, new
    inner = [[const for const in code.co_consts if isinstance(const, CodeType)] for code in (old, new)]
    if [code.co_name for code in inner[0]] != [code.co_name for code in inner[1]]:
        yield old, None
    for one, other in zip(*inner):
        yield from _pairs(one, other)


def _place(code: CodeType) -> tuple[Any, ...]:
    return (code.co_qualname, code.co_firstlineno, *code.co_positions())


class Session:
    """Calls `trial` in place of the loop over the tests, with a function: it runs named tests, says 1 if one fails."""

    def __init__(self, trial: Callable[[Callable[[Sequence[str]], int]], None]) -> None:
        self.trial = trial

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}

        def passes(names: Sequence[str]) -> int:
            wanted = [items[name] for name in names]
            for item, following in zip(wanted, [*wanted[1:], None]):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    return 1
            return 0

        self.trial(passes)
        return True


class Measured:
    """Tells what measures coverage which test runs, and takes the time of each."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.coverage.switch_context(item.nodeid)
        before = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = sum(os.times()[:4]) - before
            self.coverage.switch_context("")


class Unshrunk:
    """Lets hypothesis end at the first example that fails."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        settings.register_profile("unshrunk", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("unshrunk")


class Ordered:
    """Runs the tests in the order of a list, and those that it lacks at the end."""

    def __init__(self, names: Sequence[str]) -> None:
        self.places = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.places.get(item.nodeid, len(self.places)))


def pytest_run(tests: Sequence[str], options: Sequence[str], plugin: object) -> int:
    """pytest in this process, with nothing that is not needed."""
    quiet = ["-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
    # What is imported already is not rewritten.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*tests, *quiet, *options], plugins=[plugin, Unshrunk()]))


def imported() -> list[str]:
    """The modules of others that this process has imported."""
    return [
        name for name in sys.modules if name.partition(".")[0] not in ("groupgt", "tests", "__main__", "__mp_main__")
    ]

"""Runs the tests that concern a module against its mutants, each in a process of its own.

A process that has imported pytest, hypothesis and NumPy forks one child for each mutant; there the module is the
changed one, whoever imports it. Only tests that reach the changed lines are run, as coverage.py tells of the original.
Needs an operating system that forks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

if sys.platform != "win32":
    import resource

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
# No mutant may take more of the machine.
MEMORY = 16 << 30
SURVIVORS = Path(__file__).with_name("survivors.toml")
METRICS = ("tests/metrics", "tests/goldens", "tests/test_reference.py", "tests/test_agreement.py", "tests/laws")
VALIDITY = ("tests/model", "tests/formats")
# The tests that concern a module or a folder, the quickest first; else those of the same name.
CONCERNED: dict[str, tuple[str, ...]] = {
    "groupgt/metrics": METRICS,
    "groupgt/model/policy.py": ("tests/model/test_policy.py",),
    "groupgt/model/validity.py": VALIDITY,
    "groupgt/formats/validity.py": VALIDITY,
    "groupgt/labellers": ("tests/labellers",),
    "groupgt/comparison": ("tests/comparison",),
}


def concerned(module: str) -> tuple[str, ...]:
    """The tests that concern a module."""
    path = Path(module)
    own = ROOT / "tests" / path.parent.name / f"test_{path.stem}.py"
    by_name = (str(own.relative_to(ROOT)),) if own.exists() else ()
    return CONCERNED.get(module) or CONCERNED.get(path.parent.as_posix()) or by_name


@dataclass(frozen=True)
class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and gives it other code."""

    name: str
    path: str
    code: CodeType

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=self.path)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def run(module: str, mutant: Mutant | None, tests: Sequence[str], seed: int, limit: float) -> tuple[str, float]:
    """`passed`, `failed` or `timed out`, and the seconds of CPU taken, of the tests; without a mutant, of the original.

    The limit is of CPU: a machine that is busy with other things makes no mutant slow. What waits forever ends by the
    clock, much later.
    """
    before, end = _cpu(), time.monotonic() + 20 * limit
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
            with contextlib.suppress(ValueError, OSError):  # not every system limits memory
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            _in_child(module, mutant)
            code = _tests(tests, seed)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code, taken = os.waitstatus_to_exitcode(status), _cpu() - before
            # 5: no test was there to run.
            if code == 5:
                sys.exit(f"{' '.join(tests)}: there is no test")
            late = code in (-signal.SIGXCPU, -signal.SIGKILL) and taken >= limit
            return "timed out" if late else "passed" if code == 0 else "failed", taken
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out", _cpu() - before


@dataclass(frozen=True)
class Original:
    """How the tests are without mutants.

    `reached` has the tests that reach a line, by module and line; "" is what imports it. Empty without coverage.py.
    """

    passed: bool
    seconds: float
    reached: dict[str, dict[int, list[str]]]


def original(modules: Sequence[str], tests: Sequence[str], seed: int) -> Original:
    """Runs the tests, and looks which lines they reach."""
    if importlib.util.find_spec("coverage") is None:
        outcome, seconds = run(modules[0], None, tests, seed, 3600)
        return Original(outcome == "passed", seconds, {})
    with tempfile.NamedTemporaryFile() as kept:
        before, child = _cpu(), os.fork()
        if child == 0:
            code = 2
            with contextlib.suppress(BaseException):
                os.setsid()
                _in_child(modules[0], None)
                import coverage

                files = [str(ROOT / module) for module in modules]
                measured = coverage.Coverage(data_file=None, config_file=False, include=files)
                measured.start()
                code = _tests(tests, seed, [Contexts(measured)])
                measured.stop()
                lines = [measured.get_data().contexts_by_lineno(file) for file in files]
                Path(kept.name).write_text(json.dumps(lines), encoding="utf-8")
            os._exit(code)
        _, status = os.waitpid(child, 0)
        lines = json.loads(Path(kept.name).read_text(encoding="utf-8") or "[]")
    by_module = {module: {int(line): names for line, names in found.items()} for module, found in zip(modules, lines)}
    return Original(os.waitstatus_to_exitcode(status) == 0, _cpu() - before, by_module)


class Contexts:
    """Tells what measures coverage which test runs."""

    def __init__(self, measured: Any) -> None:
        self.measured = measured

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        # One for all of its parameters: a name may hold what no command line takes.
        self.measured.switch_context(item.nodeid.partition("[")[0])
        try:
            return (yield)
        finally:
            self.measured.switch_context("")


def _cpu() -> float:
    """The seconds of CPU that children have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tests(tests: Sequence[str], seed: int, plugins: Sequence[object] = ()) -> int:
    # What is imported already is not rewritten.
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    quiet += ["-p", "_hypothesis_pytestplugin"]
    return int(pytest.main([*tests, *quiet, f"--hypothesis-seed={seed}"], plugins=list(plugins)))


def _in_child(module: str, mutant: Mutant | None) -> None:
    if not os.environ.get("MUTATION_SHOWS"):
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
    if mutant is not None:
        name = module.removesuffix(".py").replace("/", ".")
        sys.meta_path.insert(0, Changed(name, str(ROOT / module), compile(mutant.tree, str(ROOT / module), "exec")))


def ways(mutant: Mutant, reached: dict[int, list[str]] | None, tests: Sequence[str]) -> list[list[str]]:
    """What is run against a mutant, until something fails: the tests that reach it, a file at a time in the order of
    `tests`, and all of them where importing reaches it.
    """
    if not reached:
        return [[*tests]]
    names = {name for line in mutant.lines for name in reached.get(line, [])}
    files: dict[str, list[str]] = {}
    for test in tests:
        for name in sorted(names):
            own = files.setdefault(name.partition("::")[0], []) if name.startswith(test) else []
            own += [name] if name not in own else []
    return [*filter(None, files.values()), *([[*tests]] if "" in names else [])]


def explained(module: str) -> dict[str, str]:
    """The mutants that survive for a reason."""
    kept = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))
    return {each["mutant"]: each["why"] for each in kept.get("survivor", []) if each["module"] == module}


def survivors(module: str, mutated: Sequence[Mutant], tests: Sequence[str], first: Original, options: Any) -> int:
    """Tries the mutants of one module, and says what came of it; how many survived."""
    known = explained(module)
    wanted = [each for each in mutated if each.name not in known]
    random.Random(options.seed).shuffle(wanted)
    counts = dict.fromkeys(("failed", "passed", "timed out"), 0)
    limit = max(20.0, 5 * first.seconds)
    own = [test for test in _files(tests) if Path(test).stem == f"test_{Path(module).stem}"]
    start = time.monotonic()
    for number, mutant in enumerate(wanted):
        if time.monotonic() > options.end:
            print(f"the budget is spent: {len(wanted) - number:,} mutants were not tried")
            break
        outcome = "passed"
        for way in ways(mutant, first.reached.get(module), [*own, *tests]):
            outcome, _ = run(module, mutant, way, options.seed, limit)
            if outcome != "passed":
                break
        counts[outcome] += 1
        if outcome == "passed":
            print(f"survived: {module}:{mutant.line}: {mutant.name}", flush=True)
    tried = sum(counts.values())
    print(
        f"{module}: {tried:,} of {len(mutated):,} mutants tried in {time.monotonic() - start:.0f} s "
        f"(seed {options.seed}): "
        f"{tried - counts['passed']:,} killed ({counts['timed out']:,} by time), {counts['passed']:,} survived; "
        f"{len(known):,} more are explained in {SURVIVORS.name}",
        flush=True,
    )
    return counts["passed"]


def _files(tests: Sequence[str]) -> list[str]:
    """The files of tests."""
    found = []
    for test in tests:
        path = ROOT / test
        found += [test] if path.is_file() else [str(each.relative_to(ROOT)) for each in sorted(path.rglob("test_*.py"))]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", required=True, action="append", help="groupgt/metrics/sets.py, or a folder")
    parser.add_argument("--budget", type=float, default=600, help="seconds (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of mutants, and of hypothesis (default: 0)")
    parser.add_argument("--tests", nargs="+", help="in place of those that concern the module")
    parser.add_argument("--only", help="mutants whose name holds this text")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    asked = parser.parse_args()
    os.chdir(ROOT)
    by_tests: dict[tuple[str, ...], dict[str, list[Mutant]]] = {}
    for module in _modules(asked.module):
        mutated = [each for each in mutants(ROOT / module) if asked.only is None or asked.only in each.name]
        tests = tuple(asked.tests or ()) or concerned(module) or sys.exit(f"{module}: name its tests with --tests")
        if mutated:
            by_tests.setdefault(tests, {})[module] = mutated
        if asked.list:
            print(*(f"{module}:{each.line}: {each.name}" for each in mutated), sep="\n")
    if asked.list:
        return 0
    # Imported once for all children; of pytest's plugins they need one.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("_hypothesis_pytestplugin", "hypothesis.strategies", "numpy"):
        importlib.import_module(name)
    asked.end = time.monotonic() + asked.budget
    count = 0
    for tests, modules in by_tests.items():
        first = original([*modules], tests, asked.seed)
        if not first.passed:
            sys.exit(f"{' '.join(tests)}: the tests fail already")
        for module, mutated in modules.items():
            count += survivors(module, mutated, tests, first, asked)
    return int(count > 0)


def _modules(named: Sequence[str]) -> list[str]:
    """The modules of files and folders."""
    paths = [Path(name) for name in named]
    return [each.as_posix() for path in paths for each in ([path] if path.is_file() else sorted(path.rglob("*.py")))]


if __name__ == "__main__":
    sys.exit(main())

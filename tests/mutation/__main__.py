"""Runs the tests that concern a module against its mutants, each in a process of its own.

A process that has imported pytest, hypothesis and NumPy forks one child for each mutant; there the module is the
changed one, whoever imports it. Needs an operating system that forks.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
import tomllib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.toml")
METRICS = ("tests/metrics", "tests/goldens", "tests/test_reference.py", "tests/test_agreement.py", "tests/laws")
# The tests that concern a module or a folder, the quickest first; else those of the same name.
CONCERNED: dict[str, tuple[str, ...]] = {
    "groupgt/metrics/language.py": ("tests/metrics/test_language.py", "tests/metrics/test_catalogue.py", *METRICS),
    "groupgt/metrics": METRICS,
    "groupgt/model/policy.py": ("tests/model/test_policy.py",),
    "groupgt/model/validity.py": ("tests/model", "tests/formats"),
    "groupgt/labellers": ("tests/labellers",),
    "groupgt/comparison": ("tests/comparison",),
}


def concerned(module: str) -> list[str]:
    """The tests that concern a module, its own first."""
    path = Path(module)
    of_its_name = ROOT / "tests" / path.parent.name / f"test_{path.stem}.py"
    first = [str(of_its_name.relative_to(ROOT))] if of_its_name.exists() else []
    others = CONCERNED.get(module) or CONCERNED.get(str(path.parent)) or ()
    return list(dict.fromkeys([*first, *others])) or sys.exit(f"{module}: name its tests with --tests")


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
    """`passed`, `failed` or `timed out`, and the seconds taken, of the tests against a mutant (None: the original)."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setsid()
            _in_child(module, mutant)
            import pytest

            # What is imported already is not rewritten.
            quiet = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            quiet += ["-p", "_hypothesis_pytestplugin"]
            code = int(pytest.main([*tests, *quiet, f"--hypothesis-seed={seed}"]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    while time.monotonic() - start < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            # 5: no test was there to run.
            passed = os.waitstatus_to_exitcode(status)
            if passed == 5:
                sys.exit(f"{' '.join(tests)}: there is no test")
            return "passed" if passed == 0 else "failed", time.monotonic() - start
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out", time.monotonic() - start


def _in_child(module: str, mutant: Mutant | None) -> None:
    if not os.environ.get("MUTATION_SHOWS"):
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
    if mutant is not None:
        name = module.removesuffix(".py").replace("/", ".")
        sys.meta_path.insert(0, Changed(name, str(ROOT / module), compile(mutant.tree, str(ROOT / module), "exec")))


def explained(module: str) -> dict[str, str]:
    """The mutants that survive for a reason."""
    kept = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))
    return {each["mutant"]: each["why"] for each in kept.get("survivor", []) if each["module"] == module}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", required=True, help="such as groupgt/metrics/sets.py")
    parser.add_argument("--budget", type=float, default=600, help="seconds (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of mutants, and of hypothesis (default: 0)")
    parser.add_argument("--tests", nargs="+", help="in place of those that concern the module")
    parser.add_argument("--only", help="mutants whose name holds this text")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    asked = parser.parse_args()
    every = [each for each in mutants(ROOT / asked.module) if asked.only is None or asked.only in each.name]
    known = explained(asked.module)
    if asked.list:
        print(*(f"{asked.module}:{each.line}: {each.name}" for each in every), sep="\n")
        return 0
    os.chdir(ROOT)
    # Imported once for all children; of pytest's plugins they need one.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("_hypothesis_pytestplugin", "hypothesis.strategies", "numpy", "pytest"):
        importlib.import_module(name)

    tests, start = asked.tests or concerned(asked.module), time.monotonic()
    outcome, taken = run(asked.module, None, tests, asked.seed, 3600)
    if outcome != "passed":
        sys.exit(f"{' '.join(tests)}: the tests fail already")
    limit = max(20.0, 5 * taken)
    wanted = [each for each in every if each.name not in known]
    random.Random(asked.seed).shuffle(wanted)
    counts = dict.fromkeys(("failed", "passed", "timed out"), 0)
    for number, mutant in enumerate(wanted):
        if time.monotonic() - start > asked.budget:
            print(f"the budget is spent: {len(wanted) - number:,} mutants were not tried")
            break
        outcome, _ = run(asked.module, mutant, tests, asked.seed, limit)
        counts[outcome] += 1
        if outcome == "passed":
            print(f"survived: {asked.module}:{mutant.line}: {mutant.name}", flush=True)
    tried = sum(counts.values())
    print(
        f"{asked.module}: {tried:,} of {len(every):,} mutants tried in {time.monotonic() - start:.0f} s "
        f"(seed {asked.seed}): "
        f"{tried - counts['passed']:,} killed ({counts['timed out']:,} by time), {counts['passed']:,} survived; "
        f"{len(known):,} more are explained in {SURVIVORS.name}"
    )
    return int(counts["passed"] > 0)


if __name__ == "__main__":
    sys.exit(main())

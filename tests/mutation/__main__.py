"""Runs the tests that concern a module against its mutants, each in a process of its own.

A process that has imported and collected everything forks one child for each mutant; there the functions of the module
have the changed code. Only tests that reach the changed lines are run, as coverage.py tells of the original, the
quickest first. What is changed by importing the module needs a process that has not imported it yet: there the changed
module is imported, and all tests are run. Needs an operating system that forks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
METRICS = ("tests/metrics", "tests/goldens", "tests/test_reference.py", "tests/test_agreement.py", "tests/laws")
VALIDITY = ("tests/model", "tests/formats")
# The tests that concern a module or a folder; else those of the same name.
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


@dataclass(frozen=True)
class Original:
    """How the tests are without mutants.

    `reached` has the tests that reach a line, by module and line; "" is what imports it. `seconds` are of each test.
    """

    reached: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def concerned(self, module: str, mutant: Mutant) -> tuple[list[str], bool]:
        """The tests that reach a mutant, the quickest first, and whether importing reaches it."""
        names = {name for line in mutant.lines for name in self.reached[module].get(line, [])}
        return sorted(names - {""}, key=lambda name: self.seconds[name]), "" in names

    def limit(self, names: Sequence[str]) -> float:
        return max(10.0, 5 * sum(self.seconds[name] for name in names))


@dataclass(frozen=True)
class Trial:
    """The tests of some modules, run on the original and on mutants."""

    modules: dict[str, list[Mutant]]
    tests: tuple[str, ...]
    options: tuple[str, ...]
    end: float

    def original(self) -> Original:
        """Runs the tests, and looks which lines they reach; then imports what they imported of others."""
        import coverage

        from tests.mutation import warm

        with tempfile.NamedTemporaryFile() as kept:

            def work() -> int:
                warm.silence()
                files = {module: str(ROOT / module) for module in self.modules}
                measured = coverage.Coverage(data_file=None, config_file=False, include=[*files.values()])
                measured.start()
                self._import()
                plugin = warm.Measured(measured)
                code = warm.pytest_run(self.tests, self.options, plugin)
                measured.stop()
                data = measured.get_data()
                lines = {module: data.contexts_by_lineno(file) for module, file in files.items()}
                Path(kept.name).write_text(json.dumps([lines, plugin.seconds, warm.imported()]), encoding="utf-8")
                return code

            if warm.forked(work, 3600) != "passed":
                sys.exit(f"{' '.join(self.tests)}: the tests fail already; MUTATION_SHOWS=1 shows how")
            lines, seconds, others = json.loads(Path(kept.name).read_text(encoding="utf-8"))
        for name in others:
            with contextlib.suppress(BaseException), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)
        reached = {module: {int(line): names for line, names in of.items()} for module, of in lines.items()}
        return Original(reached, seconds)

    def _import(self) -> None:
        for module in self.modules:
            importlib.import_module(module.removesuffix(".py").replace("/", "."))

    def outcomes(self, first: Original) -> Iterator[tuple[str, int, str]]:
        """What came of each mutant, as module, place and outcome."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with contextlib.suppress(BaseException), os.fdopen(write, "w") as said:
                self._warm(first, said)
            os._exit(0)
        os.close(write)
        cold: list[tuple[str, int]] = []
        with os.fdopen(read) as lines:
            for line in lines:
                module, place, outcome = line.split()
                if outcome == "cold":
                    cold.append((module, int(place)))
                elif outcome == "broken":
                    sys.exit(f"{' '.join(self.tests)}: the tests fail where all of them are imported first")
                else:
                    yield module, int(place), outcome
        os.waitpid(child, 0)
        for module, place in cold:
            if time.monotonic() < self.end:
                yield module, place, self._cold(first, module, self.modules[module][place])

    def _warm(self, first: Original, said: Any) -> None:
        """Says of each mutant what came of it, or that it is for a cold start."""
        from tests.mutation import warm

        def trial(passes: Callable[[Sequence[str]], int]) -> None:
            every = sorted(first.seconds, key=lambda name: first.seconds[name])
            if warm.forked(lambda: passes(every), first.limit(every)) != "passed":
                print("all 0 broken", file=said, flush=True)
                return
            for module, mutated in self.modules.items():
                for place, mutant in enumerate(mutated):
                    if time.monotonic() > self.end:
                        return
                    names, imports = first.concerned(module, mutant)

                    def work(path: Path = ROOT / module, mutant: Mutant = mutant, names: list[str] = names) -> int:
                        return passes(names) if warm.change(path, mutant) else warm.COLD

                    outcome = "cold" if imports else warm.forked(work, first.limit(names))
                    print(module, place, outcome, file=said, flush=True)

        warm.silence()
        self._import()
        warm.pytest_run(self.tests, self.options, warm.Session(trial))

    def _cold(self, first: Original, module: str, mutant: Mutant) -> str:
        """What came of a mutant in a process that has imported nothing of the package."""
        from tests.mutation import warm

        reaching, _ = first.concerned(module, mutant)
        names = [*reaching, *sorted(first.seconds, key=lambda name: first.seconds[name])]

        def work() -> int:
            warm.silence()
            name, path = module.removesuffix(".py").replace("/", "."), str(ROOT / module)
            sys.meta_path.insert(0, Changed(name, path, compile(mutant.tree, path, "exec")))
            return warm.pytest_run(self.tests, self.options, warm.Ordered([*dict.fromkeys(names)]))

        return warm.forked(work, first.limit([*first.seconds]))


def survivors(trial: Trial, seed: int) -> int:
    """Tries the mutants of some modules, and says what came of it; how many survived."""
    start = time.monotonic()
    first = trial.original()
    counts = {module: dict.fromkeys(("failed", "passed", "late"), 0) for module in trial.modules}
    for module, place, outcome in trial.outcomes(first):
        counts[module][outcome] += 1
        if outcome == "passed":
            mutant = trial.modules[module][place]
            by = len(first.concerned(module, mutant)[0])
            print(f"survived: {module}:{mutant.line}: {mutant.name}  [{by} tests reach it]", flush=True)
    for module, mutated in trial.modules.items():
        of = counts[module]
        tried = sum(of.values())
        print(
            f"{module}: {tried:,} of {len(mutated):,} mutants tried (seed {seed}): "
            f"{tried - of['passed']:,} killed ({of['late']:,} by time), {of['passed']:,} survived"
        )
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    return sum(of["passed"] for of in counts.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", required=True, action="append", help="groupgt/metrics/sets.py, or a folder")
    parser.add_argument("--budget", type=float, default=600, help="seconds (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of mutants, and of hypothesis (default: 0)")
    parser.add_argument("--tests", nargs="+", help="in place of those that concern the module")
    parser.add_argument("--slow", action="store_true", help="run the tests marked `property` as well")
    parser.add_argument("--only", action="append", help="mutants whose name holds this text; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    asked = parser.parse_args()
    os.chdir(ROOT)
    by_tests: dict[tuple[str, ...], dict[str, list[Mutant]]] = {}
    for module in _modules(asked.module):
        every = mutants(ROOT / module)
        wanted = [one for one in every if not asked.only or any(text in one.name for text in asked.only)]
        if asked.list:
            print(*(f"{module}:{mutant.line}: {mutant.name}" for mutant in wanted), sep="\n")
            continue
        random.Random(asked.seed).shuffle(wanted)
        tests = tuple(asked.tests or ()) or concerned(module) or sys.exit(f"{module}: name its tests with --tests")
        if wanted:
            by_tests.setdefault(tests, {})[module] = wanted
    # Imported once for all children; of pytest's plugins they need one.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("_hypothesis_pytestplugin", "hypothesis.strategies", "numpy"):
        importlib.import_module(name)
    end = time.monotonic() + asked.budget
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--hypothesis-seed={asked.seed}", f"--basetemp={folder}/tests"]
        options += ["-m", "not faults"] if asked.slow else []
        for tests, modules in by_tests.items():
            count += survivors(Trial(modules, tests, tuple(options), end), asked.seed)
    return int(count > 0)


def _modules(named: Sequence[str]) -> list[str]:
    """The modules of files and folders."""
    paths = [Path(name) for name in named]
    return [each.as_posix() for path in paths for each in ([path] if path.is_file() else sorted(path.rglob("*.py")))]


if __name__ == "__main__":
    sys.exit(main())

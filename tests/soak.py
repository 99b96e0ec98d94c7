"""The same sweep over and over in one process: memory, open files, threads and temporary files must stay flat.

`python -m tests.soak --minutes 60`: every round retrieves, fuses, evaluates, compares and writes a result folder, every
third one in two processes. The first rounds fill caches and import what is needed; they are not judged.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from groupgt.report.run import run_experiment
from tests.experiment.conftest import SWEEP

WARM = 4
# What the allocator keeps and gives back from round to round.
NOISE = 0.05


@dataclass(frozen=True)
class Held:
    """What the process holds after a round: bytes of memory, open files, threads, files in the temporary folder."""

    memory: int
    handles: int
    threads: int
    temporary: int

    @classmethod
    def now(cls, folder: Path) -> Held:
        """As Linux tells it."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len(list(Path("/proc/self/fd").iterdir())),
            threading.active_count(),
            sum(1 for _ in folder.rglob("*")),
        )


def rounds(folder: Path) -> Iterator[Held]:
    """Runs the sweep without end; what is held after each round."""
    temporary, work = folder / "temporary", folder / "work"
    temporary.mkdir()
    work.mkdir()
    file = work / "sweep.yaml"
    file.write_text(SWEEP, encoding="utf-8")
    number = 0
    while True:
        # Another k1 each time, so that something is retrieved and the cache is read and written.
        changes = [f"systems.bm25.matrix.k1=[0.9, 1.2, {1.3 + number % 50 / 100:g}]"]
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_experiment(file, changes=changes, jobs=2 if number % 3 == 2 else 1)
        shutil.rmtree(work / "out")
        if number % 50 == 49:
            shutil.rmtree(work / "cache")
        number += 1
        yield Held.now(temporary)


def growth(held: list[Held]) -> list[str]:
    """What grew from the first half of the judged rounds to the second."""
    judged = held[WARM:]
    first, second = judged[: len(judged) // 2], judged[len(judged) // 2 :]
    found = []
    for what in ("handles", "threads", "temporary"):
        before, after = (max(getattr(each, what) for each in part) for part in (first, second))
        if after > before:
            found.append(f"{what}: {before} → {after}")
    before, after = (sorted(each.memory for each in part)[len(part) // 2] for part in (first, second))
    if after > before * (1 + NOISE):
        found.append(f"memory: {before / 1e6:.0f} → {after / 1e6:.0f} MB")
    return found


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder whose `temporary` is where this process and its workers put temporary files."""
    with tempfile.TemporaryDirectory() as name:
        before, tempfile.tempdir = tempfile.tempdir, str(Path(name) / "temporary")
        environment = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = tempfile.tempdir
        try:
            yield Path(name)
        finally:
            tempfile.tempdir = before
            os.environ.pop("TMPDIR")
            if environment is not None:
                os.environ["TMPDIR"] = environment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    asked = parser.parse_args()
    held: list[Held] = []
    end = time.monotonic() + 60 * asked.minutes
    with scratch() as folder:
        for each in rounds(folder):
            held.append(each)
            if time.monotonic() > end and len(held) >= 2 * WARM:
                break
    found = growth(held)
    first, last = held[WARM], held[-1]
    print(
        f"{len(held):,} rounds in {asked.minutes:g} min: memory {first.memory / 1e6:.0f} → {last.memory / 1e6:.0f} MB, "
        f"{first.handles} → {last.handles} open files, {first.threads} → {last.threads} threads, "
        f"{first.temporary} → {last.temporary} temporary files",
        *found,
        sep="\n",
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

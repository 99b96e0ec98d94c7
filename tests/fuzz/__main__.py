"""Mutated files, read by a strict parser and by every engine.

`python -m tests.fuzz --seconds 60 --seed 1 [--kind trec_run] [--keep]`. Files about which they disagree are kept, where
that is asked, in `tests/fuzz/kept`, which the suite reads again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.fuzz import files
from tests.fuzz.trial import trials

KEPT = Path(__file__).parent / "kept"


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kind", action="append", choices=[*files.RUNS, *files.TRUTHS])
    options.add_argument("--keep", action="store_true", help="Write the files at fault into tests/fuzz/kept.")
    given = options.parse_args()
    end = time.monotonic() + given.seconds
    count = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for _, found in trials(given.seed, Path(folder), given.kind):
            count += 1
            if found is not None:
                faults += 1
                print(found, flush=True)
                if given.keep:
                    KEPT.mkdir(exist_ok=True)
                    (KEPT / found.name).write_bytes(found.data)
            if time.monotonic() > end:
                break
    print(f"seed {given.seed}: {count:,} files, {faults:,} disagreements")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())

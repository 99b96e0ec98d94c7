"""Runs the blocks of pages that need other packages, each in its own environment.

Such a block follows `<!-- not run: in its own environment: PACKAGE… -->`, and the `text` block after it is what it
prints. An environment that cannot be made is left out, with its reason. `--keep FOLDER` keeps environments there and
uses them again; `--only WORD` runs the blocks whose packages contain it:
`python -m tests.docs.environments --only ragas`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT, Block, blocks

MARK = "in its own environment: "
# What a block may not reach: models and services.
OFFLINE = {"HF_HUB_OFFLINE": "1", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"}


def found() -> Iterator[tuple[str, Block, Block]]:
    """(page, block, what it prints) of every such block."""
    for path in PAGES:
        each = blocks(path.read_text(encoding="utf-8"))
        for block, after in zip(each, [*each[1:], None]):
            if block.note == "not run" and block.told.startswith(MARK):
                name = path.relative_to(ROOT).as_posix()
                assert after is not None, f"{name}: a block without what it prints"
                assert after.language == "text", f"{name}: a block without what it prints"
                yield name, block, after


def environment(folder: Path, packages: list[str]) -> Path | str:
    """The interpreter of an environment with groupgt and some packages, or why it cannot be made."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if python.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", "-q", "-e", str(ROOT), *packages]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return python if made.returncode == 0 else (made.stderr.strip().splitlines() or ["pip failed"])[-1]


def main() -> int:
    """Runs the blocks; 1 if one prints something else than its page says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, block, after in found():
            packages = shlex.split(block.told.removeprefix(MARK))
            if options.only not in " ".join(packages):
                continue
            title = packages[0].split("=")[0]
            python = environment((options.keep or Path(folder)) / title, packages)
            if isinstance(python, str):
                print(f"{name}: {' '.join(packages)} cannot be installed here: {python}")
                continue
            work = Path(tempfile.mkdtemp(dir=folder))
            command = [str(python), "-W", "ignore", "-c", block.text]
            run = subprocess.run(
                command, capture_output=True, text=True, cwd=work, env=os.environ | OFFLINE, check=False
            )
            same = run.returncode == 0 and run.stdout == after.text
            print(f"{name}: {' '.join(packages)}: {'as shown' if same else 'NOT as shown'}", flush=True)
            if not same:
                wrong += 1
                print(run.stdout + run.stderr[-2000:])
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

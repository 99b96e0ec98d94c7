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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT, Block, blocks

MARK = "in its own environment: "
# This checkout, also in an environment that was kept; and no models and services.
SETTINGS = {
    "PYTHONPATH": str(ROOT),
    "HF_HUB_OFFLINE": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "RAGAS_DO_NOT_TRACK": "true",
}


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


def environment(folder: Path, wheel: Path, packages: tuple[str, ...]) -> Path | str:
    """The interpreter of an environment with groupgt and some packages, or why it cannot be made."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if python.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    # A block imports a fraction of what is installed.
    command = [str(python), "-m", "pip", "install", "-q", "--no-compile", str(wheel), *packages]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return python if made.returncode == 0 else (made.stderr.strip().splitlines() or ["pip failed"])[-1]


def outcome(python: Path | str, name: str, block: Block, after: Block) -> tuple[bool, str]:
    """Whether a block prints what its page says, or has no environment; and the line that says so."""
    title = f"{name}: {' '.join(packages_of(block))}"
    if isinstance(python, str):
        return True, f"{title} cannot be installed here: {python}"
    command = [str(python), "-W", "ignore", "-c", block.text]
    with tempfile.TemporaryDirectory() as work:
        run = subprocess.run(command, capture_output=True, text=True, cwd=work, env=os.environ | SETTINGS, check=False)
    if run.returncode == 0 and run.stdout == after.text:
        return True, f"{title}: as shown"
    return False, f"{title}: NOT as shown\n{run.stdout}{run.stderr[-2000:]}"


def packages_of(block: Block) -> tuple[str, ...]:
    """The packages that a block needs."""
    return tuple(shlex.split(block.told.removeprefix(MARK)))


def main() -> int:
    """Makes the environments, several at a time, and runs the blocks; 1 if one prints anything but what is shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = [each for each in found() if options.only in " ".join(packages_of(each[1]))]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(build, check=True)
        [wheel] = Path(folder).glob("*.whl")
        # Pages may share an environment.
        made = {
            packages: pool.submit(
                environment, (options.keep or Path(folder)) / packages[0].split("=")[0], wheel, packages
            )
            for packages in dict.fromkeys(packages_of(block) for _, block, _ in chosen)
        }
        wrong = 0
        for each in chosen:
            is_right, text = outcome(made[packages_of(each[1])].result(), *each)
            wrong += not is_right
            print(text, flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""The guide to Ray and Dask shows its examples as they are, and they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "ray-and-dask.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- (\w+) -->\n```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = {"ray_batches": ("ray", "pyarrow"), "dask_partitions": ("dask", "pandas", "pyarrow")}


def test_every_block_says_where_it_is_from() -> None:
    assert len(BLOCKS) == TEXT.count("```python") >= 2
    assert {name for name, _ in BLOCKS} == set(EXAMPLES)


@pytest.mark.parametrize(("name", "block"), BLOCKS)
def test_blocks_are_parts_of_the_examples(name: str, block: str) -> None:
    """Each part between empty lines stands in the file, after the one before."""
    example = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    place = 0
    for part in re.split(r"\n{2,}", block.strip()):
        place = example.index(part, place) + len(part)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    for library in EXAMPLES[name]:
        pytest.importorskip(library, reason=f"{library} is not installed")
    # Ray keeps a token in the home folder, and would join a cluster that is named.
    given = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    path = os.pathsep.join(filter(None, [str(ROOT), given.get("PYTHONPATH")]))
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        env={**given, **home},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("recall@10") == 3

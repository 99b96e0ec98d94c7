"""The example of frames on clusters runs, and the page about large results shows parts of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "clusters.py"
PAGE = ROOT / "docs" / "how-to" / "large.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", "ray", "dask"])
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark" if name == "spark" else name, reason=f"{name} is not installed")
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("there is no Java")
    # Ray keeps a token in the home folder, and would join a cluster that is named.
    given = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    path = os.pathsep.join(filter(None, [str(ROOT), given.get("PYTHONPATH")]))
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLE, name],
        env={**given, **home, "RAY_raylet_start_wait_time_s": "120"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert re.search(r"^recall@10 +0\.5000 +2$", done.stdout, re.MULTILINE), done.stdout


def test_the_page_shows_parts_of_the_example() -> None:
    """Each part between empty lines stands in the file."""
    blocks = re.findall(r"```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    example = EXAMPLE.read_text(encoding="utf-8")
    assert blocks
    assert [part for block in blocks for part in re.split(r"\n{2,}", block.strip()) if part not in example] == []

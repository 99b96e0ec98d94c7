"""The examples of Ray and Dask run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {"ray_batches": ("ray", "pyarrow"), "dask_partitions": ("dask", "pandas", "pyarrow")}


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

"""The example of `docs/scale.md` runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_example_of_spark_runs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra groupgt[spark] is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scale.md").read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "shown.py"
    script.write_text(block + "\nprint('means', found.means)\nspark.stop()\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "means {'recall@10': 0.5, 'mrr.coverage': " in done.stdout

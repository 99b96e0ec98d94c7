"""What the pages under docs/ show is there, and runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_there_are_links_to_follow() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(LINK.findall(pages)) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


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

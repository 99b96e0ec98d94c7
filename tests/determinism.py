"""The bytes of one experiment's results; `python -m tests.determinism` prints their digests, for any Python."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
HANDBOOK = ROOT / "examples" / "handbook"
FILE = """\
version: 1
name: trial
seed: 7
convention: coverage
datasets:
  handbook: {{corpus: {corpus}, ground_truth: {questions}, where: {{split: test}}}}
systems:
  bm25: {{use: bm25, matrix: {{k1: [0.9, 1.6]}}}}
  rrf: {{use: rrf, inputs: ["bm25*"]}}
evaluate:
  k: [1, 10]
  metrics: [recall, mrr, map, ndcg, alpha_ndcg, err_ia]
  primary: ndcg@10
  by: [n_groups, type]
  timed: 0
compare: {{baseline: "bm25[k1=0.9]", resamples: 200}}
output: {{folder: out, formats: [markdown, json, csv, latex, parquet, runs]}}
"""
# What runs the command line, after something else has been imported or done.
RUN = "import sys; from groupgt.cli.main import main; main(['run', sys.argv[1]])"


# What tells times, which differ from run to run.
TIMED = ("timings.json", "report.html")


def digests(
    folder: Path, *, before: str = "", environment: dict[str, str] | None = None, corpus: Path | None = None
) -> dict[str, str]:
    """The files of a run in a process of its own, in a folder of its own, with what they hold."""
    folder.mkdir()
    file = folder / "trial.yaml"
    names = {
        "corpus": (corpus or HANDBOOK / "corpus.jsonl").as_posix(),
        "questions": (HANDBOOK / "questions.jsonl").as_posix(),
    }
    file.write_text(FILE.format(**names), encoding="utf-8")
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", before + RUN, str(file)],
        env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    newest = folder / "out" / "trial" / "latest"
    results = newest if newest.is_dir() else newest.parent / newest.read_text(encoding="utf-8").strip()
    written = sorted(path for path in results.rglob("*") if path.is_file() and path.name not in TIMED)
    return {path.relative_to(results).as_posix(): _digest(path) for path in written}


def _digest(path: Path) -> str:
    if path.name != "manifest.json":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    # A manifest tells when and with what it was made, and where from.
    manifest = json.loads(path.read_text(encoding="utf-8"))
    return ",".join(sorted(manifest))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for name, digest in digests(Path(temporary) / "run").items():
            print(name, digest)

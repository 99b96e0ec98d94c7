"""The workflow against main, run for real: a git repository, what main left, and three changes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshots import Snapshot

ROOT = Path(__file__).parents[2]
HANDBOOK = ROOT / "examples" / "handbook"
FILE = """\
version: 1
name: retrieval
convention: coverage
datasets:
  handbook: {ground_truth: questions.jsonl, corpus: corpus.jsonl, where: {split: test}}
systems:
  search: {use: bm25, with: {k1: 0.1, b: 0.0}}
evaluate: {metrics: [ndcg@10, recall@10], depth: 10, timed: 0}
gate:
  - {system: "*", metric: ndcg@10, max_drop: 0.01, against: previous, unless: not_significant}
"""
BETTER = ("{k1: 0.1, b: 0.0}", "{k1: 1.2, b: 0.75}")
WORSE = ("depth: 10", "depth: 1")
EQUAL = ("# nothing", "# no change of retrieval")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="needs git")]


class Repository:
    """A repository with main, and what the build of main keeps outside of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.artifact = folder / "repository", folder / "previous"
        self.folder.mkdir()
        for name in ("corpus.jsonl", "questions.jsonl"):
            shutil.copy(HANDBOOK / name, self.folder / name)
        (self.folder / ".gitignore").write_text("results/\n.groupgt/\nsummary.md\n", encoding="utf-8")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(FILE + "# nothing\n")

    def git(self, *arguments: str) -> None:
        names = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *names, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self, text: str) -> None:
        (self.folder / "retrieval.yaml").write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Change retrieval")

    def built(self) -> tuple[int, list[str]]:
        """The exit status of a build, and the lines of its verdict; it begins with nothing that earlier ones left."""
        for name in ("results", ".groupgt"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        command = [sys.executable, "-m", "groupgt", "run", "retrieval.yaml"]
        options = ["--against", str(self.artifact), "--allow-no-previous", "--summary", "summary.md"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run([*command, *options], cwd=self.folder, env=environment, capture_output=True, check=False)
        text = (self.folder / "summary.md").read_text(encoding="utf-8").replace("\u00a0", " ")
        return ended.returncode, [line.lstrip("-# ") for line in text.splitlines() if line.startswith(("- ", "### "))]

    def keep(self) -> None:
        """What main does with its results: they take the place of those before."""
        shutil.rmtree(self.artifact, ignore_errors=True)
        shutil.copytree(self.folder / "results", self.artifact)


def test_two_commits_three_outcomes(tmp_path: Path, snapshot: Snapshot) -> None:
    repository = Repository(tmp_path)
    status, lines = repository.built()
    assert status == 0
    snapshot(lines[0])
    snapshot(lines)
    repository.keep()

    outcomes = {}
    for name, change in (("better", BETTER), ("worse", WORSE), ("equal", EQUAL)):
        repository.git("checkout", "--quiet", "-b", name, "main")
        repository.commit((FILE + "# nothing\n").replace(*change))
        outcomes[name] = repository.built()

    status, lines = outcomes["better"]
    assert status == 0
    snapshot(lines[:2])
    status, lines = outcomes["worse"]
    assert status == 1
    snapshot(lines[:2])
    status, lines = outcomes["equal"]
    assert status == 0
    snapshot(lines[:2])

    # The better one is merged, and what main has become is what the next change is compared with.
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--ff-only", "better")
    repository.built()
    repository.keep()
    repository.git("checkout", "--quiet", "equal")
    status, lines = repository.built()
    assert status == 1
    snapshot(lines[:2])

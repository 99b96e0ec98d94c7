"""The package of `examples/plugin`, installed and run as its page says: shell, experiment file and Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, ROOT, blocks, commands

PAGE = blocks((DOCS / "how-to" / "plugins.md").read_text(encoding="utf-8"))
TOML, SHELL, YAML = (next(each.text for each in PAGE if each.language == name) for name in ("toml", "sh", "yaml"))
# (a or b) and c; C and D are written otherwise in the ground truth than in the corpus and in the run.
FILES = {
    "truth.lines": "q1: a | b, C\n\nq2: D\n",
    "run.lines": "q1: x B c\nq2: y d\n",
    "corpus.jsonl": '{"doc_id": "a", "contents": "first ferry at eight"}\n{"doc_id": "b", "contents": "ferries"}\n'
    '{"doc_id": "c", "contents": "the fare is five"}\n{"doc_id": "d", "contents": "dogs travel free"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "first ferry and the fare"}\n{"_id": "q2", "text": "do dogs travel"}\n',
    "experiment.yaml": YAML,
}


def test_the_page_has_the_entry_points_of_the_package() -> None:
    project = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tomllib.loads(TOML)["project"]["entry-points"] == project["entry-points"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and the files of the page."""
    if not all(map(find_spec, ("pip", "hatchling"))):
        pytest.skip("pip and hatchling are not installed")
    folder = tmp_path_factory.mktemp("plugin")
    source = ROOT / "examples" / "plugin"
    how = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", "site")
    subprocess.run([sys.executable, "-m", "pip", "install", *how, str(source)], cwd=folder, check=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def python(folder: Path, *words: str, status: int = 0) -> str:
    places = os.pathsep.join(map(str, (folder / "site", ROOT)))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


# At 2: q1 has B at rank 2 for one of two groups, (1 ÷ 2²) ÷ 2; q2 has d at rank 2, 1 ÷ 2². Their mean:
STEEP = (0.125 + 0.25) / 2


@pytest.mark.slow
def test_in_the_shell(installed: Path) -> None:
    listed, measured = (python(installed, "-m", "groupgt", *words) for words in commands(SHELL))
    assert listed.startswith("words: Find the passages that share the most words with a query.\n")
    assert "\nleast " in listed
    assert "0.1875" in measured
    assert "\nlines " in python(installed, "-m", "groupgt", "list", "formats")
    options = ("--from", "lines", "--kind", "run", "--to", "trec")
    python(installed, "-m", "groupgt", "convert", "run.lines", "run.trec", *options)
    assert (installed / "run.trec").read_text(encoding="utf-8").split()[:3] == ["q1", "Q0", "x"]


@pytest.mark.slow
def test_in_an_experiment(installed: Path) -> None:
    python(installed, "-m", "groupgt", "run", "experiment.yaml", "-o", "out")
    (results,) = installed.glob("out/*/*/results.json")
    (words,) = json.loads(results.read_text(encoding="utf-8"))["datasets"]["mine"]["systems"]
    # q1 finds a and c, which share two words each, (1 ÷ 1 + 1 ÷ 2) ÷ 2; q2 finds d first, 1.
    assert words["metrics"]["steep(power=1)@2"]["mean"] == (0.75 + 1) / 2
    (installed / "wrong.yaml").write_text(YAML.replace("format: lines", "format: line"), encoding="utf-8")
    assert "did you mean 'lines'" in python(installed, "-m", "groupgt", "run", "wrong.yaml", status=2)


@pytest.mark.slow
def test_in_python(installed: Path) -> None:
    code = """
import groupgt
truth, run = groupgt.read_ground_truth("truth.lines", "lines"), groupgt.read_run("run.lines", "lines")
print(groupgt.evaluate(truth, run, ["steep@2"], labeller="folded")["steep@2"])
"""
    assert float(python(installed, "-c", code)) == STEEP
    (installed / "bad.lines").write_text("q1: a\nq2\n", encoding="utf-8")
    options = ("--truth-format", "lines", "--run-format", "lines", "-m", "steep")
    message = python(installed, "-m", "groupgt", "evaluate", "truth.lines", "bad.lines", *options, status=2)
    assert message == "groupgt: bad.lines:2: expected QUERY: IDS, found 'q2'\n"

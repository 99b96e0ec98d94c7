"""What the README promises: its commands, its experiment, every configuration and example."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import groupgt
from groupgt.cli.main import COMMANDS, main
from groupgt.evaluation.misses import failures_of
from groupgt.experiment.outcome import Outcome
from groupgt.report.run import run_experiment
from tests.docs import tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = ("metrics.md", "commands.md", "compare.md", "labellers.md", "experiments.md", "formats.md")
PAGES = README + "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in NAMES)


def test_set_up_commands_are_one_line_each() -> None:
    start = README[README.index("## Two commands") :]
    first, second = re.findall(r"^```sh\n(.*?)^```", start, re.MULTILINE | re.DOTALL)[:2]
    assert first.count("\n") == second.count("\n") == 1
    assert "configs/quickstart.yaml" in first
    assert "pytest" in second
    assert second in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_lines_of_code_fit_where_the_readme_is_read() -> None:
    """But for the two commands that set up, which are one line each to paste."""
    code = re.findall(r"^```.*?^```", README, re.MULTILINE | re.DOTALL)
    lines = [line for block in code for line in block.splitlines()]
    assert [line for line in lines if len(line) > 88 and not line.startswith("python3 -m venv")] == []


def test_every_command_is_named() -> None:
    for command in COMMANDS:
        assert f"`groupgt {command}" in PAGES


def test_the_citation_has_the_version_of_the_package() -> None:
    assert f"\nversion: {groupgt.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"{{{groupgt.__version__}}}" in (ROOT / "docs" / "how-to" / "paper.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 8_000
    for name in NAMES:
        assert f"(docs/{name})" in README, name


def test_the_experiment_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file as it stands there, and nothing else."""
    monkeypatch.chdir(tmp_path)
    patterns = {
        "experiment.yaml": r"<!-- experiment -->\n```yaml\n(.*?)```",
        "search.py": r"^```python\n(def search.*?)^```",
        "corpus.jsonl": r"<!-- corpus.jsonl -->\n```json\n(.*?)```",
        "questions.jsonl": r"<!-- questions.jsonl -->\n```json\n(.*?)```",
    }
    for name, pattern in patterns.items():
        shown = re.search(pattern, README, re.MULTILINE | re.DOTALL)
        assert shown is not None, name
        Path(name).write_text(shown[1], encoding="utf-8")
    main(["run", "experiment.yaml", "--dry-run"])
    said = capsys.readouterr().err
    assert said == "groupgt: not checked without --allow-code: systems.mine.use: python runs your code\n"
    outcome = run_experiment(Path("experiment.yaml"), allow_code=True)
    assert set(outcome.evaluations["mine"]) == {"bm25", "mine"}
    assert [gate.passed for gate in outcome.gates] == [True, True]


CONFIGS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem != "quickstart"))
    for path in sorted((ROOT / "configs").glob("*.yaml"))
]


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.property)], ids=["once", "again"])
@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_runs(config: Path, tmp_path: Path, again: bool) -> None:
    if "groupgt[retrieval]" in config.read_text(encoding="utf-8"):
        pytest.importorskip("Stemmer", reason="the extra groupgt[retrieval] is not installed")
        pytest.importorskip("sklearn", reason="the extra groupgt[retrieval] is not installed")
    changes = [f"cache={tmp_path / 'cache'}"]
    if config.stem == "python_stdlib":
        corpus = tmp_path / "corpus.jsonl"
        subprocess.run([sys.executable, ROOT / "examples" / "python_stdlib" / "build.py", corpus], check=True)
        changes.append(f"datasets.stdlib.corpus={corpus}")
    outcome = run_experiment(config, output=tmp_path, changes=changes)
    assert outcome.retrieved > 0
    assert outcome.passed
    assert outcome.folder is not None
    assert (outcome.folder / "manifest.json").is_file()
    if config.stem == "quickstart":
        _prints_what_the_readme_says(outcome)
    if again or config.stem == "quickstart":
        assert run_experiment(config, output=tmp_path, changes=changes).retrieved == 0


def _prints_what_the_readme_says(outcome: Outcome) -> None:
    evaluation = outcome.evaluations["handbook"]["bm25"]
    failures = failures_of({"bm25": evaluation}, 10)
    low, high = outcome.systems["handbook"].ends("bm25")
    assert f"ndcg@10 of {evaluation['ndcg@10']:.3f} (95% CI {low:.3f} to {high:.3f})" in README
    assert f"over {evaluation.counts['evaluated']} of {len(evaluation.truth)} queries" in README
    completed, queries = failures.solved_counts["bm25"], evaluation.counts["evaluated"]
    assert f"cover everything that {completed:g} of the {queries} queries need" in README.replace("\n", " ")


# Those of other frameworks, and the server, are run by tests of their own.
ELSEWHERE = ("clusters", "mcp_server", "phoenix_annotations", "send_events")
# Draws many examples.
SLOW = ("own_metric",)
SCRIPTS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SLOW))
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.stem not in ELSEWHERE
]


@pytest.mark.usefixtures("_own_metrics")
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_example_script_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "langchain" in script.stem:
        pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_the_workflow_is_yaml_and_names_what_is_there() -> None:
    text = (ROOT / "examples" / "github_actions.yml").read_text(encoding="utf-8")
    step = yaml.safe_load(text)["jobs"]["gate"]["steps"][1]
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert step["with"].keys() <= action["inputs"].keys()
    assert (ROOT / step["with"]["config"]).is_file()


def test_the_starter_is_what_init_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init", "here"])
    main(["run", "here/experiment.yaml"])
    assert shutil.rmtree(tmp_path / "here") is None


def test_the_conclusion_of_the_sweep_follows_from_its_comparison(tmp_path: Path) -> None:
    """Every number of the sentences below its table."""
    pytest.importorskip("Stemmer", reason="the extra groupgt[retrieval] is not installed")
    pytest.importorskip("sklearn", reason="the extra groupgt[retrieval] is not installed")
    table = tables.run("sweep", tmp_path).comparison["handbook"]
    shown = re.search(r"<!-- sweep comparison -->\n```.*?```\n\n(.*?)\n\n(?=Running the same)", PAGES, re.DOTALL)
    assert shown is not None
    text = shown[1].replace("\n", " ")
    best = table["rrf[k=10]"]["ndcg@10"]
    assert not any(row.significant for row in table.rows)
    assert max(row.delta for row in table.rows if row.against) == best.delta == pytest.approx(0.0374, abs=5e-3)
    assert "gains 0.0374" in text
    assert best.delta_interval == pytest.approx((-0.0345, 0.1105), abs=5e-3)
    assert "99.5% CI −0.0345 to 0.1105" in text
    assert (best.raw_p_value, best.p_value) == (pytest.approx(0.1513, abs=0.05), 1)
    assert "p-value 0.1513 before and 1 after correction for ten comparisons" in text
    assert sum(row.differ < 41 for row in table.rows if row.against) > 5  # of 82, for most of ten systems
    assert table.headroom[0].per_query == pytest.approx(0.7892, abs=5e-3)
    assert "raise ndcg@10 to 0.7892" in text
    assert table.failures is not None
    assert len(table.failures.nobody) == 11
    assert "No system completes 11 of the 82 queries in its top 10" in text
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    power = next(each for each in table.power() if each.system == "rrf[k=10]")
    assert power.detectable == pytest.approx(0.095, abs=5e-3)
    assert "minimum detectable difference is about 0.095 at 80% power" in text
    assert power.needed == pytest.approx(510, abs=60)
    assert "about 510 queries" in text

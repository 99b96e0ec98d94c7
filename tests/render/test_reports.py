"""Where pages and figures are asked for: in Python, on the command line, and by an experiment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import groupgt
from groupgt.cli.main import cli
from groupgt.experiment.report import harmless
from groupgt.render.page.page import SCRIPTS
from tests.render.test_page import Reader, read, value

ROOT = Path(groupgt.__file__).parent.parent
TRUTH = {f"q{number}": [["a", "b"], [f"c{number}"]] for number in range(12)}
HALF = {qid: ["a", "x"] for qid in TRUTH}
WHOLE = {qid: ["b", f"c{qid[1:]}"] for qid in TRUTH}


def page_at(path: Path) -> Reader:
    reader = read(path.read_bytes())
    assert len(reader.scripts) == len(SCRIPTS)
    return reader


def test_an_evaluation_writes_its_page_and_draws_itself(tmp_path: Path) -> None:
    evaluation = groupgt.evaluate(TRUTH, HALF, ["recall@2"], convention="coverage", name="half")
    evaluation.to_html(tmp_path / "page.html", corpus={"a": "what a says"})
    reader = page_at(tmp_path / "page.html")
    shown = value(reader, "page")["datasets"][0]
    assert [system["means"] for system in shown["systems"]] == [[0.5]]
    assert shown["unsolved"] == 12
    assert value(reader, "passages-0-0") == {"a": "what a says"}
    assert evaluation.plot("depth").name == "depth"
    with pytest.raises(groupgt.ConfigError, match="figure 'dept' is not known"):
        evaluation.plot("dept")


def test_a_comparison_writes_its_page_and_draws_itself(tmp_path: Path) -> None:
    runs = {"half": HALF, "whole": WHOLE}
    table = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"], convention="coverage", resamples=200)
    table.to_html(tmp_path / "page.html")
    shown = value(page_at(tmp_path / "page.html"), "page")["datasets"][0]
    assert shown["verdict"][0]["parts"][1] == "whole"
    first, second, metric, within, delta, *_ = shown["contrasts"][0]
    assert (first, second, metric, within, delta) == (1, 0, 0, -1, 0.5)
    assert table.plot().text.startswith("whole against half by recall@2, question by question: 12 better, 0 worse")
    assert table.plot("forest", metric="mrr").spec["title"]["subtitle"][0].startswith("mrr")


def test_commands_write_pages(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "first"
    truth, runs = folder / "truth.jsonl", [folder / "bm25.trec", folder / "dense.jsonl"]
    for command in ("evaluate", "compare"):
        page = tmp_path / f"{command}.html"
        arguments = [command, *map(str, (truth, *runs)), "-m", "recall@5", "--html", str(page)]
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        names = [system["name"] for system in value(page_at(page), "page")["datasets"][0]["systems"]]
        assert names == ["bm25", "dense"]
    with pytest.raises(groupgt.ConfigError, match="no folder to write it in"):
        CliRunner().invoke(
            cli,
            ["evaluate", str(truth), str(runs[0]), "--html", str(tmp_path / "none" / "a.html")],
            catch_exceptions=False,
        )


def test_an_experiment_writes_a_report(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "handbook", tmp_path / "examples" / "handbook")
    (tmp_path / "configs").mkdir()
    config = shutil.copy(ROOT / "configs" / "gate.yaml", tmp_path / "configs")
    changes = ["output.formats=[report]", "compare.resamples=200"]
    outcome = groupgt.run_experiment(config, output=tmp_path / "results", changes=changes)
    assert outcome.folder is not None
    reader = page_at(outcome.folder / "report.html")
    shown = value(reader, "page")
    assert shown["title"] == "gate"
    assert [system["name"] for system in shown["datasets"][0]["systems"]] == list(outcome.evaluations["handbook"])
    assert len(shown["datasets"][0]["gates"]) == 4
    assert value(reader, "times")["systems"]["handbook"].keys() == {"released", "candidate"}
    text = (outcome.folder / "report.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert str(tmp_path) not in str(shown)


def test_passwords_and_paths_of_this_machine_are_left_out() -> None:
    assert harmless("https://me:secret@host/a failed") == "https://…@host/a failed"
    assert harmless(["/home/me/data/run.trec: no such file"]) == ["run.trec: no such file"]
    assert harmless({"a": "and/or, 1/2, ../data/x.jsonl"}) == {"a": "and/or, 1/2, ../data/x.jsonl"}

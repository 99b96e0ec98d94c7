"""`plugins:` in experiment files and `--plugin`: modules of the user's that are imported before anything is parsed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.plan import plan
from groupgt.formats import modules
from groupgt.plugins import REGISTERED
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder, folders_of
from tests.retrievers.small import small

MODULE = """
import groupgt
from groupgt.formats.format import Format
from groupgt.labellers.ids import Ids, Options
from groupgt.plugins import Plugin, register
from groupgt.retrievers.base import RetrieverPlugin

@groupgt.metric("brevity", formula="1 ÷ (1 + h × length)", higher_is_better=False)
def brevity(hits, h: float = 1.0):
    "How little there is to read."
    return 1 / (1 + h * hits.length)

class First:
    def __init__(self, setting, options):
        self.ids = setting.corpus.ids

    def retrieve(self, queries, k):
        return [self.ids[:k] for _ in queries]

register("retriever", "first", RetrieverPlugin(build=First, summary="The first passages."))
register("labeller", "same", Plugin(Options, Ids))
register("format", "ranked", Format("ranked", run=lambda source: groupgt.Run.of(
    {line.split()[0]: line.split()[1:] for line in source.path.read_text().splitlines()}
)))
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that a module registers stays."""
    before, path = dict(REGISTERED), list(sys.path)
    yield
    forget()
    REGISTERED.update(before)
    sys.path[:] = path


def forget() -> None:
    """Be a process that has not imported the module."""
    REGISTERED.clear()
    modules.BROUGHT.clear()
    sys.modules.pop("my_metrics", None)


def experiment(folder: Path, module: str = MODULE) -> Path:
    (folder / "my_metrics.py").write_text(module, encoding="utf-8")
    path = small(folder, "mine: first")
    text = path.read_text().replace("name: small", "name: small\nplugins: [my_metrics]")
    text = text.replace("metrics: [recall]", "metrics: [recall, brevity(h=2)], labeller: same")
    path.write_text(text.replace("formats: [json]", "formats: [json, csv, report]"))
    return path


def test_what_a_module_registers_can_be_named(tmp_path: Path) -> None:
    outcome = run_experiment(experiment(tmp_path), allow_code=True)
    means = outcome.evaluations["set"]["mine"].means
    # Of three results, one is looked at.
    assert means == {"recall.autorag@1": pytest.approx(1 / 3), "brevity(h=2)@1": pytest.approx(1 / 3)}
    assert outcome.folder is not None
    manifest = json.loads((outcome.folder / "manifest.json").read_text())
    assert manifest["config"]["plugins"] == ["my_metrics"]
    assert set(manifest["files"]) >= {"my_metrics.py", "corpus.jsonl"}


def test_it_is_refused_unless_code_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(tmp_path, "raise AssertionError('it ran')")
    words = r"trial.yaml:3:11: plugins.0: my_metrics runs your code; allow it with --allow-code$"
    for refused in (run_experiment, plan):
        with pytest.raises(groupgt.ConfigError, match=words):
            refused(path)
    with pytest.raises(SystemExit):
        main(["cache", str(path)])
    assert "plugins.0: my_metrics runs your code" in capsys.readouterr().err
    with pytest.raises(groupgt.ConfigError, match=r"plugins\.0: my_metrics cannot be imported: AssertionError: it ran"):
        run_experiment(path, allow_code=True)


def test_a_module_that_does_not_exist_is_told_with_its_place(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    path.write_text(path.read_text().replace("[my_metrics]", "no_such_module"))
    words = r"trial.yaml:3:10: plugins: module 'no_such_module' is neither next to the file nor installed"
    with pytest.raises(groupgt.ConfigError, match=words):
        plan(path, allow_code=True)


def test_a_module_that_was_changed_registers_again(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    assert plan(path, allow_code=True)
    experiment(tmp_path, MODULE.replace("1 / (1 +", "20 / (20 +"))
    outcome = run_experiment(path, allow_code=True)
    assert outcome.evaluations["set"]["mine"]["brevity(h=2)@1"] == pytest.approx(10 / 11)


@pytest.mark.slow
def test_worker_processes_import_it(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    path.write_text(path.read_text().replace("mine: first", "mine: first\n  other: first"))
    outcome = run_experiment(path, allow_code=True, jobs=2)
    assert set(outcome.evaluations["set"]) == {"mine", "other"}


def test_stored_values_are_read_without_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = experiment(tmp_path)
    first = run_experiment(path, allow_code=True).folder
    second = run_experiment(path, allow_code=True, changes=["evaluate.labeller=id"]).folder
    forget()
    main(["report", str(first), "--format", "json", "--html", str(tmp_path / "merged.html")])
    assert "brevity(h=2)@1" in capsys.readouterr().out
    (folder, _) = map(ResultFolder.read, folders_of([first.parent]))  # type: ignore[union-attr]
    metric = folder.metrics["brevity(h=2)@1"]
    assert (metric.higher_is_better, metric.definition.summary) == (False, "How little there is to read.")
    assert folder.systems["set"]["mine"].values["brevity(h=2)@1"].tolist() == pytest.approx([1 / 3] * 3)
    assert "my_metrics" not in sys.modules
    with pytest.raises(groupgt.MetricError, match="metric 'brevity': not registered in this process; import the"):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["brevity"])
    # The code takes the place of what is stored.
    assert run_experiment(path, allow_code=True, against=second).evaluations["set"]["mine"]["brevity(h=2)@1"] > 0


def test_a_plugin_in_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment(tmp_path)
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2 t\nq2 Q0 d2 1 2 t\nq3 Q0 d2 1 2 t\n")
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "truth.jsonl", "run.trec", "-m", "brevity,mrr", "--labeller", "same", "--format", "json"]

    def error_of(*options: str) -> Any:
        with pytest.raises(SystemExit):
            main([*command, *options])
        return capsys.readouterr().err

    assert "--plugin: my_metrics runs your code; allow it with --allow-code" in error_of("--plugin", "my_metrics")
    assert "--plugin: module 'my_metric'" in error_of("--plugin", "my_metric", "--allow-code")
    main([*command, "--plugin", "my_metrics", "--allow-code"])
    means = {name: row["mean"] for name, row in json.loads(capsys.readouterr().out)["runs"][0]["metrics"].items()}
    assert means == {"brevity": 0.5, "mrr": pytest.approx(2 / 3)}
    (tmp_path / "run.trec").write_text("q1 d1\nq2 d2\nq3 d2\n")
    assert "expected 6 columns" in error_of("--plugin", "my_metrics", "--allow-code")
    main([*command, "--plugin", "my_metrics", "--allow-code", "--run-format", "ranked"])
    again = {name: row["mean"] for name, row in json.loads(capsys.readouterr().out)["runs"][0]["metrics"].items()}
    assert again == means

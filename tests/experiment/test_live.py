"""What comes from outside is asked once in each run, and no question costs more calls than were planned."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.answers import Silence
from groupgt.experiment.plan import plan
from groupgt.plugins import REGISTERED
from groupgt.report.experiment import page_of
from groupgt.report.run import run_experiment
from groupgt.report.times import from_cache
from groupgt.retrievers import base

pytestmark = pytest.mark.slow

ASKED: list[list[str]] = []


@dataclass(frozen=True)
class Options(base.Options):
    """A stand-in for a server that is asked four questions at a time."""

    batch: int = 4

    def batch_size(self) -> int:
        return self.batch


class Server:
    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.ids = setting.corpus.ids

    def retrieve(self, queries: Any, k: int) -> list[Any]:
        ASKED.append(list(queries))
        return [self.ids[:k] for _ in queries]


FILE = """\
version: 1
name: trial
datasets: {mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}}
systems:
  api: server
  plain: bm25
  both: {use: rrf, inputs: [api, plain]}
  three: {use: rrf, inputs: [api, plain], with: {k: 10}}
evaluate: {depth: 5, k: [5], metrics: [recall]}
output: {folder: out, formats: [json]}
cache: cache
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(REGISTERED, ("retriever", "server"), base.RetrieverPlugin(Options, Server, live=True))
    ASKED.clear()
    corpus = [{"doc_id": f"d{number}", "contents": f"word{number} text"} for number in range(5)]
    rows = [
        {"qid": f"q{number}", "query": f"word{number}", "retrieval_gt": [[f"d{number % 5}"]]} for number in range(10)
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "e.yaml"
    path.write_text(FILE)
    return path


def status(*arguments: str) -> object:
    """The exit status of a command."""
    try:
        main([*arguments])
    except SystemExit as end:
        return end.code
    return 0


def test_every_run_asks_once(file: Path) -> None:
    for _ in range(2):
        outcome = run_experiment(file)
        assert sum(map(len, ASKED)) == 10  # fusions share the answers
        assert outcome.kept.answers == []
        ASKED.clear()


def test_a_run_that_was_killed_is_resumed_and_a_finished_one_is_not(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("groupgt.report.run.write_results", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_experiment(file)
    assert sum(map(len, ASKED)) == 10
    ASKED.clear()
    resumed = run_experiment(file, resume=True)
    assert ASKED == []
    assert "resumed: 10 of 10 answers of api are from the run interrupted at 20" in from_cache(resumed)
    assert "groupgt did not check code or services for changes" in from_cache(resumed)
    with pytest.raises(groupgt.ConfigError, match="--resume: nothing to continue, because no interrupted run"):
        run_experiment(file, resume=True)
    assert ASKED == []
    run_experiment(file)
    assert sum(map(len, ASKED)) == 10


def test_a_run_that_failed_is_not_resumed_unless_that_is_asked_for(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("groupgt.report.run.write_results", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            run_experiment(file)
    ASKED.clear()
    assert status("run", str(file), "--dry-run") == 0
    said = capsys.readouterr()
    assert "left 10 answers from api. To continue with them, add --resume" in said.err
    assert "answers that an interrupted run left" not in said.out
    assert status("run", str(file), "--dry-run", "--resume", "--format", "json") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "except 10 answers that an interrupted run left" in said.out
    # Other options, changes or systems are another run.
    for arguments in (["--set", "evaluate.depth=2"], ["--set", "evaluate.primary=recall@5"], ["--only", "api"]):
        assert status("run", str(file), "--resume", "--dry-run", *arguments) == 2
        assert "--resume: nothing to continue, because no interrupted run" in capsys.readouterr().err
    assert status("run", str(file), "--resume", "--refresh") == 2
    assert "remove one" in capsys.readouterr().err
    assert status("run", str(file)) == 0
    assert "To continue with them, add --resume" in capsys.readouterr().err
    assert sum(map(len, ASKED)) == 10
    # It is finished, and what the failed one had left is gone.
    assert status("run", str(file), "--resume") == 2


def test_reused_answers_are_told_in_every_report(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_experiment(file)
    junit, summary, results = tmp_path / "junit.xml", tmp_path / "summary.md", tmp_path / "again"
    gate = "gate=[{system: api, metric: recall@5, min: 0}]"
    call = ["run", str(file), "--reuse", "--set", gate, "--output", str(results)]
    assert status(*call, "--junit", str(junit), "--summary", str(summary)) == 0
    told = "reused: 10 of 10 answers of api are from the run that ended at 20"
    for text in (capsys.readouterr().out, *(path.read_text(encoding="utf-8") for path in (junit, summary))):
        assert told in text
        assert "groupgt did not check code or services for changes" in text
    (sentence,) = page_of(run_experiment(file, reuse=True))["times"]["verdict"]["mine"]
    assert sentence["kind"] == "doubt"
    assert sentence["parts"][0].startswith(told)


def test_a_run_that_failed_half_way_is_resumed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Server.retrieve

    def fails(self: Server, queries: Any, k: int) -> list[Any]:
        if len(ASKED) == 2:
            raise OSError("the line is cut")
        return answer(self, queries, k)

    with monkeypatch.context() as broken:
        broken.setattr(Server, "retrieve", fails)
        with pytest.raises(groupgt.RetrieverError, match="the line is cut"):
            run_experiment(file)
    ASKED.clear()
    outcome = run_experiment(file, resume=True)
    assert sum(map(len, ASKED)) == 2
    assert "resumed: 8 of 10 answers of api are from the run interrupted at 20" in from_cache(outcome)


def test_a_version_or_a_word_reuses_what_a_finished_run_was_told(file: Path) -> None:
    run_experiment(file)
    ASKED.clear()
    reused = run_experiment(file, reuse=True)
    assert ASKED == []
    assert "reused: 10 of 10 answers of api are from the run that ended at 20" in from_cache(reused)
    changes = ["systems.api={use: server, version: a}"]
    run_experiment(file, changes=changes)
    assert sum(map(len, ASKED)) == 10
    again = run_experiment(file, changes=changes)
    assert sum(map(len, ASKED)) == 10
    assert "reused: 10 of 10 answers of api" in from_cache(again)
    run_experiment(file, changes=[changes[0].replace("a}", "b}")])
    assert sum(map(len, ASKED)) == 20


class Count(Silence):
    """Counts what the bar is told."""

    def __init__(self) -> None:
        self.total = self.done = 0

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        self.total = queries

    def answered(self, queries: int) -> None:
        self.done += queries


def calls_of(file: Path, **options: Any) -> dict[str, int]:
    headers, rows, *_ = plan(file, **options)
    return {row[1]: row[headers.index("calls")] for row in rows}


@pytest.mark.parametrize("timed", [None, 0, 3])
def test_the_plan_and_the_bar_know_every_call(file: Path, timed: int | None) -> None:
    changes = [] if timed is None else [f"evaluate.timed={timed}"]
    planned = calls_of(file, changes=changes)
    bar = Count()
    outcome = run_experiment(file, changes=changes, progress=bar)
    assert len(ASKED) == planned["api"] == math.ceil(10 / 4) + (timed or 0)
    assert planned["plain"] == 1 + (10 if timed is None else timed)
    assert bar.done == bar.total == 20 + (timed or 0) + (10 if timed is None else timed)
    api, plain = outcome.timing("mine", "api"), outcome.timing("mine", "plain")
    assert api is not None
    assert plain is not None
    assert len(api.single_ms) == (timed or 0)
    assert len(api.batched_ms) == 3
    assert bool(plain.single_ms) is (timed != 0)


def test_what_asks_one_by_one_is_timed_as_it_answers(file: Path) -> None:
    changes = ["systems.api={use: server, with: {batch: 1}}", "evaluate.timed=5"]
    assert calls_of(file, changes=changes)["api"] == 10
    outcome = run_experiment(file, changes=changes)
    assert len(ASKED) == 10
    timing = outcome.timing("mine", "api")
    assert timing is not None
    assert len(timing.single_ms) == 10


@pytest.mark.parametrize("system", ["api", "both", "*"])
def test_a_gate_on_what_nobody_times_names_the_way(file: Path, system: str) -> None:
    gate = f'gate=[{{system: "{system}", metric: latency_p95_ms, max: 1000}}]'
    with pytest.raises(groupgt.ConfigError, match=r"latency_p95_ms is .* Set evaluate.timed"):
        run_experiment(file, changes=[gate])
    assert ASKED == []
    run_experiment(file, changes=[gate, "evaluate.timed=2"])
    run_experiment(file, changes=[gate.replace("latency", "batched")])


def test_a_gate_on_a_function_of_lists(file: Path) -> None:
    (file.parent / "listed.py").write_text(
        "def search(queries, k):\n    return [[f'd{at}' for at in range(5)] for _ in queries]\n"
    )
    changes = [
        'systems.api={use: python, with: {target: "listed:search"}}',
        "gate=[{system: api, metric: latency_p95_ms, max: 1000}]",
    ]
    with pytest.raises(groupgt.GroupgtError, match=r"gate 1: latency_p95_ms .* Set evaluate.timed"):
        run_experiment(file, changes=changes, allow_code=True)
    assert run_experiment(file, changes=[*changes, "evaluate.timed=2"], allow_code=True).passed


def test_the_plan_says_how_a_function_is_called(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file.parent / "single.py").write_text("def search(question, k):\n    return ['d1']\n")
    change = 'systems.api={use: python, with: {target: "single:search"}}'
    main(["run", str(file), "--dry-run", "--allow-code", "--set", change, "--format", "json"])
    row = json.loads(capsys.readouterr().out)[0]
    assert row["uses"] == "python: f(query, k), one query at a time"
    assert row["calls"] == 10
    (file.parent / "single.py").write_text("def search(question):\n    return ['d1']\n")
    with pytest.raises(groupgt.ConfigError, match=r"systems.api: .*found search\(question\); set factory: true"):
        plan(file, changes=[change], allow_code=True)


def test_corpora_that_share_their_questions_stand_in_one_table(file: Path) -> None:
    (file.parent / "other.jsonl").write_text((file.parent / "corpus.jsonl").read_text().replace(" text", " more text"))
    text = file.read_text().replace(
        "{mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}}",
        "{small: {corpus: corpus.jsonl, ground_truth: questions.jsonl}, "
        "large: {corpus: other.jsonl, ground_truth: ./questions.jsonl}}",
    )
    file.write_text(
        text.replace("metrics: [recall]}", "metrics: [recall], primary: recall@5}\ncompare: {baseline: plain}")
    )
    head, _, rest = run_experiment(file).text().rpartition("dataset small")
    assert "small, large: one ground truth, 2 corpora" in head
    assert "add a metric with a budget (recall@4000chars)" in head
    assert (
        len([line for line in head.splitlines() if line.split()[:2] in (["small", "plain"], ["large", "plain"])]) == 2
    )
    assert "dataset large" in rest

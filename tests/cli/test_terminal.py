"""What reaches the terminal: a bar, silence in a pipe, and nothing that commands it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
import time
from pathlib import Path

import pytest

import groupgt
from groupgt.cli import output
from groupgt.cli.main import main
from groupgt.cli.output import Bar, Waiting
from groupgt.errors import printable
from groupgt.experiment.starter import write_starter
from groupgt.render.layout import columns_of

pytestmark = pytest.mark.slow


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def drive(bar: Bar) -> None:
    bar.planned(systems=2, tasks=3, kept=1, queries=20)
    bar.started("mine: bm25")
    bar.answered(15)
    bar.answered(5)
    bar.ended()


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    drive(Bar())
    assert "2 systems, 20 queries to run; 1 of 3 retrievals cached" in terminal.getvalue()
    assert "mine: bm25" in terminal.getvalue()


def test_a_run_says_what_it_does_from_the_first_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_starter(tmp_path)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    main(["run", str(tmp_path / "experiment.yaml"), "--color", "never"])
    said = [line for line in terminal.getvalue().splitlines() if line.startswith("groupgt: ")]
    assert said[0] == f"groupgt: reading {tmp_path / 'experiment.yaml'}"
    assert said[1] == "groupgt: reading 1 data set"
    assert "groupgt: evaluating 2 systems" in said


def test_a_summary_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = {f"q{n}": [["a"]] for n in range(20)}
    rows = [{"qid": qid, "query": "why", "retrieval_gt": groups} for qid, groups in truth.items()]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, ids in (("old", ["a", "b"]), ("new", ["b", "c"])):
        lines = [{"qid": qid, "retrieved_ids": ids} for qid in truth]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("qa.jsonl", "old.jsonl", "new.jsonl")]
    main(["compare", *paths, "-m", "recall@2", "--summary", str(tmp_path / "summary.md")])
    assert "\x1b" not in capsys.readouterr().out
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith(
        "## against old\n\n### ▼ Worse: new is significantly worse than old in recall@2\n\n−1.000 · "
    )
    rows = [list(map(str.strip, line.split("|")[1:-1])) for line in summary.splitlines() if line.startswith("| new")]
    assert rows == [["new", "0.000", "**−1.000▼ (−1.000 to −0.796)**", "<0.001", "20 / 0", "0/20"]]
    assert "<details><summary>Look at these 3 queries first (lost by new)</summary>" in summary
    assert re.search(r"\| \*\*q0\*\* +\| 1\.000 → 0\.000 +\| why +\| group 1: a, not retrieved, was 1 \|", summary)


def test_silence_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Bar())
    assert capsys.readouterr() == ("", "")


def test_nothing_to_ask_needs_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    bar = Bar()
    bar.planned(systems=2, tasks=3, kept=3, queries=0)
    bar.ended()
    assert terminal.getvalue() == ""


def test_work_that_takes_long_shows_its_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "PATIENCE_S", 0)
    with Waiting() as waiting:
        waiting.doing("evaluating", 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Waiting() as waiting:
        waiting.doing("evaluating", 2)
        waiting.step()
        assert _comes(terminal, "evaluating 1 of 2 [00:00]")
        waiting.doing("comparing")
        assert _comes(terminal, "comparing [00:0")


def test_work_of_a_moment_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with Waiting() as waiting:
        waiting.doing("evaluating", 2)
    assert terminal.getvalue() == ""


def _comes(terminal: Terminal, text: str) -> bool:
    """Wait for a text on a terminal."""
    end = time.monotonic() + 30
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.02)
    return text in terminal.getvalue()


def test_a_run_in_a_pipe_tells_where_results_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_starter(tmp_path)
    main(["run", str(tmp_path / "experiment.yaml"), "--format", "json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["name"] == "starter"
    assert shown.err.startswith("groupgt: wrote results to ")
    assert len(shown.err.splitlines()) == 1


# What a terminal obeys, or what turns the order of what it shows: a cleared screen, a title, C1, right to left.
HOSTILE = "\x1b[2J\x1b]0;x\x07\x9b31m\u202eabc\u2066\u200f\r\x08"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# No control character may stand in an id; what turns the direction may.
ODD_ID = "a\u202eb\u2069"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hostile ids, questions, texts, group names, slices and file names."""
    monkeypatch.chdir(tmp_path)
    groups = [{"alternatives": [ODD_ID, "b"], "name": f"first{HOSTILE}"}, ["c"]]
    rows = [
        {"qid": f"q{ODD_ID}", "query": f"why{HOSTILE}", "retrieval_gt": groups, "kind": f"k{HOSTILE}"},
        {"qid": "q2", "query": "why not", "retrieval_gt": [["d"], ["e"]], f"column{ODD_ID}": "y", "kind": "z"},
    ]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    runs = {f"run{HOSTILE}": [ODD_ID, "x", "c"], "other": ["x", "b"], "third": ["b", "c"]}
    for name, ids in runs.items():
        lines = [{"qid": f"q{ODD_ID}", "retrieved_ids": ids}, {"qid": "q2", "retrieved_ids": ["x", "e"]}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    texts = [{"doc_id": name, "contents": f"text of {name}{HOSTILE}"} for name in (ODD_ID, "b", "c", "d", "e", "x")]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")
    return tmp_path


RUN = f"run{HOSTILE}.jsonl"
CORPUS = ["--corpus", "corpus.jsonl"]
CALLS = [
    ["evaluate", "qa.jsonl", RUN, "other.jsonl", "--by", "kind"],
    ["evaluate", "qa.jsonl", RUN, "--by", f"nothing{HOSTILE}"],
    ["evaluate", "qa.jsonl", RUN, "-m", f"mrr{HOSTILE}"],
    ["evaluate", f"qa{HOSTILE}.jsonl", RUN],
    ["evaluate", "qa.jsonl", RUN, "--where", f"kind=k{HOSTILE}"],
    ["evaluate", "qa.jsonl", RUN, "--where", "kind=absent"],
    ["compare", "qa.jsonl", RUN, "other.jsonl", "third.jsonl", "-m", "recall@2", "--by", "kind", "--pairs"],
    ["explain", "qa.jsonl", RUN, "--query", f"q{ODD_ID}", *CORPUS],
    ["explain", "qa.jsonl", RUN, "--query", f"q{ODD_ID}", "--format", "json"],
    ["explain", "qa.jsonl", RUN, "--query", f"no{HOSTILE}"],
    ["misses", "qa.jsonl", RUN, "-k", "1", *CORPUS],
    ["misses", "qa.jsonl", RUN, "other.jsonl", "-k", "1", *CORPUS],
    ["depth", "qa.jsonl", RUN, "--share", "1", "--by", "kind"],
    ["depth", "qa.jsonl", RUN, "--share", f"1{HOSTILE}"],
    ["check", "qa.jsonl", RUN],
    ["agree", "qa.jsonl", RUN, "--other", "text", *CORPUS],
    ["agree", "qa.jsonl", RUN, "--annotator", "qa.jsonl"],
    ["rechunk", "qa.jsonl", "--from", "corpus.jsonl", "--to", "corpus.jsonl"],
    ["convert", RUN, f"out{HOSTILE}.jsonl", "--to", "jsonl"],
    ["run", f"x{HOSTILE}.yaml"],
    ["cache", f"x{HOSTILE}.yaml"],
    [f"evaluate{HOSTILE}"],
    ["evaluate", "qa.jsonl", RUN, f"--{HOSTILE}"],
]


STYLED = ("evaluate", "compare", "misses", "depth", "check", "agree", "rechunk", "cache")
STYLES = [(), ("--format", "json"), ("--format", "csv"), ("--format", "html"), ("--format", "latex")]
ALL_CALLS = [[*call, *style] for call in CALLS for style in (STYLES if call[0] in STYLED else STYLES[:1])]


@pytest.mark.parametrize("call", ALL_CALLS, ids=lambda call: f"{ALL_CALLS.index(call)}-{printable(call[0])}")
def test_nothing_commands_the_terminal(call: list[str], hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        main(call)
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert DANGEROUS.search(printed.err) is None
    # CSV has no escapes: in a pipe it is as it is.
    assert DANGEROUS.search(printed.out) is None or call[-1] == "csv"


def test_json_says_the_same(hostile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", "qa.jsonl", RUN, "--by", "kind", "--format", "json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["run"] == f"run{HOSTILE}"
    assert {part["value"] for part in run["slices"]} == {f"k{HOSTILE}", "z"}


def test_csv_is_made_safe_on_a_terminal_alone(
    hostile: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["evaluate", "qa.jsonl", RUN, "other.jsonl", "-m", "mrr", "--format", "csv"]
    main(call)
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert [row[0] for row in rows] == ["run", f"run{HOSTILE}", "other"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(call)
    assert DANGEROUS.search(capsys.readouterr().out) is None


def test_what_python_prints(hostile: Path) -> None:
    result = groupgt.evaluate("qa.jsonl", RUN, ["mrr"], by="kind")
    table = groupgt.compare("qa.jsonl", [RUN, "other.jsonl"], ["mrr"], by="kind", resamples=10)
    texts = [result.explain(f"q{ODD_ID}"), str(result.misses(1)), str(result), result._repr_html_(), str(table)]
    for text in [*texts, table._repr_html_(), repr(result), repr(table)]:
        assert DANGEROUS.search(text) is None


def test_errors_and_warnings_of_python() -> None:
    error = groupgt.DataError(f"file{HOSTILE}: wrong")
    assert error.faults == (f"file{HOSTILE}: wrong",)
    assert DANGEROUS.search(str(error)) is None
    with pytest.raises(groupgt.DataError) as refused:
        groupgt.evaluate({f"q{ODD_ID}": [["a"]]}, {"other": ["a"]}, ["mrr"])
    assert DANGEROUS.search(str(refused.value)) is None
    assert str(groupgt.GroupgtWarning("\x1b[2J")) == "\\x1b[2J"


def test_a_bar_shows_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    bar = Bar()
    bar.planned(systems=1, tasks=1, kept=0, queries=2)
    bar.started(f"mine{HOSTILE}: bm25")
    bar.answered(2)
    bar.ended()
    assert "\u202e" not in terminal.getvalue()
    assert "\\u202e" in terminal.getvalue()


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["list", "retrievers"],
        ["list", "retrievers", "http"],
        ["list", "metrics", "ndcg"],
        ["list", "labellers"],
        ["list", "labellers", "spans"],
        ["explain", "--query", "h002", "--corpus", "CORPUS", "TRUTH", "RUN"],
    ],
    ids=" ".join,
)
def test_what_is_looked_up_fits_a_terminal_of_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    handbook = Path(groupgt.__file__).parents[1] / "examples" / "handbook"
    (tmp_path / "run.trec").write_text("h002 Q0 minors-alone 1 2.0 r\nh002 Q0 r4-minimum-age 2 1.0 r\n")
    paths = {"CORPUS": handbook / "corpus.jsonl", "TRUTH": handbook / "questions.jsonl", "RUN": tmp_path / "run.trec"}
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    main([str(paths.get(word, word)) for word in command])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert len(lines) > 3
    assert [line for line in lines if columns_of(line) > 80] == []

"""A bar on a terminal, silence in a pipe."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from groupgt.cli.main import main
from groupgt.cli.progress import Bar
from groupgt.experiment.starter import write_starter


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
    assert "2 systems; 3 retrievals, 1 of them kept from earlier runs; 20 questions to ask" in terminal.getvalue()
    assert "mine: bm25" in terminal.getvalue()


def test_silence_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    drive(Bar())
    assert capsys.readouterr() == ("", "")


def test_nothing_to_ask_needs_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    bar = Bar()
    bar.planned(systems=2, tasks=3, kept=3, queries=0)
    bar.ended()
    assert terminal.getvalue() == ""


def test_a_run_in_a_pipe_tells_where_results_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_starter(tmp_path)
    main(["run", str(tmp_path / "experiment.yaml"), "--format", "json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["name"] == "starter"
    assert shown.err.startswith("groupgt: results are in ")
    assert len(shown.err.splitlines()) == 1

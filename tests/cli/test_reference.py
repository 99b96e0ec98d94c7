"""What there is to choose from: `groupgt list`, with what packages bring, and what is broken in them."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import re
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from groupgt import plugins
from groupgt.cli.main import main
from groupgt.options import options_of
from groupgt.plugins import KINDS, find, ours
from tests.snapshots import Snapshot


def called(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What a call prints: to standard output, or to standard error where it fails."""
    found: Any = 0
    try:
        main(["list", *words])
    except SystemExit as end:
        found = end.code
    out, err = capsys.readouterr()
    assert found == status, err
    return err if status else out


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = "tests.test_plugins"
    points = [
        EntryPoint("backwards", f"{here}:RETRIEVER", "groupgt.retrievers"),
        EntryPoint("nowhere", "no_such_module:PLUGIN", "groupgt.retrievers"),
        EntryPoint("same", f"{here}:LABELLER", "groupgt.labellers"),
        EntryPoint("every", f"{here}:TOKENIZER", "groupgt.tokenizers"),
        EntryPoint("gone", "no_such_module:gone", "groupgt.metrics"),
    ]
    found = importlib.metadata.EntryPoints(points)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: found.select(group=group))
    monkeypatch.setattr(plugins, "REGISTERED", {})


def test_the_kinds_and_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys)
    for kind in KINDS.values():
        assert f"{kind.plural}\n" in out
    assert "bm25, tfidf" in out
    assert max(map(len, out.splitlines())) <= 110
    assert json.loads(called(capsys, "--format", "json"))["engines"] == ["auto", "streaming", "spark"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(called(capsys, KINDS[kind].plural, "--format", "json"))
    assert [row["name"] for row in rows] == ours(kind)
    assert all(row["summary"].endswith(".") and row["fault"] is None for row in rows)
    out = called(capsys, KINDS[kind].plural)
    assert all(f"\n{name} " in out for name in ours(kind))


def test_what_a_kind_needs(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in called(capsys, "retrievers").splitlines() if line.startswith("pgvector ")]
    assert line.split("  ")[-1].strip() == "groupgt[pgvector]"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "metric"])
def test_everything_about_each_of_ours(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ours(kind):
        plugin = find(kind, name)
        options = options_of(plugin.options)
        out = called(capsys, KINDS[kind].plural, name)
        assert out.startswith(f"{name}: {plugin.summary}\n")
        for option in options.values():
            assert f"\n{option.name} " in out
            assert option.expected in out
        said = json.loads(called(capsys, KINDS[kind].plural, name, "--format", "json"))
        assert (said["name"], said["runs_code"], said["needs"]) == (name, plugin.runs_code, plugin.extras)
        assert [each["name"] for each in said["options"]] == list(options)
        rows = list(csv.reader(io.StringIO(called(capsys, KINDS[kind].plural, name, "--format", "csv"))))
        assert rows[0] == ["option", "expected", "default"]
        assert [row[0] for row in rows[1:]] == list(options)


def test_ranges_choices_and_defaults(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    said = json.loads(called(capsys, "retrievers", "bm25", "--format", "json"))
    k1, _, variant, *_ = said["options"]
    assert (k1["default"], k1["expected"]) == (1.2, "a number from 0 to 1,000")
    assert (k1["schema"]["minimum"], k1["schema"]["maximum"]) == (0, 1000)
    assert variant["schema"]["enum"] == ["lucene", "robertson", "atire", "bm25l", "bm25+"]
    out = called(capsys, "retrievers", "python")
    snapshot(out)


def test_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
    out = called(capsys, "metrics", "ndcg")
    assert "conventions" in out or "coverage" in out
    assert json.loads(called(capsys, "metrics", "ndcg", "--format", "json"))["name"] == "ndcg"


@pytest.mark.usefixtures("installed")
def test_what_packages_bring_and_what_is_broken(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    rows = {row["name"]: row for row in json.loads(called(capsys, "retrievers", "--format", "json"))}
    assert rows["backwards"]["summary"] == "Finds the last document first."
    broken = "the plug-in no_such_module:PLUGIN cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"
    assert (rows["nowhere"]["summary"], rows["nowhere"]["fault"]) == (None, broken)
    assert re.search(rf"\nnowhere +{re.escape(broken)}", called(capsys, "retrievers"))
    assert re.search(r"\nfold +true or false +false", called(capsys, "retrievers", "backwards"))
    assert "\nsame " in called(capsys, "labellers")
    assert "least" in called(capsys, "tokenizers", "every")
    assert "gone" in called(capsys, "metrics")
    snapshot(called(capsys, "metrics", "gone", status=2))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["retriever"], "is not one of 'metrics', 'labellers'"),
        (["retrievers", "bm52"], "retriever: expected bm25, tfidf"),
        (["retrievers", "bm52"], "did you mean 'bm25'"),
        (["metrics", "ndgc"], "did you mean 'ndcg'"),
        (["engines", "x"], "engine: expected auto, streaming or spark, found 'x'"),
    ],
)
def test_what_there_is_not(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in called(capsys, *words, status=2)

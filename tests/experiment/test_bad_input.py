"""Experiment files that are bad, as a user meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bad_input import TREC, YAML, Cli, fails, names, put, swap

pytestmark = pytest.mark.slow

OLD = "\n  old: {use: results, with: {path: run.trec}}"
BAD_YAML: list[tuple[str, str | bytes, str, tuple[str, ...]]] = [
    ("key twice", YAML + "name: other\n", "11:1", ("name", "duplicate", "2:1")),
    ("inner key twice", YAML.replace("k: [1]", "k: [1]\n  k: [2]"), "10:3", ("evaluate.k", "duplicate")),
    ("unknown key", YAML + "nmae: x\n", "11:1", ("nmae", "unknown", "'name'")),
    ("unknown inner key", YAML.replace("k: [1]", "ks: [1]"), "9:3", ("evaluate.ks", "unknown")),
    ("unknown option", YAML.replace("run.trec}", "run.trec, pth: x}"), "6:46", ("pth", "unknown", "path")),
    ("alias", YAML.replace("name: small", "name: &n small") + "groupgt: *n\n", "11:10", ("alias",)),
    ("endless alias", "a: &a [*a]\n", "1:8", ("alias",)),
    ("python tag", YAML.replace("name: small", "name: !!python/name:os.system x"), "2:7", ("tag", "python")),
    ("python call", YAML.replace("name: small", 'name: !!python/object/apply:os.mkdir ["made"]'), "2:7", ("tag",)),
    ("other tag", YAML.replace("name: small", "name: !secret x"), "2:7", ("tag", "!secret")),
    ("unset variable", YAML.replace("small", "${env:GROUPGT_NEVER_SET}"), "2:7", ("GROUPGT_NEVER_SET", ":-")),
    ("unset inner variable", YAML.replace("run.trec", '"${env:GROUPGT_NEVER_SET}.x"'), "6:36", ("GROUPGT_NEVER_SET",)),
    ("not UTF-8", YAML.replace("small", "é").encode("latin-1"), "2:7", ("UTF-8", "0xe9")),
    ("UTF-16", YAML.encode("utf-16"), "1:1", ("UTF-8",)),
    ("NUL", YAML.replace("small", "sm\0ll"), "2:9", ()),
    ("bell", YAML.replace("small", "sm\x07ll"), "2:9", ()),
    ("tab", YAML.replace("  own", "\town"), "4:1", ()),
    ("open bracket", "a: [1, 2", "1:9", ()),
    ("two documents", YAML + "---\n" + YAML, "11:1", ()),
    ("deep", "a: " + "[" * 1_000 + "]" * 1_000, "1:", ("nesting",)),
    ("empty", "", "1:1", ("empty", "groupgt init")),
    ("comment alone", "# nothing\n", "1:1", ("empty",)),
    ("null", "null\n", "1:1", ("mapping",)),
    ("text", "hello\n", "1:1", ("mapping", "'hello'")),
    ("a list", "- a\n- b\n", "1:1", ("mapping", "list")),
    ("a list of lists", "[[1], [2]]\n", "1:1", ("mapping", "list")),
    ("number as name", YAML.replace("small", "5"), "2:7", ("name", "text", "5")),
    ("nothing as name", YAML.replace("name: small", "name:"), "2:6", ("name", "text", "nothing")),
    ("list as name", YAML.replace("small", "[a]"), "2:7", ("name", "text", "a list")),
    ("surrogate as name", YAML.replace("small", '"\\ud800"'), "2:7", ("name",)),
    ("no systems", YAML.replace(OLD, " {}"), "5:10", ("systems", "at least one")),
    ("null systems", YAML.replace(OLD, ""), "5:9", ("systems", "mapping", "nothing")),
    ("list of systems", YAML.replace(OLD, " [bm25]"), "5:10", ("systems", "mapping", "a list")),
    ("null system", YAML.replace(OLD, "\n  old:"), "6:7", ("systems.old", "mapping", "nothing")),
    ("unknown system", YAML.replace("results", "result"), "6:14", ("systems.old.use", "'result'", "'results'")),
    ("list as options", YAML.replace("{path: run.trec}", "[path]"), "6:29", ("systems.old.with", "mapping", "a list")),
    ("number as path", YAML.replace("run.trec", "5"), "6:36", ("path", "text", "5")),
    ("no such run", YAML.replace("run.trec", "nope.trec"), "6:36", ("path", "nope.trec")),
    ("no such truth", YAML.replace("truth.jsonl", "nope.jsonl"), "4:23", ("ground_truth", "nope.jsonl")),
    ("truth of a long name", YAML.replace("truth.jsonl", "x" * 5_000), "4:23", ("ground_truth",)),
    ("text as k", YAML.replace("k: [1]", "k: [x]"), "9:7", ("evaluate.k", "whole number", "'x'")),
    ("0 as k", YAML.replace("k: [1]", "k: [0]"), "9:7", ("evaluate.k", "at least 1", "0")),
    ("huge k", YAML.replace("k: [1]", f"k: [{'9' * 400}]"), "9:7", ("evaluate.k",)),
    ("mapping as k", YAML.replace("k: [1]", "k: {a: 1}"), "9:6", ("evaluate.k", "a mapping")),
    ("true as k", YAML.replace("k: [1]", "k: [true]"), "9:7", ("evaluate.k", "whole number", "true")),
    ("unknown metric", YAML.replace("[recall]", "[recal]"), "8:13", ("evaluate.metrics", "'recal'", "'recall'")),
    ("number as metric", YAML.replace("[recall]", "[5]"), "8:13", ("evaluate.metrics", "text", "5")),
    ("no metrics", YAML.replace("[recall]", "[]"), "8:12", ("evaluate.metrics", "at least one")),
    ("unknown policy", YAML.replace("k: [1]", "policy: {missing: nope}"), "9:21", ("missing", "'nope'")),
    ("unfit policy", YAML.replace("[recall]\n  k: [1]", "[p.trec]\n  policy: {duplicates: keep}"), "", ("keep",)),
    ("number as section", YAML.replace("output: {folder: out}", "output: 5"), "10:9", ("output", "mapping", "5")),
    ("null section", YAML.replace("output: {folder: out}", "output:"), "10:8", ("output", "mapping", "nothing")),
    ("list as key", YAML + "? [a]\n: b\n", "11:3", ("key",)),
    ("version", YAML.replace("version: 1", "version: 2"), "1:10", ("version", "1", "2")),
    ("later groupgt", YAML + 'groupgt: ">=99"\n', "11:10", (">=99",)),
]  # fmt: skip


@pytest.fixture
def experiment(truth: Path) -> Path:
    put(truth.parent / "run.trec", TREC)
    return put(truth.parent / "experiment.yaml", YAML)


@pytest.mark.parametrize("case", BAD_YAML, ids=names(BAD_YAML))
def test_bad_experiment(case: Any, cli: Cli, experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text, place, words = case
    monkeypatch.chdir(experiment.parent)
    monkeypatch.delenv("GROUPGT_NEVER_SET", raising=False)
    put(experiment, text)
    found = cli("run", experiment, "--dry-run")
    fails(found, f"{experiment}:{place}", *words)
    lines = found.err.splitlines()
    assert len(set(lines)) == len(lines)
    assert not (experiment.parent / "made").exists()
    assert not (experiment.parent / "out").exists()


def test_good_experiment(cli: Cli, experiment: Path) -> None:
    assert cli("run", experiment, "--dry-run").status == 0
    for text in ("\ufeff" + YAML, YAML.replace("\n", "\r\n"), "---\n" + YAML + "...\n"):
        assert cli("run", put(experiment, text), "--dry-run").status == 0


def test_all_faults_of_an_experiment_at_once(cli: Cli, experiment: Path) -> None:
    text = YAML.replace("version: 1", "version: 2").replace("small", "[x]").replace("[recall]", "[recal]")
    put(experiment, text.replace("k: [1]", "k: [0]") + "foo: 1\n")
    fails(cli("run", experiment, "--dry-run"), "5 errors", ":1:10", ":2:7", ":8:13", ":9:7", ":11:1")


def test_laughs_are_not_expanded(cli: Cli, experiment: Path) -> None:
    lines = ["a: &a [x, x, x]", *(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]" for i in range(24))]
    found = cli("run", put(experiment, "\n".join(lines)), "--dry-run")
    assert found.status == 2
    assert f"{experiment}:1:4" in found.err


def test_an_experiment_on_bad_data(cli: Cli, experiment: Path) -> None:
    run = put(experiment.parent / "run.trec", swap(TREC, b"2.0", b"1_000"))
    fails(cli("run", experiment), f"{run}:2", "query 'q1'", "'1_000'")
    assert not list(experiment.parent.glob("out/**/*.json"))

"""Ids that the corpus lacks, and ids of another chunking, are told by all that measure, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main

TRUTH: dict[str, Any] = {"q1": [["a"]], "q2": [["gone"]]}
RUN, CORPUS = {"q1": ["a"], "q2": ["c"]}, {"a": "alpha", "c": "gamma"}
ABSENT = "1 ground truth id is not in the corpus, so it can never be retrieved: 'gone'"
FUNCTIONS: list[Callable[..., Any]] = [
    lambda **options: groupgt.evaluate(TRUTH, RUN, ["recall"], **options),
    lambda **options: groupgt.compare(TRUTH, {"one": RUN, "two": RUN}, ["recall"], resamples=10, **options),
    lambda **options: groupgt.misses(TRUTH, RUN, **options),
    lambda **options: groupgt.depth(TRUTH, RUN, **options),
    lambda **options: groupgt.check(TRUTH, RUN, **options),
    lambda **options: groupgt.identify(TRUTH, RUN, 0.5, **options),
    lambda **options: groupgt.agree(TRUTH, RUN, other_truth={"q1": [["a"]]}, **options),
    lambda **options: groupgt.check(TRUTH, **options),
]


@pytest.mark.parametrize("measure", FUNCTIONS)
def test_functions_tell_what_the_corpus_lacks_once(
    measure: Callable[..., Any], recwarn: pytest.WarningsRecorder
) -> None:
    measure(corpus=CORPUS)
    assert [str(each.message) for each in recwarn] == [ABSENT]
    with pytest.raises(groupgt.DataError, match=rf"{ABSENT} \(absent=error\); correct the ids"):
        measure(corpus=CORPUS, policy="absent=error")
    measure(corpus=CORPUS, policy="absent=ignore")
    assert len(recwarn) == 1


def test_only_ids_are_looked_up_in_the_corpus() -> None:
    parents = {"use": "parents", "with": {"pattern": "(.*)#.*"}}
    found = groupgt.evaluate({"q": [["d"]]}, {"q": ["d#2"]}, ["recall"], labeller=parents, corpus={"d#2": "two"})
    assert found.means == {"recall": 1.0}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {
        "t.jsonl": [{"qid": qid, "query": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items()],
        "r.jsonl": [{"qid": qid, "retrieved_ids": ids} for qid, ids in RUN.items()],
        "c.jsonl": [{"doc_id": name, "contents": text} for name, text in CORPUS.items()],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "e.yaml").write_text(
        "version: 1\nname: e\ndatasets: {d: {ground_truth: t.jsonl, corpus: c.jsonl}}\n"
        "systems: {s: {use: results, with: {path: r.jsonl}}}\nevaluate: {metrics: [recall]}\noutput: {formats: []}\n"
    )


COMMANDS = {
    "evaluate": ["evaluate", "t.jsonl", "r.jsonl"],
    "compare": ["compare", "t.jsonl", "r.jsonl", "two=r.jsonl", "--resamples", "10"],
    "misses": ["misses", "t.jsonl", "r.jsonl"],
    "check": ["check", "t.jsonl", "r.jsonl"],
    "stages": ["stages", "t.jsonl", "one=r.jsonl", "two=r.jsonl"],
    "identify": ["identify", "t.jsonl", "r.jsonl", "0.5"],
    "run": ["run", "e.yaml"],
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_tell_what_the_corpus_lacks_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, policy = ["--corpus", "c.jsonl"], ["--policy", "absent=error"]
    if command == "run":
        corpus, policy = [], ["--set", "evaluate.policy.absent=error"]

    def said(*words: str) -> tuple[int, str]:
        status = 0
        try:
            main([*COMMANDS[command], *words])
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, capsys.readouterr().err

    assert said(*corpus)[1].count(ABSENT) == 1
    if corpus:
        status, error = said(*policy)
        assert status == 2
        assert (
            "absent=error policy compares ids with a corpus, but no corpus was given; add a corpus (--corpus" in error
        )
    status, error = said(*corpus, *policy)
    assert status == 2
    assert f"{ABSENT} (absent=error)" in error


def ranked(matched: int, other: str, count: int = 30) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Ground truth of chunks, and results of others, of which the first few have the same ids."""
    truth = {f"q{n}": [[f"chunk-{n}"]] for n in range(count)}
    return truth, {f"q{n}": [f"chunk-{n}" if n < matched else f"{other}{n}", f"{other}{n + 99}"] for n in range(count)}


@pytest.mark.parametrize(("matched", "other"), [(1, "c512-"), (8, "c512-"), (14, "c512-"), (1, "chunk-9")])
def test_a_leftover_id_silences_no_doubt(matched: int, other: str) -> None:
    with pytest.warns(groupgt.GroupgtWarning, match="is the run from the same corpus and chunking"):
        groupgt.evaluate(*ranked(matched, other), ["recall"])


@pytest.mark.parametrize(("matched", "other", "count"), [(5, "chunk-9", 30), (20, "c512-", 30), (1, "c512-", 9)])
def test_weak_systems_are_not_doubted(matched: int, other: str, count: int) -> None:
    groupgt.evaluate(*ranked(matched, other, count), ["recall"])

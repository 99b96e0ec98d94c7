"""A judge of the user's own: asked once for each content, in batches, and never silently wrong."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.labellers.code import Options, Pair, _digest
from groupgt.report.run import run_experiment
from groupgt.store.verdicts import VerdictStore

ROOT = Path(__file__).parents[2]
TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["a"]]}
RUN = {"q1": ["x1", "x2", "x3"], "q2": ["x1"]}
TEXTS = {"x1": "one a", "x2": "two", "x3": "three c", "a": "a", "b": "b", "c": "c"}


class Judge:
    """Says yes where the result's text ends in the alternative's, and remembers what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[Pair]] = []

    def __call__(self, pairs: list[Pair]) -> list[bool]:
        self.batches.append(list(pairs))
        return [str(pair.result_text).endswith(f" {pair.alternative_text}") for pair in pairs]


def evaluated(target: Any, cache: Path | None = None, **options: Any) -> groupgt.Evaluation:
    store = None if cache is None else VerdictStore(cache / "verdicts")
    labeller = labeller_of({"use": "code", "with": {"target": target, **options}}, Sources(TEXTS, judged=store))
    evaluation = groupgt.evaluate(TRUTH, RUN, ["recall", "mrr"], labeller=labeller)
    if store is not None:
        store.finish()
    return evaluation


def test_a_judge_sees_texts_and_is_asked_once_for_each_content() -> None:
    judge = Judge()
    found = evaluated(judge, batch_size=4)
    # q1: x1 hits a, x3 hits c: both groups; q2: x1 hits a.
    assert found.means == {"recall": 1.0, "mrr": pytest.approx(((1 + 1 / 3) / 2 + 1) / 2)}
    # q1 has 3 results × 3 alternatives, q2 one pair: its question is another, so that it is asked as well.
    assert [len(batch) for batch in judge.batches] == [4, 4, 2]
    assert judge.batches[0][0] == Pair("q1", None, "a", "a", "x1", "one a")


def test_each_run_asks_again_unless_the_judge_has_a_version(tmp_path: Path) -> None:
    first, second = Judge(), Judge()
    one, two = evaluated(first, tmp_path), evaluated(second, tmp_path)
    assert one.means == two.means
    assert sum(map(len, first.batches)) == sum(map(len, second.batches)) == 10
    for judge, version, asked in ((first, "1", 20), (second, "1", 10), (second, "2", 20)):
        evaluated(judge, tmp_path, version=version)
        assert sum(map(len, judge.batches)) == asked


@pytest.mark.parametrize("score", [True, 1, 1.0, 0.5, np.bool_(True), np.float64(0.5)])
def test_verdicts_of_many_types(score: Any) -> None:
    assert evaluated(lambda pairs: [score] * len(pairs)).means["recall"] == 1
    assert evaluated(lambda pairs: (score for _ in pairs)).means["recall"] == 1
    assert evaluated(lambda pairs: np.array([bool(score)] * len(pairs))).means["recall"] == 1


def raises(pairs: Sequence[Pair]) -> list[bool]:
    raise TimeoutError("the model is away")


FAILURES: list[tuple[Callable[[Any], Any], str]] = [
    (raises, r"failed on a batch of 10 pairs \(.*query 'q1', result 'x1'\): TimeoutError: the model is away"),
    (lambda pairs: [True], "expected 10 verdicts, one per pair, found 1"),
    (lambda pairs: [True] * 11, "expected 10 verdicts, one per pair, found 11"),
    (lambda pairs: None, "failed on a batch .* TypeError"),
    (lambda pairs: "yes", "expected 10 verdicts, one per pair, found 'yes'"),
    (lambda pairs: "y" * len(pairs), "expected 10 verdicts, one per pair, found 'yyyyyyyyyy'"),
    (lambda pairs: dict.fromkeys(range(len(pairs)), True), "expected 10 verdicts, one per pair, found {0: True, "),
    (lambda pairs: ["yes"] * len(pairs), "query 'q1', result 'x1': expected True, False or a number .*found 'yes'"),
    (lambda pairs: [None] * len(pairs), "found None"),
    (lambda pairs: [float("nan")] * len(pairs), "found nan"),
    (lambda pairs: [2] * len(pairs), "expected True, False or a number from 0 to 1, found 2"),
]


@pytest.mark.parametrize(("target", "words"), FAILURES, ids=[words[:40] for _, words in FAILURES])
def test_a_judge_that_fails_is_an_error_and_never_a_zero(target: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError, match=words):
        evaluated(target)


def test_every_verdict_that_is_none_is_named() -> None:
    with pytest.raises(groupgt.DataError) as caught:
        evaluated(lambda pairs: [2, *[True] * (len(pairs) - 2), "no"])
    assert [fault.partition("found ")[2] for fault in caught.value.faults] == ["2", "'no'"]


@pytest.mark.parametrize("target", [7, b"a:b", "", "mine", ":judge", "mine:"])
def test_a_target_that_is_none_is_refused(target: Any) -> None:
    with pytest.raises(groupgt.ConfigError, match="module:function"):
        evaluated(target)


def test_a_judge_sees_what_alternatives_say() -> None:
    """Texts say themselves, ids what the reference holds, places nothing."""
    judge = Judge()
    groups = [[{"text": "one"}, "a", "unknown", {"doc": "d", "start": 0, "end": 1}]]
    labeller = labeller_of({"use": "code", "with": {"target": judge, "corpus": {}, "reference": TEXTS | {"a": "two"}}})
    groupgt.evaluate({"q": groups}, {"q": ["x1"]}, ["recall"], labeller=labeller)
    assert [(pair.alternative, pair.alternative_text) for pair in judge.batches[0]] == [
        *(("one", "one"), ("a", "two"), ("unknown", None), ("d[0:1]", None)),
    ]
    assert {pair.result_text for pair in judge.batches[0]} == {None}


def test_batches_are_of_32_pairs_unless_told() -> None:
    judge = Judge()
    assert Options().batch_size == 32
    labeller = labeller_of({"use": "code", "with": {"target": judge}})
    groupgt.evaluate({"q": [[f"a{number}" for number in range(40)]]}, {"q": ["x"]}, ["recall"], labeller=labeller)
    assert [len(batch) for batch in judge.batches] == [32, 8]


class Kept(dict[str, float]):
    """Verdicts in memory, and how often room was made for more."""

    prepared = 0

    def available(self, keys: Sequence[str]) -> dict[str, float]:
        return {key: self[key] for key in keys if key in self}

    def prepare(self) -> None:
        self.prepared += 1

    def keep(self, scores: dict[str, float]) -> None:
        assert self.prepared
        self.update(scores)


def test_room_for_verdicts_is_made_before_anything_is_asked() -> None:
    """And where nothing is asked it is left alone."""
    kept = Kept()

    class Keeping(Sources):
        def verdicts(self, judge: str, *, vouched: bool) -> Any:
            return kept

    for asked, prepared in ((10, 1), (10, 1)):
        judge = Judge()
        labeller = labeller_of({"use": "code", "with": {"target": judge}}, Keeping(TEXTS))
        groupgt.evaluate(TRUTH, RUN, ["recall"], labeller=labeller)
        assert (len(kept), kept.prepared) == (asked, prepared)
    assert judge.batches == []


def test_verdicts_are_kept_by_what_was_judged() -> None:
    """By the same key in every version: what was paid for stays known."""

    def key(content: str) -> str:
        return hashlib.sha256(content.encode()).hexdigest()

    assert _digest(Pair("q", "où?", "a", "là", "x", "ici")) == key('["où?", ["text", "là"], ["text", "ici"]]')
    assert _digest(Pair("q", None, "a", None, "x", None)) == key('[["qid", "q"], ["id", "a"], ["id", "x"]]')
    assert _digest(Pair("q", "", "a", "", "x", "")) == key('["", ["text", ""], ["text", ""]]')


def test_what_was_judged_before_a_failure_is_kept(tmp_path: Path) -> None:
    judge = Judge()

    def tires(pairs: list[Pair]) -> list[bool]:
        if len(judge.batches) == 2:
            raise ConnectionError
        return judge(pairs)

    with pytest.raises(groupgt.DataError, match="ConnectionError"):
        evaluated(tires, tmp_path, batch_size=3, version="1")
    # The same version, rested: only what is left is asked.
    judge.batches.append([])
    evaluated(tires, tmp_path, batch_size=3, version="1")
    assert [len(batch) for batch in judge.batches] == [3, 3, 0, 3, 1]


@pytest.mark.faults
@pytest.mark.skipif(os.name == "nt", reason="processes end otherwise there")
def test_what_was_judged_before_a_kill_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import pathlib, time\n"
        "LOG = pathlib.Path(__file__).with_name('log')\n"
        "def judge(pairs):\n"
        "    with LOG.open('a') as log:\n"
        "        log.write(f'{len(pairs)}\\n')\n"
        "    if LOG.read_text().count('\\n') == 3:\n"
        "        LOG.with_name('waiting').touch()\n"
        "        time.sleep(600)\n"
        "    return [True] * len(pairs)\n",
        encoding="utf-8",
    )
    truth, results = tmp_path / "truth.jsonl", tmp_path / "run.jsonl"
    lines = (json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in TRUTH.items())
    truth.write_text("".join(lines), encoding="utf-8")
    lines = (json.dumps({"qid": qid, "retrieved_ids": ids}) + "\n" for qid, ids in RUN.items())
    results.write_text("".join(lines), encoding="utf-8")
    words = [sys.executable, "-m", "groupgt", "evaluate", str(truth), str(results), "-m", "recall", "--allow-code"]
    words += ["--labeller", "code", "--with", "target=mine:judge", "--with", "batch_size=4", "--with", "version=1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=tmp_path, env=environment) as first:  # our own interpreter
        while not (tmp_path / "waiting").exists():
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
    (tmp_path / "waiting").unlink()
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "1.0000" in done.stdout
    # Four, four and two; the last two were asked again, for their verdicts never came.
    assert (tmp_path / "log").read_text(encoding="utf-8").split() == ["4", "4", "2", "2"]


@pytest.mark.slow
def test_the_example_judges_in_an_experiment(tmp_path: Path) -> None:
    changes = [f"cache={tmp_path / 'cache'}"]
    with pytest.raises(groupgt.ConfigError, match="--allow-code"):
        run_experiment(ROOT / "examples" / "judge.yaml", output=tmp_path, changes=changes)
    outcome = run_experiment(ROOT / "examples" / "judge.yaml", output=tmp_path, changes=changes, allow_code=True)
    found = outcome.evaluations["sentences"]["bm25"]
    assert 0.4 < found["recall@10"] < 1
    assert "labeller code (llm_judge:judge ≥ 0.5, version fake 1)" in found.footer()
    assert len(list((tmp_path / "cache" / "verdicts").iterdir())) == 1

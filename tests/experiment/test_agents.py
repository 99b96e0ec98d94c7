"""Memories, conversations and agents: the examples, and the numbers of two benchmarks by their own formulas."""

from __future__ import annotations

import json
import math
import random
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.report.run import run_experiment

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_own_metrics")]
# Of the two questions with an answer, m1 has its sessions at ranks 2 and 3 (2 of its 8 words each, after 4 of 8), and
# m2 its only one at rank 1. ndcg_any@2 of m1 is 1 ÷ (1 + 1). The session found for m3_abs has 2 of its 8 words.
MEMORY = {"recall_any@2": 1, "recall_all@2": 0.5, "ndcg_any@2": 0.75, "abstains": 0, "abstains@0.3score": 1}
# complete@2calls: a1 in two of three trials, a2 in one, a3 in all; all three succeed for a3 alone.
AGENT = {"complete@1calls": 1 / 3, "complete@2calls": 2 / 3, "complete(pass_all=3)": 1 / 3}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("memory", {"memory": MEMORY}),
        # Without "Saver", a refund is found first for the other ticket.
        ("conversation", {"last_turn": {"recall@1": 0.75}, "history": {"recall@1": 1}}),
        # Ranks at which queries are complete, 2 or 1 or never: (1/2 · 2/3 + 1/2 · 1/3 + 1) ÷ 3.
        ("agent", {"agent": {**AGENT, "completion_rr": 1 / 2}}),
    ],
)
def test_the_examples(name: str, expected: dict[str, dict[str, float]], tmp_path: Path) -> None:
    outcome = run_experiment(EXAMPLES / f"{name}.yaml", output=tmp_path, allow_code=True)
    (evaluations,) = outcome.evaluations.values()
    assert evaluations.keys() == expected.keys()
    for system, means in expected.items():
        assert {text: evaluations[system][text] for text in means} == pytest.approx(means)
    assert outcome.passed


def test_the_agent_writes_what_is_there(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "agents", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "agents" / "agent.jsonl").unlink()
    runpy.run_path(str(tmp_path / "agents" / "agents.py"), run_name="__main__")
    assert (tmp_path / "agents" / "agent.jsonl").read_bytes() == (EXAMPLES / "agent.jsonl").read_bytes()


def of_longmemeval(ranking: list[str], gold: list[str], k: int) -> tuple[float, float, float]:
    """recall_any, recall_all and ndcg_any of one question, as Wu et al. 2025 (arXiv 2410.10813) compute them."""

    def dcg(gains: list[int]) -> float:
        return sum(gain / (1 if rank == 1 else math.log2(rank)) for rank, gain in enumerate(gains, 1))

    top = ranking[:k]
    ideal = dcg([1] * min(len(gold), k))
    reached = dcg([int(name in gold) for name in top])
    return float(any(name in top for name in gold)), float(all(name in top for name in gold)), reached / ideal


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_longmemeval_are_those_of_its_formulas(seed: int, tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "agents.py"))  # ndcg_any
    chance = random.Random(seed)
    records, run = [], {}
    for number in range(40):
        sessions = [f"s{number}_{place}" for place in range(chance.randint(3, 12))]
        name = f"q{number}" + "_abs" * (number % 8 == 0)
        gold = chance.sample(sessions, chance.randint(1, 3))
        about = {"question_type": "multi-session", "haystack_session_ids": sessions, "answer_session_ids": gold}
        records.append({"question_id": name, "question": f"Question {number}?", **about})
        run[name] = chance.sample(sessions, len(sessions))
    (tmp_path / "longmemeval_s.json").write_text(json.dumps(records))
    for k in (1, 3, 5, 10):
        metrics = [f"recall_any@{k}", f"recall_all@{k}", f"ndcg_any@{k}"]
        evaluation = groupgt.evaluate(tmp_path / "longmemeval_s.json", run, metrics)
        expected = {
            record["question_id"]: of_longmemeval(run[record["question_id"]], record["answer_session_ids"], k)
            for record in records
            if not record["question_id"].endswith("_abs")
        }
        rows = {qid: values for qid, *values in evaluation.per_query.rows() if None not in values}
        assert rows == {qid: pytest.approx(values, abs=1e-12) for qid, values in expected.items()}
    assert evaluation.counts["unanswerable"] == 5
    truth = groupgt.read_ground_truth(tmp_path / "longmemeval_s.json")
    assert truth.columns["haystack_session_ids"] == [record["haystack_session_ids"] for record in records]


def of_locomo(ranking: list[str], evidence: list[str], k: int) -> float:
    """The recall of one question's evidence, as Maharana et al. 2024 (arXiv 2402.17753) compute it."""
    return sum(turn in ranking[:k] for turn in evidence) / len(evidence)


def locomo_values(path: Path, seed: int, k: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Recall of random rankings of a conversation's turns, by groupgt and by the formula.

    Questions to abstain from have none. A turn that is named twice is one group, but counts twice in the formula.
    """
    chance = random.Random(seed)
    run, expected = {}, {}
    for record in json.loads(path.read_text(encoding="utf-8")):
        turns = [
            turn["dia_id"] for key, each in record["conversation"].items() if isinstance(each, list) for turn in each
        ]
        for number, question in enumerate(record["qa"]):
            qid, evidence = f"{record['sample_id']}:{number}", list(dict.fromkeys(question["evidence"]))
            # Those of the evidence come early, to be found at times.
            ranking = list(dict.fromkeys([*chance.sample(evidence, len(evidence)), *chance.sample(turns, 20)]))
            chance.shuffle(ranking)
            run[qid] = [f"{record['sample_id']}:{turn}" for turn in ranking]
            if question["category"] != 5 and evidence and all(turn in turns for turn in evidence):
                expected[qid] = of_locomo(ranking, evidence, k)
    recall = groupgt.evaluate(path, run, [f"recall@{k}"]).per_query
    return {qid: value for qid, value in recall.rows() if qid in expected}, expected


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_locomo_are_those_of_its_formula(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    records = []
    for sample in range(3):
        turns = [[f"D{session}:{turn}" for turn in range(1, 9)] for session in range(1, 5)]
        talk = {f"session_{at}": [{"dia_id": name, "text": "…"} for name in each] for at, each in enumerate(turns, 1)}
        names = [name for each in turns for name in each]
        questions = [
            {
                "question": f"Question {number}?",
                "evidence": chance.sample(names, chance.randint(1, 4)),
                "category": kind,
            }
            for number, kind in enumerate([1, 2, 3, 4, 5] * 4)
        ]
        records.append({"sample_id": f"conv-{sample}", "conversation": talk, "qa": questions})
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(records))
    values, expected = locomo_values(path, seed, 10)
    assert len(expected) == 48  # 4 of 5 categories
    assert values == pytest.approx(expected, abs=1e-12)
    assert groupgt.evaluate(path, {}, ["recall"]).counts["unanswerable"] == 12

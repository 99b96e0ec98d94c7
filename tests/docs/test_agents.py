"""What is written for coding agents: the skill followed to the letter, and files that other tools expect."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from groupgt.cli.main import main
from groupgt.report.decision import Badge
from tests.docs import blocks
from tests.docs.blocks import ROOT

SKILL = (ROOT / "skills" / "groupgt" / "SKILL.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
PASSAGES = {
    "leave": "Full-time staff have 25 days of paid leave a year. Unused days expire in March.",
    "faq-leave": "How many days off do I get? Twenty-five a year, plus public holidays.",
    "parental": "Parents may take up to twelve months of parental leave, two of them paid in full.",
    "booking": "Book trains and flights through the travel desk, at least a week ahead.",
    "expenses": "Expenses are refunded within ten days when receipts are attached.",
    "abroad": "Working from abroad is allowed for 20 days a year and needs the manager's consent.",
}
LEAVE, BOOKING, EXPENSES = ["leave", "faq-leave"], ["booking"], ["expenses"]
QUESTIONS: list[tuple[str, list[list[str]]]] = [
    ("How many days of leave do I have?", [LEAVE]),
    ("How do I book a flight, and when is it refunded?", [BOOKING, EXPENSES]),
    ("Can I work from Spain, and do the days count as leave?", [["abroad"], LEAVE]),
    ("Is parental leave paid?", [["parental"]]),
    ("When do unused days expire?", [["leave"]]),
    ("How early must trains be booked?", [BOOKING]),
    ("What do I attach to get expenses back?", [EXPENSES]),
    ("Who agrees to work from abroad?", [["abroad"]]),
    ("How long is parental leave, and how long is leave a year?", [["parental"], LEAVE]),
    ("Can I bring my dog to the office?", []),
]


def search(question: str) -> list[str]:
    """A search that finds the first passage in the order of their names with any word of the question."""
    words = set(re.findall(r"\w+", question.lower()))
    return [name for name, text in sorted(PASSAGES.items()) if words & set(text.lower().split())][:1]


def test_the_skill_leads_from_passages_and_ten_questions_to_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    monkeypatch.chdir(tmp_path)
    Path("passages").mkdir()
    for name, text in PASSAGES.items():
        Path("passages", f"{name}.txt").write_text(text, encoding="utf-8")
    with Path("questions.jsonl").open("w") as file:
        for number, (question, groups) in enumerate(QUESTIONS, 1):
            row: dict[str, Any] = {"qid": f"q{number}", "query": question, "retrieval_gt": groups}
            file.write(json.dumps(row if groups else row | {"answerable": False}) + "\n")
    with Path("found.jsonl").open("w") as file:
        for number, (question, _) in enumerate(QUESTIONS, 1):
            file.write(json.dumps({"qid": f"q{number}", "retrieved_ids": search(question)}) + "\n")
    blocks.run(SKILL)
    assert len(Path("corpus.jsonl").read_text().splitlines()) == 6

    # What the text says about the outputs.
    def shown(command: str) -> Any:
        assert command in SKILL
        printed, status = blocks.command(shlex.split(command)[1:])
        assert status == 0
        return json.loads(printed)

    checked = shown("groupgt check questions.jsonl --corpus corpus.jsonl --format json")
    assert checked["fails"] == {}
    assert not any(finding["suspicious"] and finding["count"] for finding in checked["findings"]["questions.jsonl"])
    decision = shown("groupgt run experiment.yaml --format json")["datasets"]["mine"]["decision"]
    assert decision["badge"] == "Worse"
    assert "search" in decision["sentence"]
    assert "9 queries" in decision["evidence"]
    missed = shown("groupgt misses results/search/latest --system search -k 5 --format json")
    ranks = [group["rank"] for query in missed["queries"] for group in query["groups"] if not group["covered"]]
    assert ranks
    assert set(ranks) == {None}
    detected = shown("groupgt power results/search/latest --format json")["rows"]
    assert {"system", "metric", "queries", "detectable"} <= detected[0].keys()
    assert set(re.findall(r"`([A-Z]\w+)`", SKILL)) <= set(get_args(Badge))


def test_the_skill_says_what_it_is() -> None:
    _, front, _ = SKILL.split("---\n", 2)
    described = yaml.safe_load(front)
    assert described["name"] == "groupgt"
    assert "retriever" in described["description"]
    assert len(re.findall(r"^## \d\. ", SKILL, re.MULTILINE)) == 5


def test_the_page_for_agents_is_short_and_names_what_exists() -> None:
    assert len(AGENTS.splitlines()) <= 80
    paths = [
        path for path in re.findall(r"(?:groupgt|tests|configs|skills|docs)/[\w./]*\w", AGENTS) if "NAME" not in path
    ]
    assert "tests/test_house.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
    folders = re.findall(r"`(\w+)/`", AGENTS.partition("## Before")[0].partition("| contents |")[2])
    assert set(folders) <= {path.name for path in (ROOT / "groupgt").iterdir()}
    assert (
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest -n auto" in AGENTS
    )


def test_the_hook_checks_ground_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (tmp_path / "questions.jsonl").write_text(
        '{"qid": "q", "retrieval_gt": [["a"]]}\n{"qid": "q", "retrieval_gt": [["b"]]}\n'
    )
    for name in ("data/questions.jsonl", "runs/bm25.trec.gz", "experiment.yaml"):
        assert re.search(hook["files"], name)
    assert hook["verbose"]  # a check that passes may have something to say, too
    with pytest.raises(SystemExit) as end:
        main([*hook["entry"].split()[1:], str(tmp_path / "questions.jsonl")])
    assert end.value.code == 2
    assert "questions.jsonl:2" in capsys.readouterr().err
    # Without arguments it says what to write.
    with pytest.raises(SystemExit) as end:
        main(hook["entry"].split()[1:])
    assert end.value.code == 2
    assert f"- {{id: {hook['id']}, args: [experiment.yaml]}}" in capsys.readouterr().err

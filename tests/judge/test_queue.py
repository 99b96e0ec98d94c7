"""The queue of an audit: planted faults come before most of the rest."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from groupgt.formats.corpus import read_corpus
from groupgt.judge.audit import questions
from groupgt.judge.index import Index

pytestmark = pytest.mark.slow

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
Groups = dict[str, list[list[str]]]


def planted(seed: int, groups: Groups) -> tuple[Groups, set[tuple[str, str]], dict[str, tuple[int, int]]]:
    """30 errors in 30 queries: an alternative is removed from 15 groups, and 15 groups are split in two."""
    rng = random.Random(seed)
    faulty = {qid: [list(group) for group in own] for qid, own in groups.items()}
    places = [(qid, at) for qid, own in groups.items() for at, group in enumerate(own) if len(group) > 1]
    rng.shuffle(places)
    chosen = list(dict(reversed(places)).items())[:30]
    removed: set[tuple[str, str]] = set()
    split: dict[str, tuple[int, int]] = {}
    for number, (qid, at) in enumerate(chosen):
        group = faulty[qid][at]
        rng.shuffle(group)
        if number < 15:
            removed.add((qid, group.pop()))
        else:
            end = rng.randrange(1, len(group))
            faulty[qid][at] = group[:end]
            faulty[qid].append(group[end:])
            split[qid] = (at + 1, len(faulty[qid]))
    return faulty, removed, split


def test_planted_faults_come_early() -> None:
    rows = [json.loads(line) for line in (HANDBOOK / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    groups = {row["qid"]: row["retrieval_gt"] for row in rows}
    texts = {row["qid"]: row["query"] for row in rows}
    index = Index(read_corpus(HANDBOOK / "corpus.jsonl"))
    early = []
    for seed in range(4):
        faulty, removed, split = planted(seed, groups)
        found: dict[object, int] = {}
        rest = 0
        for each in questions(faulty, texts, index):
            is_removed = (each.qid, each.doc) in removed
            is_split = each.doc is None and each.group in split.get(each.qid, ())
            if is_removed or is_split:
                found.setdefault((each.qid, each.doc) if is_removed else each.qid, rest)
            else:
                rest += 1
        early.append(sum(before <= 0.1 * rest for before in found.values()))
    # By chance 3 of 30 would be there.
    assert min(early) >= 27

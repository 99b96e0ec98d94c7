"""What is doubtful in ground truth and results, found without scoring anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from groupgt.curation.near import near_duplicates
from groupgt.engines.results import renamed
from groupgt.evaluation.evaluate import label_run
from groupgt.evaluation.request import Request
from groupgt.evaluation.unknown_ids import check_known, fold, warn_of_near_ids
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy


@dataclass(frozen=True)
class Finding:
    """One line of a check: what was counted, how many there are, and an example."""

    what: str
    count: int
    example: str = ""


def check_truth(truth: GroundTruth) -> list[Finding]:
    """Sizes, and what may not be meant: undefined queries, groups that say nothing new, ids that nearly match."""
    judgments = truth.judgments
    undefined = [truth.qids[position] for position in np.flatnonzero(~judgments.defined).tolist()]
    same, within = _redundant_groups(truth)
    shared = np.bincount(judgments.alternative_document, minlength=judgments.documents)
    several = sorted({truth.ids[document] for document in np.flatnonzero(shared > 1).tolist()})
    sizes = np.bincount(judgments.groups[judgments.defined])
    return [
        Finding("queries", len(truth)),
        Finding("groups", len(truth.group_query), _shape(sizes)),
        Finding("alternatives", len(truth.ids)),
        Finding("queries without ground truth (undefined)", len(undefined), _first(undefined)),
        Finding("groups without a relevant alternative", truth.irrelevant_groups),
        Finding("groups dropped because they were empty", truth.dropped),
        Finding("ids that stand twice in one group", truth.repeated_ids),
        Finding("documents in several groups of one query", len(several), _first(several)),
        Finding("queries with two equal groups", len(same), _first(same)),
        Finding(
            "queries with a group inside another (what meets the one meets the other)", len(within), _first(within)
        ),
        Finding("ids that differ only in blanks, case or form", *_near(_ids(truth))),
    ]


def check_run(truth: GroundTruth, results: Any, request: Request) -> list[Finding]:
    """Sizes, and what does not fit: queries on one side only, repeats, ties, nothing that matches."""
    judge, plain = request.labeller, Policy(ties=request.policy.ties)
    truth = judge.read(truth)
    run = renamed(truth, request.run_of(results, truth), judge, plain)
    labelled = label_run(truth, run, plain, judge, engine=request.engine)
    dropped = label_run(truth, run, replace(plain, duplicates="drop"), judge, engine=request.engine)
    check_known(run, judge)
    defined = truth.judgments.defined
    if labelled.no_match:
        warn_of_near_ids(truth, run, judge, int((defined & labelled.present).sum()))
    missing = [truth.qids[position] for position in np.flatnonzero(defined & ~labelled.present).tolist()]
    lengths = labelled.hits.length[labelled.present]
    spread = f"{lengths.min():,} to {lengths.max():,} a query, median {np.median(lengths):,.0f}" if len(lengths) else ""
    hit = np.bincount(labelled.hits.query, minlength=len(truth)) > 0
    unmet = [truth.qids[position] for position in np.flatnonzero(defined & labelled.present & ~hit).tolist()]
    return [
        Finding("queries with results", int(labelled.present.sum())),
        Finding("results of these", int(lengths.sum()), spread),
        Finding("judged queries without results (missing)", len(missing), _first(missing)),
        Finding("queries without ground truth (extra)", labelled.extra),
        Finding("queries with a repeated result", dropped.duplicated),
        Finding("queries with a repeated relevant result", labelled.duplicated),
        Finding("queries with a hit among equal scores", len(np.unique(labelled.tie_query))),
        Finding("queries none of whose results hits an alternative", len(unmet), _first(unmet)),
    ]


def check_duplicates(truth: GroundTruth, corpus: Mapping[str, str], threshold: float) -> Finding:
    """How many passages nearly equal a relevant alternative of a query and are not judged there."""
    found = near_duplicates(truth, corpus, threshold)
    some = [f"{each.qid}: {each.candidate} ≈ {each.alternative} ({each.similarity:.2f})" for each in found]
    return Finding("passages that nearly equal a judged alternative and are not judged", len(found), _first(some))


def _shape(sizes: Any) -> str:
    return ", ".join(f"{count:,} queries with {number}" for number, count in enumerate(sizes.tolist()) if count)


def _first(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _redundant_groups(truth: GroundTruth) -> tuple[list[str], list[str]]:
    same, within = [], []
    groups: dict[int, list[set[str]]] = {}
    for group, names in _members(truth):
        groups.setdefault(int(truth.group_query[group]), []).append(names)
    for query, own in groups.items():
        pairs = list(combinations(own, 2))
        if any(first == second for first, second in pairs):
            same.append(truth.qids[query])
        elif any(first < second or second < first for first, second in pairs):
            within.append(truth.qids[query])
    return same, within


def _members(truth: GroundTruth) -> Iterable[tuple[int, set[str]]]:
    members: dict[int, set[str]] = {}
    for alternative in np.flatnonzero(truth.grade > 0).tolist():
        members.setdefault(int(truth.group_of[alternative]), set()).add(truth.ids[alternative])
    return members.items()


def _ids(truth: GroundTruth) -> list[str]:
    """The alternatives that are ids."""
    return [name for name, form in zip(truth.ids, truth.forms) if form is None] if truth.forms else truth.ids


def _near(names: Iterable[str]) -> tuple[int, str]:
    folded: dict[str, set[str]] = {}
    for name in names:
        folded.setdefault(fold(name), set()).add(name)
    pairs = [sorted(each) for each in folded.values() if len(each) > 1]
    return len(pairs), " and ".join(map(repr, pairs[0][:2])) if pairs else ""

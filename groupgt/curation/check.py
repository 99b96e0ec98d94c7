"""Finds suspicious data in ground truth and results without scoring them, for `groupgt check`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Annotated, Any, Unpack

import numpy as np

from groupgt.curation.near import Candidate
from groupgt.curation.near import near_duplicates as nearly_equal_passages
from groupgt.curation.rechunk import weak_in
from groupgt.engines.base import Labelled
from groupgt.engines.carriers import renamed
from groupgt.engines.order import contradictions
from groupgt.errors import ConfigError, Faults, warn
from groupgt.evaluation import unknown_ids
from groupgt.evaluation.evaluate import check_directions, label_run
from groupgt.evaluation.joined_ids import fault_of_joined, warn_of_joined
from groupgt.evaluation.options import LabelOptions, Truth, takes_options
from groupgt.evaluation.reading import are_several
from groupgt.evaluation.request import Request
from groupgt.evaluation.runs import named_runs
from groupgt.formats.tables import NONRELEVANT
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ALONE
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.populations import Populations
from groupgt.model.run import Run
from groupgt.model.values import normal_text
from groupgt.options import Doc
from groupgt.render.results import Result
from groupgt.render.tables import counted

UNDEFINED, COMMENTS = "queries without ground truth (undefined)", "lines that begin with # (comments)"
REFUSED = "errors that stop an evaluation"
# What to do about scores that rise.
DISTANCES = "declare distances with scores=ascending"
# Ids are cut to this length; if groups have more sizes than this, only the range of sizes is shown.
NAME, SIZES = 40, 4
# Number of names shown of a finding.
EXAMPLES = 3
# The relevant groups of each query, as sets of their members.
Groups = dict[int, list[frozenset[tuple[str, ...]]]]


@dataclass(frozen=True)
class Finding:
    """One line of a check: a description, a count and an example. A finding may be suspicious, or fail the check."""

    what: str
    count: int
    example: str = ""
    suspicious: bool = False
    fails: bool = False


@dataclass(frozen=True)
class Check(Result):
    """Findings for the ground truth and for each run. `findings` maps names to findings, ground truth first.

    `candidates` holds the near-duplicates of judged passages, if groupgt searched for any.
    """

    findings: dict[str, list[Finding]]
    candidates: Sequence[Candidate] = ()

    @property
    def problems(self) -> dict[str, int]:
        """The number of problems of each kind, in all files."""
        return self._counts("suspicious")

    @property
    def fails(self) -> dict[str, int]:
        """The number of problems of each kind that make the check fail, because they would make scores wrong."""
        return self._counts("fails")

    def _counts(self, kind: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for finding in chain.from_iterable(self.findings.values()):
            if getattr(finding, kind) and finding.count:
                counts[finding.what] = counts.get(finding.what, 0) + finding.count
        return counts

    @property
    def undefined(self) -> int:
        """The number of queries without ground truth."""
        return sum(each.count for each in chain.from_iterable(self.findings.values()) if each.what == UNDEFINED)


@takes_options(
    LabelOptions, corpus="The corpus in which to look for ground truth ids: a path, a frame or `{id: text}`."
)
def check(
    truth: Truth,
    runs: Annotated[
        Any, Doc("One run, `{name: run}`, or paths to files or a folder; if None, only the ground truth is checked.")
    ] = None,
    *,
    near_duplicates: Annotated[
        bool, Doc("Search `corpus` for unjudged passages that are nearly identical to a judged alternative.")
    ] = False,
    threshold: Annotated[float, Doc("Minimum similarity of near-duplicates.")] = 0.9,
    **options: Unpack[LabelOptions],
) -> Check:
    """Count errors and suspicious data in ground truth and runs, without scoring the runs.

    Raises `DataError` or `ConfigError`.

    >>> findings = check({"q": [["a"], ["a"]]}, {"q": ["a", "a"]}).findings
    >>> [(finding.what, finding.example) for finding in findings["truth"] if "identical" in finding.what]
    [('queries with two identical groups', 'q')]
    """
    options["policy"] = Policy.of(options.get("policy")).of_checks
    request = Request.of(**options)
    grouped = request.truth_of(truth)
    if runs is None:
        named = []
    elif isinstance(runs, (list, tuple, str, os.PathLike)) or are_several(runs, grouped):
        pairs = named_runs(runs, options.get("run_columns"))
        named = [(name if isinstance(runs, Mapping) else str(run), run) for name, run in pairs]
    else:
        named = [("run", runs)]
    request.reading.require_columns([run for _, run in named])
    file = truth if isinstance(truth, (str, os.PathLike)) else None
    if near_duplicates and not request.passages:
        raise ConfigError("near_duplicates: needs passage text; pass corpus")
    name, minimum = "truth" if file is None else str(file), threshold if near_duplicates else None
    return checked(name, grouped, named, request, minimum, file=file)


def checked(
    name: str,
    truth: GroundTruth,
    runs: Sequence[tuple[str, Any]],
    request: Request,
    threshold: float | None = None,
    *,
    file: Any = None,
    title: str = "",
) -> Check:
    """Check loaded ground truth and runs together. With a `threshold`, also search for near-duplicates."""
    findings, texts = {name: check_truth(truth)}, request.passages
    faults, read = Faults(), dict[str, Run]()
    with faults.merging():
        unknown_ids.warn_of_corpus(truth, request, title)
    if file is not None and (weak := weak_in(file, truth)) is not None:
        findings[name].append(_problem("groups mapped with under 90% of their passage", weak))
    if blank := [passage for passage, text in texts.items() if not text.strip()]:
        findings[name].append(_problem("passages without contents", blank, fails=True))
    if texts and request.labeller.name == "id":
        findings[name].append(check_corpus(truth, request))
    if not runs and (fault := fault_of_joined(truth.unsplit, texts)):
        warn(fault)
        findings[name].append(_failing(REFUSED, 1))
    elif not runs:
        warn_of_joined(truth.unsplit, texts)
    candidates = nearly_equal_passages(truth, texts, threshold) if threshold is not None else []
    if threshold is not None:
        near = [f"{each.qid}: {each.candidate} ≈ {each.alternative} ({each.similarity:.2f})" for each in candidates]
        findings[name].append(_problem("unjudged near-duplicates of judged passages", near))
    for run_name, run in runs:
        with faults.merging():
            read[run_name] = request.run_of(run, truth)
    faults.stop()
    check_directions(request.options["scores"], [run.name for run in read.values()])
    for run_name, results in read.items():
        with faults.merging():
            findings[run_name] = check_run(truth, results, request)
    faults.stop()
    return Check(findings, candidates)


def check_truth(truth: GroundTruth) -> list[Finding]:
    """Report sizes and possible mistakes: undefined queries, redundant groups, and ids that nearly match."""
    judgments, populations = truth.judgments, Populations(truth.judgments)
    groups_by_query = _relevant_groups(truth)
    equal, nested = _redundant_groups(truth, groups_by_query)
    same, differing = _asked_twice(truth, groups_by_query)
    # The relevant rows that belong to sets needed together, and these sets.
    in_sets = truth.set_of[truth.is_relevant & (truth.set_of != ALONE)] if truth.set_of is not None else ()
    sets = len(np.unique(in_sets))
    spellings: dict[str, set[str]] = {}
    # Texts and spans are not ids.
    for doc in (name for name, form in zip(truth.ids, truth.forms or repeat(None)) if form is None):
        spellings.setdefault(unknown_ids.fold(doc), set()).add(doc)
    pairs = [sorted(names)[:2] for names in spellings.values() if len(names) > 1]
    # A document that was judged alone is a group of its own.
    is_alone = truth.shape == "flat" or NONRELEVANT in truth.keys
    named = np.array([len(ids) for ids in truth.harmful or ()], dtype=np.int64)
    relevant, rejected = judgments.relevant[judgments.defined], judgments.rejected
    return [
        Finding("queries", len(truth)),
        Finding("groups", len(judgments.group_query), _sizes(judgments.groups[judgments.defined])),
        Finding("alternatives", int(truth.is_relevant.sum()) - len(in_sets) + sets),
        *([Finding("alternatives that are sets needed together", sets)] if sets else []),
        Finding("relevant documents", int(relevant.sum()), _spread(relevant)),
        Finding("documents judged non-relevant", int(rejected.sum()), _spread(rejected[rejected > 0])),
        *([Finding("documents with a negative grade (unjudged)", truth.negative)] if truth.negative else []),
        *([Finding("harmful passages", int(named.sum()), _spread(named[named > 0]))] if named.any() else []),
        _finding(UNDEFINED, _names(truth.qids, populations.undefined)),
        _finding("queries declared unanswerable", _names(truth.qids, populations.unanswerable)),
        *([Finding(COMMENTS, truth.comments)] if truth.comments else []),
        *([] if is_alone else [_failing("groups without a relevant alternative", truth.groups_never_met)]),
        _problem("groups dropped because they were empty", truth.dropped, fails=True),
        *([_problem("groups with a blank id", truth.blank, fails=True)] if truth.blank else []),
        _failing("duplicate ids in a group", truth.repeated_ids),
        _finding("documents in several groups of one query", _shared_documents(truth)),
        *([_problem("queries with the same text and ground truth", same)] if truth.texts else []),
        *([_problem("queries with the same text, but different ground truth", differing)] if truth.texts else []),
        _problem("queries with two identical groups", equal),
        _problem("queries with a group inside another", nested),
        _near("ids that differ in spaces, case or Unicode form", pairs),
    ]


def check_run(truth: GroundTruth, results: Any, request: Request) -> list[Finding]:
    """Report sizes and mismatches: queries on only one side, repeats, ties, and queries without hits.

    With trials, each count is the largest count in any trial.
    """
    labeller, plain = request.labeller, Policy(ties=request.policy.ties)
    truth = labeller.read(truth)
    run = request.run_of(results, truth)
    trials = [renamed(truth, each, labeller, plain) for each in run.each]
    run = Run.of_trials(trials)
    labelled = [label_run(truth, each, plain, labeller, engine=request.engine) for each in trials]
    unknown_ids.warn_of_unknown(run, labeller)
    seen = unknown_ids.Seen.of(labelled, truth)
    faults = (unknown_ids.fault_of_queries(truth, run, seen), unknown_ids.fault_of_lists(truth, run, request))
    refused = list(filter(None, faults))
    for fault in refused:
        warn(fault)
    near = _near("ids that nearly match the ground truth", unknown_ids.warn_of_no_match(truth, run, request, seen))
    largest: dict[str, Finding] = {}
    for finding in chain.from_iterable(_check_trial(truth, *pair, request) for pair in zip(trials, labelled)):
        other = largest.setdefault(finding.what, finding)
        largest[finding.what] = max(other, finding, key=lambda each: (each.count, each.example))
    stopped = [_failing(REFUSED, len(refused))] if refused else []
    return [*stopped, *(each for each in largest.values() if each.count or each.what != COMMENTS), near]


def _check_trial(truth: GroundTruth, run: Run, labelled: Labelled, request: Request) -> list[Finding]:
    # Only a policy that removes repeats looks for all of them in files that are streamed.
    dropping = Policy(ties=request.policy.ties, duplicates="drop")
    dropped = label_run(truth, run, dropping, request.labeller, engine=request.engine)
    populations = Populations(truth.judgments, labelled.present)
    answered = populations.defined & labelled.present
    contradicted, turn = contradictions(run, thorough=True), "fall" if run.ascending else "rise"
    rising = contradicted.rising_scores + contradicted.rising_rows
    lengths = labelled.hits.length[labelled.present]
    has_hit = np.bincount(labelled.hits.query, minlength=len(truth)) > 0
    return [
        Finding("queries with results", int(labelled.present.sum())),
        Finding(COMMENTS, run.by_original_ids.resolved.comments),
        Finding("results for these queries", int(lengths.sum()), _spread(lengths)),
        _problem("judged queries without results (missing)", _names(truth.qids, populations.missing)),
        Finding("queries without ground truth (extra)", labelled.extra),
        _failing("queries with a repeated result", dropped.duplicated),
        Finding("queries with a repeated relevant result", labelled.duplicated),
        Finding("queries with a hit among equal scores", len(np.unique(labelled.tie_query))),
        _finding("queries with no hits", _names(truth.qids, answered & ~has_hit)),
        _failing(f"queries whose scores {turn} along the ranking", rising, "" if run.ascending else DISTANCES),
        _failing("queries whose ranks contradict their scores", contradicted.contradicted_ranks),
    ]


def check_corpus(truth: GroundTruth, request: Request) -> Finding:
    """Count the ids that no search can find because they are missing from the corpus."""
    absent = unknown_ids.absent_ids(truth, request)
    finding = _problem("ids of the ground truth that are not in the corpus", absent, fails=True)
    if absent and (similar := unknown_ids.similar_id(absent[0], request.passages)) is not None:
        return replace(finding, example=f"{absent[0]!r}, where the corpus has {similar!r}")
    return finding


def _names(qids: Sequence[str], chosen: Any) -> list[str]:
    return [qids[query] for query in np.flatnonzero(chosen).tolist()]


def _finding(what: str, names: Sequence[str]) -> Finding:
    return Finding(what, len(names), ", ".join(map(_cut, names[:EXAMPLES])) + (" …" if len(names) > EXAMPLES else ""))


def _problem(what: str, names: Sequence[str], *, fails: bool = False) -> Finding:
    return replace(_finding(what, names), suspicious=True, fails=fails)


def _near(what: str, pairs: Sequence[Sequence[str]]) -> Finding:
    pair = " and ".join(repr(_cut(name)) for name in pairs[0]) if pairs else ""
    return Finding(what, len(pairs), pair, suspicious=True)


def _failing(what: str, count: int, example: str = "") -> Finding:
    return Finding(what, count, example if count else "", suspicious=True, fails=True)


def _cut(name: str) -> str:
    return name if len(name) <= NAME else f"…{name[1 - NAME :]}"


def _spread(counts: Ints) -> str:
    """Format the minimum, maximum and median of counts."""
    if not len(counts):
        return ""
    if counts.min() == counts.max():
        return f"{counts.min():,} a query"
    return f"{counts.min():,} to {counts.max():,} a query, median {np.median(counts):,.0f}"


def _sizes(groups: Ints) -> str:
    """Format the number of queries per number of groups, or the spread if there are many sizes."""
    counts = [(count, size) for size, count in enumerate(np.bincount(groups).tolist()) if count]
    if len(counts) > SIZES:
        return _spread(groups)
    return ", ".join(f"{counted(count, 'query', 'queries')} with {size:,}" for count, size in counts)


def _shared_documents(truth: GroundTruth) -> list[str]:
    """Return the ids of documents that belong to several groups of a query."""
    judgments = truth.judgments
    relevant = judgments.alternative_group >= 0
    documents, groups = judgments.alternative_document[relevant], judgments.alternative_group[relevant]
    # Two sets of one group may share a document.
    pairs = np.unique(documents * len(judgments.group_query) + groups)
    memberships = np.bincount(pairs // max(len(judgments.group_query), 1), minlength=judgments.documents)
    return sorted({truth.ids[document] for document in np.flatnonzero(memberships > 1).tolist()})


def _relevant_groups(truth: GroundTruth) -> Groups:
    """Return the relevant groups of each query that has any, as sets."""
    groups_by_query: Groups = {}
    for group in truth.relevant_groups.tolist():
        groups_by_query.setdefault(int(truth.group_query[group]), []).append(frozenset(truth.members_of(group)))
    return groups_by_query


def _asked_twice(truth: GroundTruth, groups_by_query: Groups) -> tuple[list[str], list[str]]:
    """Return pairs of queries with the same text: those with the same relevant groups, and those with others."""
    of_text: dict[str, list[int]] = {}
    for query, text in enumerate(truth.texts or ()):
        of_text.setdefault(normal_text(text or "").casefold(), []).append(query)
    pairs = ((first, query) for text, (first, *others) in of_text.items() if text for query in others)
    needed = {query: set(groups) for query, groups in groups_by_query.items()}
    found: tuple[list[str], list[str]] = [], []
    for one, other in pairs:
        found[needed.get(one) != needed.get(other)].append(f"{truth.qids[one]} and {truth.qids[other]}")
    return found


def _redundant_groups(truth: GroundTruth, groups_by_query: Groups) -> tuple[list[str], list[str]]:
    """Return queries with two equal groups, and queries with a group inside a larger one."""
    equal, nested = [], []
    for query, groups in groups_by_query.items():
        distinct = set(groups) - {frozenset()}  # groups that nothing covers are not compared
        if len(distinct) < sum(map(bool, groups)):
            equal.append(truth.qids[query])
        groups_with: dict[tuple[str, ...], set[frozenset[tuple[str, ...]]]] = {}
        for names in distinct:
            for name in names:
                groups_with.setdefault(name, set()).add(names)
        if any(len(set.intersection(*(groups_with[name] for name in names))) > 1 for names in distinct):
            nested.append(truth.qids[query])
    return equal, nested

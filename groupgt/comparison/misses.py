"""What runs miss: `misses`, of one run or several, and the groups that the fewest of several runs meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from groupgt.comparison.failures import Failures, failures_of
from groupgt.comparison.schema import FailuresDict
from groupgt.errors import first_of
from groupgt.evaluation.evaluate import evaluate_each, evaluate_run
from groupgt.evaluation.inputs import are_several
from groupgt.evaluation.misses import Misses, check_misses, first_results, misses_of
from groupgt.evaluation.options import OneRunOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import named_runs
from groupgt.evaluation.systems import policy_text
from groupgt.evaluation.verdict import NAMED, appended, doubt, doubts, enumerated, every
from groupgt.render import figures
from groupgt.render.document import Item, Verdict
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.page import data
from groupgt.render.results import Result
from groupgt.render.tables import ALTERNATIVES, Grid, counted


@takes_options(OneRunOptions)
def misses(
    truth: Any,
    run: Any,
    k: int = 10,
    worst: int = 20,
    **options: Unpack[OneRunOptions],
) -> Misses | HardestGroups:
    """Lists the groups that a run does not meet within k results, worst queries first.

    Of several runs, `{name: run}`, it lists the groups that the fewest of them meet, as `HardestGroups`. Raises
    `DataError` or `ConfigError`.

    Args:
        run: `{qid: ranking}`, a `Run`, a path or a frame; or `{name: run}` with several of these.
        k: A group is met within the first k results.
        worst: How many queries to list; of several runs, how many groups.
        corpus: A path or `{id: text}`: for the labeller, and to show texts beside ids.

    >>> found = misses({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, k=2)
    >>> found.queries[0]["groups"][1]["rank"]
    3
    >>> hardest = misses({"q": [["a"], ["b"]]}, {"one": {"q": ["a"]}, "other": {"q": ["a", "x", "b"]}}, k=3)
    >>> hardest.to_dict()["hardest"][0]["ranks"]
    {'one': None, 'other': 3}
    """
    check_misses(k, worst)
    request = Request.of(**options)
    grouped = request.truth_of(truth)
    texts = request.sources.texts(None, "corpus")
    if are_several(run, grouped):
        return hardest_of(evaluate_each(request, grouped, named_runs(run)), k, worst, texts)
    return misses_of(evaluate_run(request, grouped, run), k, worst, texts)


def hardest_of(
    evaluations: Sequence[Evaluation], k: int, worst: int = 20, texts: Mapping[str, str] | None = None
) -> HardestGroups:
    """The groups that the fewest of some runs, measured on one ground truth, meet within k."""
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    rules = evaluations[0].convention, policy_text(evaluations[0].policy)
    return HardestGroups(failures_of(by_name, k), worst, texts or {}, rules, tuple(doubts(by_name)))


@dataclass(frozen=True, eq=False)
class HardestGroups(Result):
    """The groups that the fewest runs meet, at most `worst` of them; `texts`, by id, are shown beside ids.

    `rules` are the convention and the policy, `doubts` says what changes how all of it is read.
    """

    failures: Failures
    worst: int = 20
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    rules: tuple[str, str] = field(default=("", ""), repr=False)
    doubts: Sequence[str] = field(default=(), repr=False)

    def blocks(self) -> list[Item]:
        """How many queries each run completes, and the groups with the rank at which each run has them."""
        failures = self.failures
        headers, rows = self._grid(self.texts, ALTERNATIVES)
        parts: list[Item] = [Verdict(list(self._verdict()))]
        parts.append((headers, rows) if rows else "every run meets every group")
        unmet = int(failures.unmet.sum())
        if unmet > len(rows):
            parts.append(f"the hardest {len(rows):,} of {unmet:,} groups that at least one run misses")
        qids = dict.fromkeys(row[0] for row in rows)
        if questions := [f"{qid}: {text}" for qid in qids if (text := failures.text_of(qid))]:
            parts.append("\n".join(questions))
        return parts

    def _verdict(self) -> Iterator[data.Sentence]:
        """For how many queries each run meets every group, the most first, and how many no run completes."""
        failures = self.failures
        count = int(failures.counted.sum())
        counts = sorted(failures.solved_counts.items(), key=lambda pair: -pair[1])
        within = f" within {first_results(failures.cutoff)}" if isinstance(failures.cutoff, int) else ""
        alike = [name for name, solved in counts if solved == counts[0][1]]
        said = f" every group{within} for {counts[0][1]:,} of {counted(count, 'query', 'queries')}"
        parts = enumerated(alike, f" {'meets' if len(alike) == 1 else 'meet'}{said}")
        if len(alike) == len(counts) > 1:
            parts = [f"{every(len(alike), 'run')} meet{said}"]
        named, others = counts[len(alike) :][: NAMED - 1], counts[len(alike) :][NAMED - 1 :]
        for name, solved in named:
            parts = appended(parts, ", ", name, f" for {solved:,}")
        if others:
            parts[-1] += f", {counted(len(others), 'other')} for at most {others[0][1]:,}"
        none = len(failures.nobody)
        parts[-1] += f"; no run does for {none:,}." if none else "; for every query some run does."
        yield {"kind": "best", "parts": parts}
        yield from map(doubt, self.doubts)

    def plot(self) -> Figure:
        """A figure of the groups listed: the rank of their first hit in each run."""
        hardest = self.failures.hardest(self.worst)
        rows = [
            {"group": f"{group['qid']}: {group['group']}", "system": name, "rank": rank}
            for group in hardest
            for name, rank in group["ranks"].items()
        ]
        note = f"the {len(hardest):,} groups that the fewest runs meet"
        count = int(self.failures.counted.sum())
        return figures.group_ranks(rows, About("rank of the first hit", count, *self.rules, note))

    def _figure(self) -> Figure | None:
        return self.plot() if self.failures.unmet.any() else None

    def csv_rows(self) -> Grid:
        """Headers and a row for each group, with the rank at which each system has it."""
        return self._grid(self.texts)

    def to_dict(self) -> FailuresDict:
        """Who solves what, and the hardest groups, as plain Python."""
        return self.failures.to_dict(self.worst)

    def _grid(self, texts: Mapping[str, str], most: int | None = None) -> Grid:
        """A row for each group; `most` is how many of its alternatives are shown (default: all)."""
        rows: list[list[Any]] = []
        for group in self.failures.hardest(self.worst):
            alternatives = first_of(group["alternatives"], most, " or ") or "no alternatives"
            text = " ".join(texts.get((*group["alternatives"], "")[0], "").split())
            ranks = ["–" if rank is None else f"{rank:,}" for rank in group["ranks"].values()]
            shown = f"{alternatives}: {text[:59]}" if text else alternatives
            rows.append([group["qid"], group["group"], *ranks, shown])
        return ["query", "group", *self.failures.systems, "alternatives"], rows

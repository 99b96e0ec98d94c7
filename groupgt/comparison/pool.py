"""Measure how much systems owe to the pool: judged results, their own unique judgments, and what is still unjudged."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Unpack

import numpy as np
from typing_extensions import Doc

from groupgt.engines.carriers import all_rankings
from groupgt.errors import ConfigError, DataError, Faults, display, listed
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.options import RequestOptions, Runs, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.evaluation.runs import named_runs
from groupgt.formats.corpus import table_rows
from groupgt.formats.source import Source
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ALONE
from groupgt.model.hits import Bools, Floats
from groupgt.render.results import Result

# The cutoff of judged@k, unless the metric has one.
CUTOFF = 10
# Unjudged results that are listed.
LISTED = 20


@dataclass(frozen=True)
class Pooled:
    """One system without the judgments that only its team contributed to the pool.

    `value` and `without` are means over the queries that keep a relevant alternative; `change` is their difference.
    `unique` counts the team's unique judgments, `relevant` those of them that are relevant, `dropped` the groups and
    `undefined` the queries that lose their last relevant alternative. `swaps` names the systems of other teams that
    then stand on the other side of this system.
    """

    system: str
    team: str
    judged: float
    value: float
    without: float
    unique: int
    relevant: int
    dropped: int
    undefined: int
    swaps: tuple[str, ...]

    @property
    def change(self) -> float:
        """The value without the unique judgments minus the value with them."""
        return self.without - self.value


@dataclass(frozen=True)
class Unjudged:
    """An unjudged result, and how far it could move two systems apart: the spread of 1 ÷ log2(rank + 1)."""

    qid: str
    doc_id: str
    spread: float
    systems: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Result):
    """Pool bias of each system, and the unjudged results that could move a comparison most.

    Judgments are unique to a team if no other team returns the document in its first `depth` results.
    """

    metric: str
    depth: int
    cutoff: int
    systems: tuple[Pooled, ...]
    queue: tuple[Unjudged, ...]
    unjudged: int
    queries: int
    nonrelevant: int

    def __getitem__(self, system: str) -> Pooled:
        for each in self.systems:
            if each.system == system:
                return each
        raise ConfigError(f"expected one of {listed([each.system for each in self.systems])}, found {display(system)}")

    def __repr__(self) -> str:
        return f"Pool({', '.join(each.system for each in self.systems)}: {self.metric}, depth {self.depth})"


@takes_options(RequestOptions)
def pool(
    truth: Truth,
    runs: Runs,
    metric: Annotated[str | Metric, Doc("The metric.")],
    *,
    depth: Annotated[
        int, Doc("A judgment is unique to a team if no other team has the document in this many results.")
    ] = 100,
    team: Annotated[
        str | Mapping[str, str] | None,
        Doc(
            "The team of each run: `{run: team}`, a pattern whose first group is the team, or a CSV file with the "
            "columns run and team (default: every run is a team of its own)."
        ),
    ] = None,
    **options: Unpack[RequestOptions],
) -> Pool:
    """Evaluate each system without the judgments that only its own team contributed to the pool.

    Sources: Zobel, SIGIR 1998 (leaving out unique judgments); Buckley et al., Information Retrieval 2007 (bias of
    pools). Raises `DataError`, `MetricError` or `ConfigError`; results must be matched by id.

    >>> truth = {"q": {"a": 1, "b": 1, "c": 1}}
    >>> result = pool(truth, {"one": {"q": ["a", "b"]}, "two": {"q": ["b", "c"]}}, "recall@2")
    >>> result["one"].unique, round(result["one"].without, 4)  # a is known only from one
    (1, 0.5)
    """
    needed = needed_metrics(Request.of([metric], **options).metrics)
    options["k"] = ()  # it is in the text of the metric
    request = Request.of(needed, **options)
    evaluations = evaluate_each(request, request.truth_of(truth), named_runs(runs, least=2))
    return pool_of(evaluations, depth, team)


def needed_metrics(metrics: Mapping[str, Metric]) -> tuple[str, str]:
    """Return the metric of interest and judged@k; raise `ConfigError` if there is not one metric with one cutoff."""
    if len(metrics) != 1:
        raise ConfigError(f"metric: expected one metric with one cutoff, found {', '.join(metrics)}")
    ((text, metric),) = metrics.items()
    return text, f"judged@{metric.cutoff if isinstance(metric.cutoff, int) else CUTOFF}"


def pool_of(evaluations: Sequence[Evaluation], depth: int, team: str | Mapping[str, str] | None) -> Pool:
    """Return the pool bias of evaluations by `needed_metrics`."""
    first = evaluations[0]
    if first.labeller.name != "id":
        raise ConfigError(f"pool: needs results that are matched by id, found the {first.labeller.name} labeller")
    if depth < 1:
        raise ConfigError(f"depth: expected a whole number from 1, found {depth}")
    names = [each.name for each in evaluations]
    teams = teams_of(names, team)
    if len(set(teams.values())) < 2:
        raise ConfigError(f"team: expected at least two teams, found {', '.join(set(teams.values()))}")
    text, judged = list(first.metrics)
    cutoff = int(judged.partition("@")[2])
    contributed = {each.name: _contributed(each, depth) for each in evaluations}
    of_team = {
        team: np.any([contributed[name] for name in names if teams[name] == team], axis=0)
        for team in dict.fromkeys(teams.values())
    }
    count = np.sum(list(of_team.values()), axis=0)
    systems: list[Pooled] = []
    for team_name, returned in of_team.items():
        unique = returned & (count == 1)
        kept = _survivors(first.truth, unique)
        truth = first.truth.of_alternatives(np.flatnonzero(kept)).of_groups(_groups_among(first.truth, kept))
        values = {each.name: _values(each, text, truth, kept) for each in evaluations}
        defined = truth.judgments.defined
        lost = first.truth.judgments.defined & ~defined
        before = {each.name: _mean(each.values[text], defined) for each in evaluations}
        after = {name: _mean(column, defined) for name, column in values.items()}
        for evaluation in evaluations:
            name = evaluation.name
            if teams[name] != team_name:
                continue
            others = [other for other in names if teams[other] != team_name]
            systems.append(
                Pooled(
                    name,
                    team_name,
                    evaluation.means[judged],
                    before[name],
                    after[name],
                    int(unique.sum()),
                    int((unique & first.truth.is_relevant).sum()),
                    # A document of flat judgments is no group.
                    0 if truth.shape == "flat" else len(first.truth.relevant_groups) - len(truth.relevant_groups),
                    int(lost.sum()),
                    tuple(o for o in others if (before[name] - before[o]) * (after[name] - after[o]) < 0),
                )
            )
    systems.sort(key=lambda each: names.index(each.system))
    queue = _queue(evaluations, cutoff)
    return Pool(
        str(first.metrics[text]),
        depth,
        cutoff,
        tuple(systems),
        tuple(queue[:LISTED]),
        len(queue),
        int(first.truth.judgments.defined.sum()),
        int(first.truth.judgments.rejected.sum()),
    )


def teams_of(names: Sequence[str], team: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return the team of each run; raise `ConfigError` for a pattern without a group and for runs without a team.

    >>> teams_of(["acme_a", "acme_b", "umass"], r"([a-z]+)")
    {'acme_a': 'acme', 'acme_b': 'acme', 'umass': 'umass'}
    """
    if team is None:
        return {name: name for name in names}
    if isinstance(team, str) and team.endswith((".csv", ".tsv")):
        team = _teams_in(Path(team))
    if isinstance(team, str):
        try:
            pattern = re.compile(team)
        except re.error as error:
            raise ConfigError(f"team: expected a pattern, found {team!r}: {error}") from None
        if not pattern.groups:
            raise ConfigError(f"team: expected a pattern with a group, such as '([^_]+)_', found {team!r}")
        matches = {name: match[1] for name in names if (match := pattern.search(name))}
    else:
        matches = {name: team[name] for name in names if name in team}
    absent = [name for name in names if not matches.get(name)]
    if absent:
        raise ConfigError(f"team: no team for {', '.join(absent)}")
    return matches


def _teams_in(path: Path) -> dict[str, str]:
    """Return the teams of a table with the columns run and team."""
    faults = Faults()
    rows = [row for _, row in table_rows(Source.at(path), faults)]
    faults.stop()
    if not rows or not {"run", "team"} <= rows[0].keys():
        raise DataError(f"{path}: expected the columns run and team, found {', '.join(rows[0]) if rows else 'no rows'}")
    return {str(row["run"]): str(row["team"]) for row in rows}


def _contributed(evaluation: Evaluation, depth: int) -> Bools:
    """Return a mask of the judgments whose document is in the first results of a run, shape (A,)."""
    hits = evaluation.labelled.uncondensed or evaluation.labelled.hits
    returned = np.zeros(len(evaluation.truth.ids), dtype=np.bool_)
    returned[hits.alternative[hits.rank <= depth]] = True
    return returned


def _survivors(truth: GroundTruth, left_out: Bools) -> Bools:
    """Return a mask of the judgments that are left without some others, shape (A,).

    A set of alternatives that are needed together goes with any of its members, and so does a group that loses its last
    relevant alternative.
    """
    if truth.set_of is not None:
        in_set = truth.set_of != ALONE
        left_out = left_out | (in_set & np.isin(truth.set_of, truth.set_of[left_out & in_set]))
    return ~left_out & _groups_among(truth, ~left_out)[truth.group_of]


def _groups_among(truth: GroundTruth, kept: Bools) -> Bools:
    """Return a mask of the groups that keep a relevant alternative, or never had one, shape (G,)."""
    size = len(truth.group_query)
    had, has = (
        np.bincount(truth.group_of[mask], minlength=size) > 0 for mask in (truth.is_relevant, truth.is_relevant & kept)
    )
    return has | ~had


def _values(evaluation: Evaluation, text: str, truth: GroundTruth, kept: Bools) -> Floats:
    """Return the values of a metric under fewer judgments; the results themselves stay the same."""
    hits = evaluation.labelled.hits
    number = np.cumsum(kept) - 1
    rows = kept[hits.alternative]
    fewer = replace(
        hits,
        judgments=truth.judgments,
        query=hits.query[rows],
        rank=hits.rank[rows],
        alternative=number[hits.alternative[rows]],
        repeat=hits.repeat[rows],
    )
    metric = evaluation.metrics[text]
    return values_of({text: metric}, fewer, evaluation.labelled.present, evaluation.policy)[text]


def _mean(values: Floats, queries: Bools) -> float:
    return mean_of(values[queries]) if queries.any() else math.nan


def spreads(rankings: Iterable[Sequence[str]], judged: Iterable[str], k: int) -> dict[str, float]:
    """Return how far each unjudged result in the first k could move two rankings of a query apart, largest first.

    That is the largest minus the smallest 1 ÷ log2(rank + 1) over the rankings, 0 where the result is not in the top.

    >>> spreads([["a", "x"], ["x", "y"]], ["a"], 2)
    {'y': 0.6309297535714575, 'x': 0.36907024642854247}
    """
    known = set(judged)
    shares: dict[str, list[float]] = {}
    count = 0
    for ranking in rankings:
        count += 1
        for rank, name in enumerate(dict.fromkeys(ranking[:k]), 1):
            if name not in known:
                shares.setdefault(name, []).append(1 / math.log2(rank + 1))
    found = {name: max(each) - (min(each) if len(each) == count else 0.0) for name, each in shares.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _queue(evaluations: Sequence[Evaluation], k: int) -> list[Unjudged]:
    """List the unjudged results of all systems, those that could move a comparison most first."""
    truth = evaluations[0].truth
    judged: list[list[str]] = [[] for _ in truth.qids]
    for name, query in zip(truth.ids, truth.query_of.tolist()):
        judged[query].append(name)
    tops = {
        each.name: {qid: ids[:k] for qid, (ids, _) in all_rankings(each.run, each.policy) if qid in truth.index}
        for each in evaluations
    }
    queue = []
    for qid, names in zip(truth.qids, judged):
        if not truth.judgments.defined[truth.index[qid]]:
            continue
        by_system = {name: top.get(qid, []) for name, top in tops.items()}
        for doc, spread in spreads(by_system.values(), names, k).items():
            systems = tuple(name for name, ids in by_system.items() if doc in ids)
            queue.append(Unjudged(qid, doc, spread, systems))
    return sorted(queue, key=lambda each: -each.spread)

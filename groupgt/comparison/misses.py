"""What runs miss: `misses`, of one run or several, and the groups that the fewest of several runs meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groupgt.comparison.failures import Failures, failures_of
from groupgt.evaluation.evaluate import evaluate_each, evaluate_run
from groupgt.evaluation.inputs import are_several
from groupgt.evaluation.misses import Misses, check_misses, misses_of
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import named_runs
from groupgt.model.policy import Policy
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


def misses(
    truth: Any,
    run: Any,
    k: int = 10,
    worst: int = 20,
    *,
    policy: Policy | str | Sequence[str] | dict[str, Any] | None = None,
    labeller: Any = "id",
    corpus: Any = None,
    name: str = "",
    truth_format: str | None = None,
    run_format: str | None = None,
    parts: bool = False,
    engine: Any = "auto",
) -> Misses | HardestGroups:
    """Lists the groups that a run does not meet within k results, worst queries first.

    Of several runs, `{name: run}`, it lists the groups that the fewest of them meet, as `HardestGroups`. Raises
    `DataError` or `ConfigError`.

    Args:
        truth: `{qid: groups}`, a `GroundTruth`, a path or a frame.
        run: `{qid: ranking}`, a `Run`, a path or a frame; or `{name: run}` with several of these.
        k: A group is met within the first k results.
        worst: How many queries to list; of several runs, how many groups.
        policy: What is done with doubtful data: a `Policy`, its text (`trec,missing=zero`) or `{field: value}`.
        labeller: What decides which result hits which alternative: a name, or `{"use": name, "with": options}`.
        corpus: A path or `{id: text}`: for the labeller, and to show texts beside ids.
        name: The name of the run.
        truth_format: The format of a truth file (default: detected).
        run_format: The format of a run file (default: detected).
        parts: Whether a folder, a glob or a list of files is one run in many files.
        engine: `auto`, `streaming` or `spark`, or `{"use": name, "with": options}`.

    >>> found = misses({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, k=2)
    >>> found.queries[0]["groups"][1]["rank"]
    3
    >>> hardest = misses({"q": [["a"], ["b"]]}, {"one": {"q": ["a"]}, "other": {"q": ["a", "x", "b"]}}, k=3)
    >>> hardest.to_dict()["hardest"][0]["ranks"]
    {'one': None, 'other': 3}
    """
    check_misses(k, worst)
    request = Request.of(
        policy=policy,
        labeller=labeller,
        corpus=corpus,
        truth_format=truth_format,
        run_format=run_format,
        parts=parts,
        engine=engine,
    )
    grouped = request.truth_of(truth)
    texts = {} if corpus is None else request.sources.texts(None, "corpus")
    if are_several(run, grouped):
        return hardest_of(evaluate_each(request, grouped, named_runs(run)), k, worst, texts)
    return misses_of(evaluate_run(request, grouped, run, name), k, worst, texts)


def hardest_of(
    evaluations: Sequence[Evaluation], k: int, worst: int = 20, texts: Mapping[str, str] | None = None
) -> HardestGroups:
    """The groups that the fewest of some runs, measured on one ground truth, meet within k."""
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    return HardestGroups(failures_of(by_name, k), by_name, worst, texts or {})


@dataclass(frozen=True, eq=False)
class HardestGroups(Result):
    """The groups that the fewest runs meet, at most `worst` of them; `texts`, by id, are shown beside ids."""

    failures: Failures
    evaluations: Mapping[str, Evaluation] = field(repr=False)
    worst: int = 20
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def plot(self) -> Figure:
        """A figure of the groups listed: the rank of their first hit in each run."""
        return self._teller.plot("groups")

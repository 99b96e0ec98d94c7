"""Lists groups that one or several runs miss, or that the fewest runs cover: `misses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from groupgt.comparison.failures import Failures, failures_of
from groupgt.evaluation.evaluate import evaluate_each, evaluate_run
from groupgt.evaluation.inputs import are_several
from groupgt.evaluation.misses import Misses, check_misses, misses_of
from groupgt.evaluation.options import OneRunOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import named_runs
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


@takes_options(OneRunOptions)
def misses(
    truth: Any,
    run: Any,
    k: int = 10,
    worst: int = 20,
    **options: Unpack[OneRunOptions],
) -> Misses | HardestGroups:
    """Lists the groups not covered in the top k results, worst queries first.

    For several runs, `{name: run}`, it returns the groups that the fewest runs cover, as `HardestGroups`. Raises
    `DataError` or `ConfigError`.

    Args:
        run: `{qid: ranking}`, a `Run`, a path or a frame; or `{name: run}` for several runs.
        k: The cutoff; a group is covered if it has a hit in the top k.
        worst: Number of queries to list, or number of groups with several runs.
        corpus: A path or `{id: text}`, used by the labeller and to show texts next to ids.

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
    """Finds the groups that the fewest runs cover within k; all runs share one ground truth."""
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    return HardestGroups(failures_of(by_name, k), by_name, worst, texts or {})


@dataclass(frozen=True, eq=False)
class HardestGroups(Result):
    """Up to `worst` groups that the fewest runs cover; `texts` maps ids to texts shown next to them."""

    failures: Failures
    evaluations: Mapping[str, Evaluation] = field(repr=False)
    worst: int = 20
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def plot(self) -> Figure:
        """Draws a figure of the listed groups, with the rank of the first hit in each run."""
        return self._teller.plot("groups")

"""Lists the groups that one run or several runs miss."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

from groupgt.evaluation.evaluate import evaluate_each, evaluate_one
from groupgt.evaluation.missed import Misses
from groupgt.evaluation.misses import check_misses
from groupgt.evaluation.options import OneRunOptions, Truth, takes_options
from groupgt.evaluation.reading import are_several
from groupgt.evaluation.request import Request
from groupgt.evaluation.runs import named_runs
from groupgt.options import Doc


@takes_options(
    OneRunOptions, corpus="The corpus for the labeller and for text shown next to ids: a path, a frame or `{id: text}`."
)
def misses(
    truth: Truth,
    run: Annotated[Any, Doc("`{qid: ranking}`, a `Run`, a path or a frame; or `{name: run}` for several runs.")],
    k: Annotated[int, Doc("The cutoff. A group is covered if it has a hit in the top k.")] = 10,
    worst: Annotated[int, Doc("Number of queries to list or, for several runs, number of groups.")] = 20,
    **options: Unpack[OneRunOptions],
) -> Misses:
    """List the groups not covered in the top k results, worst queries first.

    For several runs, `{name: run}`, list the groups that the fewest runs cover. Raises `DataError` or `ConfigError`.

    >>> found = misses({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, k=2)
    >>> found.queries[0]["groups"][1]["rank"]
    3
    >>> hardest = misses({"q": [["a"], ["b"]]}, {"one": {"q": ["a"]}, "other": {"q": ["a", "x", "b"]}}, k=3)
    >>> {name: place.rank for name, place in hardest.groups[0].places.items()}
    {'one': None, 'other': 3}
    """
    check_misses(k, worst)
    request = Request.of(**options)
    grouped = request.truth_of(truth)
    texts = request.sources.texts(None, "corpus")
    several = are_several(run, grouped)
    evaluations = (
        evaluate_each(request, grouped, named_runs(run, options.get("run_columns")))
        if several
        else [evaluate_one(request, grouped, run)]
    )
    return Misses.of(evaluations, k, worst, texts)

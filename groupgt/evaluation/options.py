"""Options shared by public functions: their types for type checkers, and their descriptions for `help`.

A function unpacks one of these `TypedDict`s (`**options: Unpack[RequestOptions]`) and passes it on to `Request.of`,
whose signature defines the defaults and the order. `takes_options` adds each option to the function's signature and
docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypedDict, TypeVar

from groupgt.errors import near_names
from groupgt.evaluation.inputs import Scores
from groupgt.evaluation.request import Request
from groupgt.formats.roles import Declared
from groupgt.metrics.base import ConventionChoice
from groupgt.model.policy import Policy

# Each class adds options to those of its bases; `TEXTS` explains each option.


class TruthOptions(TypedDict, total=False):
    """Options for reading ground truth."""

    policy: Policy | str | Sequence[str] | dict[str, Any] | None
    truth_format: str | None
    truth_columns: Declared


class LabelOptions(TruthOptions, total=False):
    """Options for reading and labelling runs."""

    labeller: Any
    corpus: Any
    run_format: str | None
    run_columns: Declared
    scores: Scores
    engine: Any


class OneRunOptions(LabelOptions, total=False):
    """Options for a single run."""

    name: str
    parts: bool


class MetricOptions(LabelOptions, total=False):
    """Options for evaluating runs."""

    k: int | Sequence[int]
    by: Sequence[str] | str
    lengths: Any
    audit: Any
    assume_random: bool


class RequestOptions(MetricOptions, total=False):
    """Options for evaluating runs under a single convention."""

    convention: ConventionChoice


class EvaluateOptions(RequestOptions, OneRunOptions, total=False):
    """Options for evaluating a single run."""


# Texts in `help` and the reference for parameters without a line in the function's docstring.
TEXTS = {
    "truth": "`{qid: groups}`, a `GroundTruth`, a path or a frame of polars, pandas, Arrow or Spark.",
    "run": "`{qid: ranking}`, a `Run`, a path or a frame.",
    "runs": "`{name: run}`, a path, or a list of these; a file of a folder or a glob is a run, named after its file.",
    "metrics": 'Metrics, such as `["recall@5", "mrr"]`.',
    "convention": "How metrics treat groups: `autorag`, `trec`, `coverage`, or `auto` (set by the shape of the truth).",
    "k": "Cutoffs for metrics without one of their own.",
    "by": "Columns of the ground truth, or `n_groups` or `n_alternatives`, to slice by.",
    "policy": "How invalid or ambiguous data are handled: a `Policy`, text (`trec,missing=zero`) or `{field: value}`.",
    "labeller": """How results are matched to alternatives: `id`, `parents`, `spans`, `text`, `embedding`,
        `code`, or `{"use": name, "with": {option: value}}`.""",
    "lengths": """How long results are, for budgets such as `@2000tokens`: `Lengths`, `{"tokens": {id: length}}`, or
        `{id: text}` for characters (default: as the results say).""",
    "corpus": "A path or `{id: text}`, for budgets, and where the labeller finds what its options do not name.",
    "name": "The name of the run.",
    "truth_format": "The format of truth files (default: detected).",
    "run_format": "The format of run files (default: detected).",
    "truth_columns": 'Names of columns of the ground truth by role, such as `{"retrieval_gt": "expected"}`.',
    "run_columns": 'Names of columns of the results by role, such as `{"doc_id": "chunk"}`.',
    "scores": "Whether higher scores are better: `descending`, `ascending` (distances), or `{run: direction}`.",
    "parts": "Whether a folder, a glob or a list of files is one run in many files.",
    "audit": "An annotator's judgments of a random sample of the queries, to correct means and differences.",
    "assume_random": "Whether the queries of the audit are a random sample although they do not say so.",
    "engine": """`auto`, `streaming` or `spark`, or `{"use": name, "with": {option: value}}`, such as a `memory`
        ceiling for `streaming` or a `master` for `spark`.""",
}
# A line of `Args:` with its continuation lines.
ARGUMENT = re.compile(r"    (\w+): (.*(?:\n {8}.*)*)")
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_options(options: Any) -> Callable[[Function], Function]:
    """Return a decorator that lists unpacked options as keyword parameters, after a function's named parameters.

    The decorator adds each option to the signature and the docstring; if the docstring already describes an option,
    that line is kept. As in any function, an unknown keyword raises `TypeError`.
    """
    defaults = inspect.signature(Request.of).parameters
    hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in options.__annotations__.items()}
    shared = [parameter.replace(annotation=hints[name]) for name, parameter in defaults.items() if name in hints]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        shown = signature.replace(parameters=[*named, *shared])
        names = list(shown.parameters)

        @wraps(function)
        def with_options(*values: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in shown.parameters:
                    near = near_names(name, names)
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{near}")
            return function(*values, **keywords)

        with_options.__signature__ = shown  # type: ignore[attr-defined]
        with_options.__doc__ = described(function.__doc__, names)
        return with_options  # type: ignore[return-value]

    return decorate


def described(text: str | None, names: Iterable[str]) -> str | None:
    """Add a line for each parameter to a docstring, from its own `Args:` section or else from `TEXTS`."""
    before, heading, after = inspect.cleandoc(text or "").partition("\nArgs:\n")
    arguments, end, after = after.partition("\n\n")
    lines = {**TEXTS, **dict(ARGUMENT.findall(arguments))}
    listed = "\n".join(f"    {name}: {lines[name]}" for name in names if name in lines)
    return f"{before}{heading}{listed}{end}{after}" if heading else text

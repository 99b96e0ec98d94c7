"""Declares every measurement option once, with its type, default, text, and spelling in the shell and in YAML.

Functions unpack one of the classes (`**options: Unpack[LabelOptions]`) and pass its options on to `Request.of`.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from textwrap import TextWrapper
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Union, get_args, get_origin

from groupgt.engines.order import Scores
from groupgt.errors import near_names
from groupgt.evaluation.texts import cutoffs, directions, mapping, parts, values_by_key
from groupgt.formats.roles import NO_COLUMNS, Declared
from groupgt.metrics.base import AUTO, ConventionChoice
from groupgt.metrics.language import Metric
from groupgt.model.policy import Policy
from groupgt.options import Default, Doc, Minimum, Option, Scalar, Short, documented, note_in, options_of
from groupgt.plugins import ours


@dataclass(frozen=True)
class Shell:
    """Annotation for an option that shell commands also accept. `read` converts the typed text to a value."""

    help: str = ""
    flag: str = ""
    metavar: str | None = None
    form: Literal["value", "file", "texts"] = "value"
    read: Callable[[str, Any], Any] = lambda _, value: value


def shell_of(option: Option) -> Shell:
    """Return how an option is used in a shell."""
    shell = note_in(option.notes, Shell) or Shell()
    return shell if shell.flag else replace(shell, flag=f"--{option.name.replace('_', '-')}")


@dataclass(frozen=True)
class InFile:
    """Annotation for a data set key in experiment files, with any differences in its name and type (`hint`)."""

    key: str = ""
    hint: Any = None


LABELLERS = ours("labeller")

# Parameters that many functions have.
Truth = Annotated[
    Any, Doc("`{qid: groups}`, a `GroundTruth`, a path, or a frame from polars, pandas, Arrow, Spark, Ray or Dask.")
]
OneRun = Annotated[Any, Doc("`{qid: ranking}`, a `Run`, a path or a frame, or a list of trials.")]
Runs = Annotated[
    Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str],
    Doc("`{name: run}`, a path, or a list of these. Each file in a folder or a glob is a run, named after the file."),
]
Metrics = Annotated[Sequence[str | Metric], Doc('Metrics, such as `["recall@5", "mrr"]`.')]


class QueryOptions(TypedDict, total=False):
    """Options for selecting queries of ground truth."""

    where: Annotated[
        Mapping[str, Any],
        Default(NO_COLUMNS),
        Doc(
            'Filter queries by column value, such as `{"split": "test"}`. A list keeps queries with any of its values.'
        ),
        Shell(
            "Filter queries by their value in a column of TRUTH, such as split=test; repeatable.",
            metavar="COLUMN=VALUE",
            form="texts",
            read=values_by_key("COLUMN=VALUE, such as split=test"),
        ),
        InFile(hint=dict[str, Annotated[list[Scalar], Short()]]),
    ]
    limit: Annotated[
        Annotated[int, Minimum(1)] | None,
        Default(None),
        Doc("Use only the first N queries that `where` selects (default: all)."),
        Shell("Use only the first N queries that --where selects (default: all).", metavar="N"),
        InFile(),
    ]


class TruthOptions(QueryOptions, total=False):
    """Options for reading ground truth."""

    policy: Annotated[
        Policy | str | Sequence[str] | dict[str, Any] | None,
        Default(None),
        Doc("How to handle invalid or ambiguous data: a `Policy`, text (`trec,missing=zero`) or `{field: value}`."),
        Shell(
            "How to handle invalid or ambiguous data, such as missing=skip, or a preset (autorag, trec); repeatable.",
            metavar="FIELD=VALUE",
            form="texts",
        ),
    ]
    truth_format: Annotated[
        str | None,
        Default(None),
        Doc("The format of truth files (default: detected)."),
        Shell("Format of TRUTH, such as trec-subtopics (default: auto-detect)."),
        InFile("format"),
    ]
    truth_columns: Annotated[
        Declared,
        Default(NO_COLUMNS),
        Doc('Column name for each role in the ground truth, such as `{"retrieval_gt": "expected"}`.'),
        Shell(
            "Name the column for a role (doc_id=chunk), or the path to its values (doc_id=hits[].id). The name applies "
            "to all files that have it or, with a prefix, to one side (truth.doc_id=chunk, run.doc_id=id); repeatable.",
            flag="--columns",
            metavar="ROLE=NAME",
            form="texts",
            read=mapping(
                "ROLE=NAME, such as doc_id=chunk",
                "if two files use different names, put truth. or run. before the role",
            ),
        ),
        InFile("columns", dict[str, str]),
    ]


class RunOptions(TypedDict, total=False):
    """Options for reading runs."""

    run_format: Annotated[
        str | None,
        Default(None),
        Doc("The format of run files (default: detected)."),
        Shell("Format of the runs (default: auto-detect)."),
    ]
    run_columns: Annotated[
        Declared, Default(NO_COLUMNS), Doc('Column name for each role in the results, such as `{"doc_id": "chunk"}`.')
    ]
    scores: Annotated[
        Scores,
        Default("descending"),
        Doc("Direction of scores: `descending` (higher is better), `ascending` (distances), or `{run: direction}`."),
        Shell(
            "Read the scores of all runs, or of one, as distances (lower is better); repeatable.",
            metavar="[NAME=]ascending",
            form="texts",
            read=directions,
        ),
    ]
    tool_spans: Annotated[
        Mapping[str, str],
        Default(NO_COLUMNS),
        Doc('Search tools in traces, each with the path to the ids in its result, such as `{"search": "hits.id"}`.'),
        Shell(
            "Count spans of this tool as searches in traces, such as search=hits.id; repeatable. "
            "PATH leads to the ids in the tool's result.",
            flag="--tool-span",
            metavar="NAME=PATH",
            form="texts",
            read=mapping("NAME=PATH, such as search=hits.id"),
        ),
    ]
    engine: Annotated[
        Any,
        Default("auto"),
        Doc(
            '`auto`, `streaming` or `spark`, or `{"use": name, "with": {option: value}}`. Options include the `memory` '
            "limit for `streaming`, the `master` for `spark`, and the `bucket` size on a cluster."
        ),
    ]


class LabellerOptions(TypedDict, total=False):
    """Options for matching results to alternatives."""

    labeller: Annotated[
        Any,
        Default("id"),
        Doc(
            f"How results are matched to alternatives: {', '.join(f'`{name}`' for name in LABELLERS)}, or "
            '`{"use": name, "with": {option: value}}`.'
        ),
        Shell(
            f"How results are matched to alternatives: {', '.join(LABELLERS)} (see groupgt list labellers).",
            metavar="NAME",
        ),
    ]
    corpus: Annotated[
        Any,
        Default(None),
        Doc(
            "The corpus for budgets and labellers: a path, a frame or `{id: text}`. "
            "The labeller's own options take precedence."
        ),
        Shell(
            "The corpus (JSONL, parquet or CSV). groupgt shows its text next to ids, and labellers read it. "
            "Budgets such as recall@2000tokens need the corpus text, or the tokens and chars columns of the corpus.",
            form="file",
        ),
    ]


class LabelOptions(TruthOptions, LabellerOptions, RunOptions, total=False):
    """Options for reading and labelling runs."""


class OneRunOptions(LabelOptions, total=False):
    """Options for a single run."""

    name: Annotated[str, Default(""), Doc("The name of the run.")]
    parts: Annotated[
        bool,
        Default(default=False),
        Doc("Treat a folder, glob or list of files as one run."),
        Shell("Read a folder or glob as one run split over many files."),
    ]


class CutoffOptions(TypedDict, total=False):
    """Options for all metrics of a request."""

    k: Annotated[
        int | Sequence[int],
        Default(()),
        Doc("Cutoffs for metrics written without @k."),
        Shell(
            "Cutoffs for metrics written without @k, such as 1,5,10.",
            flag="-k",
            metavar="K",
            form="texts",
            read=cutoffs,
        ),
    ]


class SliceOptions(TypedDict, total=False):
    """Options for slices of queries."""

    by: Annotated[
        Sequence[str] | str,
        Default(()),
        Doc("Ground-truth columns to slice by; `n_groups` and `n_alternatives` also work."),
        Shell(
            "Slice by a column of TRUTH, or by n_groups or n_alternatives; repeatable.",
            metavar="COLUMN",
            form="texts",
            read=parts,
        ),
    ]


class BudgetOptions(TypedDict, total=False):
    """Options for cutoffs that are budgets."""

    lengths: Annotated[
        Any,
        Default(None),
        Doc(
            'Result lengths, for budgets such as `@2000tokens`: `Lengths`, `{"tokens": {id: length}}`, or '
            "`{id: text}` for characters (default: the lengths in the results)."
        ),
    ]


class AuditOptions(TypedDict, total=False):
    """Options for correcting means and differences."""

    audit: Annotated[
        Any,
        Default(None),
        Doc("Use an annotator's judgments of a random sample of the queries to correct means and differences."),
        Shell(
            "Use an annotator's judgments of a random sample of the queries to correct means and differences. (In "
            "groupgt judge, --audit takes the ground truth to check instead.)",
            form="file",
        ),
        InFile(hint=str | None),
    ]
    assume_random: Annotated[
        bool,
        Default(default=False),
        Doc("Treat the audited queries as a random sample even if the audit does not record how they were drawn."),
        Shell("Treat the queries in --audit as a random sample even if the file does not record how they were drawn."),
        InFile(),
    ]


class MetricOptions(CutoffOptions, SliceOptions, BudgetOptions, LabelOptions, AuditOptions, total=False):
    """Options for evaluating runs."""


class ConventionOptions(TypedDict, total=False):
    """The option that sets a single convention."""

    convention: Annotated[
        ConventionChoice,
        Default(AUTO),
        Doc(
            "How metrics treat groups: `autorag`, `trec`, `coverage`, or `auto` (the shape of the ground truth "
            "decides)."
        ),
        Shell("How metrics treat groups. With auto, the shape of TRUTH decides."),
    ]


class RequestOptions(ConventionOptions, MetricOptions, total=False):
    """Options for evaluating runs under a single convention."""


class EvaluateOptions(RequestOptions, OneRunOptions, total=False):
    """Options for evaluating a single run."""


# What the options are if they are not given.
DEFAULTS = EvaluateOptions(**{name: option.default for name, option in options_of(EvaluateOptions).items()})  # type: ignore[typeddict-item]
LINES = TextWrapper(
    120, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
)
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_options(options: Any, settings: Any = None, **texts: str) -> Callable[[Function], Function]:
    """Return a decorator that lists unpacked options in a function's signature, and all parameters in its docstring.

    A parameter's description comes from `texts`, its own `Doc`, or the option or `settings` field with the same name.
    """
    shared = options_of(options)
    every = {**options_of(EvaluateOptions), **options_of(settings)}
    described = {name: option.description for name, option in every.items()}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.hint)
        for name, option in shared.items()
    ]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        parameters = {each.name: each for each in (*named, *added)}
        plain = [each.replace(annotation=_written(each.annotation)) for each in parameters.values()]
        shown = signature.replace(parameters=plain, return_annotation=_written(signature.return_annotation))

        @wraps(function)
        def with_options(*values: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in parameters:
                    near = near_names(name, list(parameters))
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{near}")
            return function(*values, **keywords)

        with_options.__signature__ = shown  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            before, prompt, examples = inspect.cleandoc(function.__doc__).partition("\n\n>>> ")
            own = {name: text for name, each in parameters.items() if (text := documented(each.annotation))}
            known = {**described, **own, **texts}
            lines = "\n".join(LINES.fill(f"{name}: {known[name]}") for name in parameters)
            with_options.__doc__ = f"{before}\n\nArgs:\n{lines}{prompt}{examples}"
        return with_options  # type: ignore[return-value]

    return decorate


def _written(annotation: Any) -> str:
    """Return a type as it is written in source, without the names of modules."""
    plain = annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation
    if get_origin(plain) in (Union, UnionType):
        return " | ".join("None" if member is NoneType else _written(member) for member in get_args(plain))
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(plain))

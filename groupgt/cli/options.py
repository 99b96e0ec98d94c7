"""Groups of input options shared by several commands, so that each option is described only once."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from groupgt.cli.output import FILE, default_option, file_option, repeatable_option, together
from groupgt.formats.tokenizers import forms
from groupgt.metrics.base import AUTO, CONVENTIONS
from groupgt.plugins import ours


def _one(_context: click.Context, _parameter: click.Parameter, run: Any) -> tuple[Any, ...]:
    return () if run is None else (run,)


_runs = partial(click.argument, "run_paths", type=FILE)
_run = partial(_runs, callback=_one)
_convention = partial(default_option, "--convention", "convention_text", default=AUTO)


PARTS = click.option(
    "--parts", "in_parts", is_flag=True, help="Read a folder or glob as one run split over many files."
)
_READING = together(
    click.option("--run-format", help="Format of the runs (default: auto-detect)."),
    PARTS,
    repeatable_option(
        "--scores",
        "score_texts",
        metavar="[NAME=]ascending",
        help="The scores of all runs, or of one, are distances: lower is better; repeatable.",
    ),
    click.option("--memory", metavar="SIZE", help="Memory limit, such as 2GB; files are then streamed."),
)
NAMES = default_option(
    "--names",
    type=click.Choice(["file", "tag"]),
    default="file",
    help="How to name runs without NAME=: after the file, or after the tag in the sixth column of a TREC run.",
)
TRUTH_FORMAT = click.option("--truth-format", help="Format of TRUTH, such as trec-subtopics (default: auto-detect).")
WHERE = repeatable_option(
    "--where",
    "conditions",
    metavar="COLUMN=VALUE",
    help="Use only queries with this value in a column of TRUTH, such as split=test; repeatable.",
)
POLICY = repeatable_option(
    "--policy",
    "policy_texts",
    metavar="FIELD=VALUE",
    help="How to handle invalid or ambiguous data, such as missing=skip, or a preset (autorag, trec); repeatable.",
)
COLUMNS = repeatable_option(
    "--columns",
    "column_texts",
    metavar="ROLE=NAME",
    help="Which column is meant, such as doc_id=chunk or retrieval_gt=expected, in every file that has it; repeatable.",
)
CORPUS = file_option(
    "--corpus",
    "corpus_path",
    help="The corpus (JSONL, parquet or CSV). Its texts are shown next to ids, and labellers compare them. "
    "Budgets such as recall@2000tokens need its texts, or its columns tokens and chars.",
)
TRUTH = together(click.argument("truth_path", metavar="TRUTH", type=FILE), TRUTH_FORMAT, COLUMNS, WHERE, POLICY)
FOLDER = together(
    repeatable_option(
        "--system",
        "systems",
        metavar="NAME",
        help="With a result folder from groupgt run (or the file `latest`) as TRUTH and no RUNS: a system, such as "
        "'bm25[k1=0.9,b=0.4]'; repeatable (default: all).",
    ),
    click.option("--dataset", "dataset_name", metavar="NAME", help="Data set to use."),
)
RUNS = together(_runs(metavar="RUNS...", nargs=-1), _READING, NAMES, FOLDER)
ANY_RUNS = together(_runs(metavar="[RUNS]...", nargs=-1), _READING, NAMES)
ONE_RUN = together(_run(metavar="RUN", required=False), _READING, FOLDER)
MAYBE_RUN = together(_run(metavar="[RUN]", required=False), _READING)
THE_RUN = together(_run(metavar="RUN"), _READING)
LABELLER = together(
    default_option(
        "--labeller",
        "labeller_name",
        default="id",
        metavar="NAME",
        help=f"How results are matched to alternatives: {', '.join(ours('labeller'))} (see groupgt list labellers).",
    ),
    repeatable_option(
        "--with",
        "labeller_options",
        metavar="OPTION=VALUE",
        help="A labeller option, such as chunks=chunks.csv or min_overlap=0.5; repeatable.",
    ),
    CORPUS,
    click.option("--allow-code", is_flag=True, help="Allow custom tokenizer or labeller code."),
)
BUDGETS = click.option("--tokenizer", metavar="NAME", help=f"Tokenizer: {', '.join(forms())}.")
METRIC = repeatable_option(
    "-m", "--metric", "metric_texts", metavar="METRIC", help="Metrics, such as recall@5 or ndcg,mrr; repeatable."
)
METRICS = together(
    METRIC,
    repeatable_option(
        "-k", "cutoff_texts", metavar="K", help="Cutoffs for metrics written without one, such as 1,5,10."
    ),
)
ONE_CONVENTION = _convention(
    type=click.Choice([AUTO, *CONVENTIONS]), help="How metrics treat groups; auto depends on the shape of TRUTH."
)
SEVERAL_CONVENTIONS = _convention(
    metavar="C[,C]", help=f"{', '.join(CONVENTIONS)}, several side by side; or auto, based on the shape of TRUTH."
)
BY = repeatable_option(
    "--by",
    "by_texts",
    metavar="COLUMN",
    help="Slice by a column of TRUTH, or by n_groups or n_alternatives; repeatable.",
)
AUDIT = together(
    file_option(
        "--audit",
        "audit_path",
        help="An annotator's judgments of a random sample of the queries, used to correct means and differences; "
        "the suspected ground truth is TRUTH (and the --audit of groupgt judge).",
    ),
    click.option("--assume-random", is_flag=True, help="Assume that the queries in --audit are a random sample."),
)
# Options of every command that measures runs with metrics of the user's choice.
EVALUATION = together(TRUTH, AUDIT, RUNS, METRICS, BY, LABELLER, BUDGETS)

"""Groups of input options shared by several commands, so that each option is described only once."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from groupgt.cli.output import FILE, Decorator, default_option, repeatable_option, together
from groupgt.evaluation import options as declared
from groupgt.formats.tokenizers import forms
from groupgt.metrics.base import CONVENTIONS
from groupgt.options import Option, choices, note_in, options_of, plain_type

# Types that click reads itself.
CLICKS = (bool, int, float)


def option_of(option: Option, **others: Any) -> Decorator:
    """Create a command option from its declaration. `others` replace arguments of `click.option`."""
    shell, kind = declared.shell_of(option), plain_type(option.hint)
    names = [shell.flag, option.name]
    facts: dict[str, Any] = {"help": shell.help or option.description, "metavar": shell.metavar}
    if shell.form == "file":
        facts["type"] = FILE
    elif shell.form == "texts":
        facts["multiple"] = True
    else:
        facts |= {"is_flag": kind is bool, "default": option.default}
        facts["show_default"] = kind is not bool and option.default is not None
        facts["type"] = click.Choice(values) if (values := choices(option.hint)) else kind if kind in CLICKS else str
    return click.option(*names, **(facts | others))


def options_in(kind: Any, *order: str | Decorator) -> Decorator:
    """Create command options for a class's options that have a `Shell`: first those in `order`, then all others."""
    options = {name: option for name, option in options_of(kind).items() if note_in(option.notes, declared.Shell)}
    placed = [option_of(options.pop(item)) if isinstance(item, str) else item for item in order]
    return together(*placed, *map(option_of, options.values()))


_runs = partial(click.argument, "run_paths", type=FILE)
_run = partial(_runs, callback=lambda _context, _parameter, run: () if run is None else (run,))
_convention = options_of(declared.ConventionOptions)["convention"]


PARTS = option_of(options_of(declared.OneRunOptions)["parts"])
_MEMORY = click.option(
    "--memory", metavar="SIZE", help="Memory limit, such as 2GB. With a limit, groupgt streams files."
)
_READING = options_in(declared.RunOptions, "run_format", PARTS, "scores", _MEMORY)
# For runs of which each is one file.
OF_STAGES = options_in(declared.RunOptions, "run_format", "scores", _MEMORY)
NAMES = default_option(
    "--names",
    type=click.Choice(["file", "tag"]),
    default="file",
    help="Name runs that have no NAME= after their file, or after the tag in a TREC run's sixth column.",
)
TRIALS = click.option(
    "--trials", "in_trials", is_flag=True, help="Treat runs with the same NAME as trials of one system."
)
OF_TRUTH = options_in(declared.TruthOptions, "truth_format", "truth_columns", "where", "limit", "policy")
TOOLS = option_of(options_of(declared.RunOptions)["tool_spans"])
SCORES = option_of(options_of(declared.RunOptions)["scores"])
COLUMNS = option_of(options_of(declared.TruthOptions)["truth_columns"])
CORPUS = option_of(options_of(declared.LabellerOptions)["corpus"])
TRUTH = together(click.argument("truth_path", metavar="TRUTH", type=FILE), OF_TRUTH)
FOLDER = together(
    repeatable_option(
        "--system",
        "systems",
        metavar="NAME",
        help="Use only this system, such as 'bm25[k1=0.9,b=0.4]'; repeatable (default: all). TRUTH must be a result "
        "folder of groupgt run, or its `latest` file.",
    ),
    click.option("--dataset", "dataset_name", metavar="NAME", help="Use this data set from the result folder TRUTH."),
)
RUNS = together(_runs(metavar="RUNS...", nargs=-1), _READING, NAMES, TRIALS, FOLDER)
ANY_RUNS = together(_runs(metavar="[RUNS]...", nargs=-1), _READING, NAMES)
ONE_RUN = together(_run(metavar="RUN", required=False), _READING, FOLDER)
MAYBE_RUN = together(_run(metavar="[RUN]", required=False), _READING)
THE_RUN = together(_run(metavar="RUN"), _READING)
LABELLER = options_in(
    declared.LabellerOptions,
    "labeller",
    repeatable_option(
        "--with",
        "labeller_options",
        metavar="OPTION=VALUE",
        help="Set a labeller option, such as chunks=chunks.csv or min_overlap=0.5; repeatable.",
    ),
    "corpus",
    repeatable_option(
        "--plugin",
        "plugins",
        metavar="MODULE",
        help="Import a module that registers metrics, labellers or retrievers; needs --allow-code; repeatable.",
    ),
    click.option("--allow-code", is_flag=True, help="Allow custom tokenizer, labeller or plug-in code."),
)
BUDGETS = click.option("--tokenizer", metavar="NAME", help=f"Tokenizer: {', '.join(forms())}.")
METRIC = repeatable_option(
    "-m", "--metric", "metric_texts", metavar="METRIC", help="Compute metrics such as recall@5 or ndcg,mrr; repeatable."
)
METRICS = together(METRIC, options_in(declared.CutoffOptions))
ONE_CONVENTION = option_of(_convention)
SEVERAL_CONVENTIONS = option_of(
    _convention,
    type=str,
    metavar="C[,C]",
    help=f"How metrics treat groups: {', '.join(CONVENTIONS)}, or several side by side. With auto, the shape of TRUTH "
    "decides.",
)
BY = options_in(declared.SliceOptions)
AUDIT = options_in(declared.AuditOptions)
SORT = click.option(
    "--sort", metavar="METRIC", help="Sort the runs by this metric, best first (default: in the order given)."
)
# Options of every command that measures runs with metrics of the user's choice.
EVALUATION = together(TRUTH, AUDIT, RUNS, METRICS, BY, LABELLER, BUDGETS)

"""Comparison commands, with an option for each field in `Settings`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from groupgt.cli.help import command
from groupgt.cli.inputs import Inputs, input_options, typed, typed_parameters
from groupgt.cli.options import EVALUATION, ONE_CONVENTION, option_of
from groupgt.cli.output import (
    Decorator,
    default_option,
    details_option,
    file_option,
    format_option,
    prepared,
    repeatable_option,
    show,
    show_beside,
    show_result,
    table_option,
    together,
    write_table,
    written_option,
)
from groupgt.comparison.across import Across
from groupgt.comparison.compare import Comparison, baseline_of, comparison_of
from groupgt.comparison.settings import Settings
from groupgt.errors import ConfigError
from groupgt.options import options_of
from groupgt.store.files import write_text


def setting_options(*names: str, overriding: bool = False) -> Decorator:
    """Adds an option for each setting, or only for the given names; `overriding` options have no default."""
    settings = [option for option in options_of(Settings).values() if not names or option.name in names]
    others = {"default": None, "show_default": False} if overriding else {}
    return together(*(option_of(setting, **others) for setting in settings))


BASELINE = click.option("--baseline", metavar="NAME", help="The run to compare with (default: the first).")

PRIMARY = click.option("--primary", metavar="METRIC", help="The metric that decides the verdict (default: the first).")


@command("compare")
@BASELINE
@PRIMARY
@click.option(
    "--across",
    type=click.Choice(["datasets"]),
    help="With a result folder as TRUTH: compare its data sets, each system with itself on the --baseline data set.",
)
@setting_options()
@file_option(
    "--annotator",
    "annotators",
    multiple=True,
    help="Another annotator's ground truth for the same queries; repeatable. Differences are then averaged over "
    "annotators, and intervals and p-values include their disagreement.",
)
@table_option("--per-query", help="Write per-query values: .csv, .jsonl or .parquet.")
@table_option("--failures", help="Write which groups each run covers: .csv, .jsonl or .parquet.")
@written_option("--html", "page", help="Write an HTML report: one self-contained page.")
@written_option("--summary", help="Write a Markdown summary for a pull request: verdict and changes.")
@default_option(
    "--digits",
    type=click.IntRange(1, 12),
    default=3,
    help="Digits after the decimal point, with --format latex_booktabs.",
)
@repeatable_option(
    "--against",
    metavar="NAME",
    help="With --format latex_booktabs: test every run against this one, with superscripts; repeatable (default: the "
    "baseline).",
)
@format_option
@details_option
@input_options(EVALUATION, ONE_CONVENTION)
def compare_command(
    inputs: Inputs,
    baseline: str | None,
    primary: str | None,
    across: str | None,
    annotators: tuple[Path, ...],
    per_query: Path | None,
    failures: Path | None,
    page: Path | None,
    summary: Path | None,
    digits: int,
    against: tuple[str, ...],
    style: str,
    **settings: Any,
) -> None:
    """Compare RUNS with a baseline: significance, effect size, slices.

    Each run is compared with the baseline query by query: means, differences with confidence intervals, a paired test,
    wins and losses. --by repeats this within slices. The output also shows which run completes which queries, and the
    score of an oracle that picks the best run per query.
    """
    if across is not None:
        prepared(_across(inputs, baseline, primary, settings), style)()
        return
    if settings["pairs"] and style == "csv":
        raise ConfigError("--pairs: not available as CSV; use --format json")
    for option in ("digits", "against"):
        if typed(option) and style != PAPER:
            raise ConfigError(f"--{option}: is for the table of a paper; add --format {PAPER}")
    comparison = _comparison(inputs, baseline, primary, settings, annotators)
    # Nothing is written if there is an error, and nothing is printed if writing fails.
    if style == PAPER:
        print_it: Callable[[], None] = partial(show, comparison.to_latex(digits=digits, against=against))
    else:
        print_it = prepared(comparison, style)
    if page is not None:
        comparison.to_html(page, corpus=inputs.texts)
    if summary is not None:
        write_text(summary, comparison.summary() + "\n")
    write_table(per_query, lambda: (comparison.per_query.columns, comparison.per_query.rows()))
    if comparison.failures is not None:
        write_table(failures, comparison.failures.rows)
    print_it()


PAPER = "latex_booktabs"
# Parameters that are valid with --across: everything else is as in the experiment.
WITH_ACROSS = {"truth_path", "across", "baseline", "primary", "metric_texts", "systems", "style", "details"}


def _across(inputs: Inputs, baseline: str | None, primary: str | None, settings: dict[str, Any]) -> Across:
    """Compares the data sets of a result folder with a baseline; raises `ConfigError` for options that do not apply."""
    for option in typed_parameters():
        if option.name == "pairs" or option.name not in {*WITH_ACROSS, *settings}:
            is_option = isinstance(option, click.Option)
            spelled = option.opts[-1] if is_option else option.make_metavar(click.get_current_context())
            raise ConfigError(f"{spelled}: does not go with --across, which compares the data sets of a result folder")
    from groupgt.results.folder import ResultFolder, folders_of
    from groupgt.results.merge import across_in

    folder = replace(ResultFolder.read(folders_of([inputs.truth_path])[-1]), chosen=inputs.systems)
    metrics = inputs.metrics if inputs.metric_texts else folder.compare.get("metrics", [])
    return across_in(folder, Settings(**_as_typed(settings, folder.compare)), baseline, metrics, primary)


def _as_typed(settings: dict[str, Any], compare: dict[str, Any]) -> dict[str, Any]:
    """Returns settings from the command line, falling back on the experiment's settings."""
    return {name: value if typed(name) else compare.get(name, value) for name, value in settings.items()}


def _comparison(
    inputs: Inputs,
    baseline: str | None,
    primary: str | None,
    settings: dict[str, Any],
    others: Sequence[Path] = (),
) -> Comparison:
    """Compares the runs with the baseline; raises `ConfigError` if there is only one run."""
    inputs.check(also_read=others)
    metrics: list[str] = []
    if inputs.reopened is not None:
        compare = inputs.reopened.compare
        if not inputs.metric_texts:
            metrics, primary = compare.get("metrics", []), primary or inputs.reopened.primary
        settings = _as_typed(settings, compare)
        if baseline is None and compare.get("baseline") in inputs.reopened.chosen:
            baseline = compare["baseline"]
    if len(inputs.runs) < 2:
        raise ConfigError(f"expected at least two runs, found {len(inputs.runs)}: {inputs.runs[0]}")
    baseline = baseline_of([name for name, _ in inputs.named_runs], baseline)
    request = replace(inputs.request, annotators=tuple(inputs.truth_at(path, None) for path in others))
    evaluations = inputs.evaluations_by_name(request)
    text_of = evaluations[baseline].text_of
    decisive = None if primary is None else text_of(primary)
    if decisive is not None and metrics and decisive not in map(text_of, metrics):
        metrics = [*metrics, decisive]
    return comparison_of(evaluations, baseline, Settings(**settings), metrics, decisive)


@command("power")
@BASELINE
@PRIMARY
@click.option("--difference", type=float, metavar="D", help="The difference to detect (default: the observed one).")
@default_option("--power", type=float, default=0.8, help="Target power.")
@setting_options("test", "alpha", "correction")
@format_option
@details_option
@input_options(EVALUATION, ONE_CONVENTION)
def power_command(
    inputs: Inputs,
    baseline: str | None,
    primary: str | None,
    difference: float | None,
    power: float,
    style: str,
    **settings: Any,
) -> None:
    """Power analysis: minimum detectable difference, and number of queries needed to detect a given difference.

    The analysis uses the per-query differences between RUNS and the baseline. If all differences have the same size,
    as with complete and hit_rate, the power is exact; otherwise it is computed for the paired t test. Requires SciPy.
    Unless --correction is none, alpha is divided by the number of comparisons.

    For a result folder, also say which drop or gain each gate of its experiment can detect in the next run.

    With --audit, show how wide the intervals of corrected means and differences would be with 20, 50, 100 and 200
    audited queries.
    """
    from groupgt.report.detectable import in_folder

    folder = inputs.reopened
    gates = []
    if folder is not None and inputs.audit is None:
        gates = list(in_folder(folder, Settings(**_as_typed({**settings, "seed": 0}, folder.compare))))
    if gates and len(inputs.runs) < 2:
        inputs.check()
        show("\n".join(gates))
        return
    # No confidence interval is shown: one resample is enough.
    comparison = _comparison(inputs, baseline, primary, {**settings, "resamples": 1, "seed": 0})
    if inputs.audit is not None:
        show_result(comparison.audit_power(), style)
        return
    show_result(comparison.power(difference=difference, power=power), style)
    for line in gates:
        show_beside(line, style)

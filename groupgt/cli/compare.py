"""Comparison commands, with an option for each field in `Settings`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupgt.cli import output as out
from groupgt.cli.help import command
from groupgt.cli.inputs import NO_RUNS, Inputs, input_options, is_result_folder, refuse_reading
from groupgt.cli.needs import typed, typed_parameters
from groupgt.cli.options import EVALUATION, LABELLER, METRICS, ONE_CONVENTION, RUNS, SORT, TRUTH, option_of
from groupgt.comparison.across import Across
from groupgt.comparison.compare import Comparison, baseline_of, comparison_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError
from groupgt.options import options_of
from groupgt.store.files import write_text

if TYPE_CHECKING:
    from groupgt.comparison.correlation import Correlation


def setting_options(*names: str, overriding: bool = False) -> out.Decorator:
    """Add an option for each setting, or only for the named settings. With `overriding`, options have no defaults."""
    settings = [option for option in options_of(Settings).values() if not names or option.name in names]
    others = {"default": None, "show_default": False} if overriding else {}
    return out.together(*(option_of(setting, **others) for setting in settings))


BASELINE = click.option("--baseline", metavar="NAME", help="The run to compare with (default: the first).")

PRIMARY = click.option("--primary", metavar="METRIC", help="The metric that decides the verdict (default: the first).")


@command("compare")
@BASELINE
@PRIMARY
@click.option(
    "--across",
    type=click.Choice(["datasets"]),
    help="Compare each system's results on every data set with its results on the --baseline data set. "
    "TRUTH must be a result folder.",
)
@setting_options()
@out.file_option(
    "--annotator",
    "annotators",
    multiple=True,
    help="Add another annotator's ground truth for the same queries; repeatable. groupgt averages differences over "
    "annotators, and intervals and p-values account for their disagreement.",
)
@out.PER_QUERY
@out.table_option("--failures", help="Write the groups that each run covers (.csv, .jsonl or .parquet).")
@out.written_option("--html", "page", help="Write an HTML report as one self-contained page.")
@out.written_option("--summary", help="Write a Markdown summary with the verdict and the changes, for a pull request.")
@SORT
@out.default_option(
    "--digits",
    type=click.IntRange(1, 12),
    metavar="N",
    default=3,
    help="Set the number of decimals for --format latex_booktabs.",
)
@out.repeatable_option(
    "--against",
    metavar="NAME",
    help="With --format latex_booktabs, use superscripts to mark values that differ significantly from this run's; "
    "repeatable (default: the baseline).",
)
@out.format_option
@out.details_option
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
    sort: str | None,
    digits: int,
    against: tuple[str, ...],
    style: str,
    **settings: Any,
) -> None:
    """Compare RUNS with a baseline: significance, effect size, slices.

    groupgt compares each run with the baseline query by query. It shows means, differences with confidence intervals, a
    paired test, wins and losses. --by repeats the comparison within slices. The output also shows which run completes
    which queries, and the score of an oracle that picks the best run for each query.
    """
    if across is not None:
        out.prepared(_across(inputs, baseline, primary, settings), style)()
        return
    if settings["pairs"] and style == "csv":
        raise ConfigError("--pairs: not available as CSV; use --format json")
    comparison = _comparison(inputs, baseline, primary, settings, annotators)
    if sort is not None:
        comparison = comparison.sorted_by(sort)
    # Nothing is written if there is an error, and nothing is printed if writing fails.
    if style == PAPER:
        print_it: Callable[[], None] = partial(out.show, comparison.to_latex(digits=digits, against=against))
    else:
        print_it = out.prepared(comparison, style)
    out.write_file(page, lambda path: comparison.to_html(path, corpus=inputs.texts))
    out.write_file(summary, lambda path: write_text(path, comparison.summary() + "\n"))
    out.write_values(per_query, list(comparison.evaluations.values()))
    if comparison.failures is not None:
        out.write_table(failures, comparison.failures.rows)
    print_it()


PAPER = "latex_booktabs"
# Parameters that are valid with --across: everything else is as in the experiment.
WITH_ACROSS = {"truth_path", "across", "baseline", "primary", "metric_texts", "systems", "style", "details"}


def _across(inputs: Inputs, baseline: str | None, primary: str | None, settings: dict[str, Any]) -> Across:
    """Compare a result folder's data sets with a baseline. Raise `ConfigError` for options that do not apply."""
    for option in typed_parameters():
        if option.name == "pairs" or option.name not in {*WITH_ACROSS, *settings}:
            is_option = isinstance(option, click.Option)
            spelled = option.opts[-1] if is_option else option.make_metavar(click.get_current_context())
            what = f"{spelled}: cannot be combined with --across, which compares the data sets of a result folder"
            raise ConfigError(what)
    from groupgt.results.folder import ResultFolder, folders_of
    from groupgt.results.merge import across_in

    folder = replace(ResultFolder.read(folders_of([inputs.truth_path])[-1]), chosen=inputs.systems)
    metrics = inputs.metrics if inputs.metric_texts else folder.compare.get("metrics", [])
    return across_in(folder, Settings(**_as_typed(settings, folder.compare)), baseline, metrics, primary)


def _as_typed(settings: dict[str, Any], compare: dict[str, Any]) -> dict[str, Any]:
    """Return settings from the command line, falling back on the experiment's settings."""
    return {name: value if typed(name) else compare.get(name, value) for name, value in settings.items()}


def _comparison(
    inputs: Inputs, baseline: str | None, primary: str | None, settings: dict[str, Any], others: Sequence[Path] = ()
) -> Comparison:
    """Compare the runs with the baseline, or raise `ConfigError` if there is only one run."""
    inputs.check(also_read=others)
    metrics: list[str] = []
    if inputs.reopened is not None:
        compare = inputs.reopened.compare
        if not inputs.metric_texts:
            metrics, primary = compare.get("metrics", []), primary or inputs.reopened.primary
        settings = _as_typed(settings, compare)
        baseline = baseline or inputs.reopened.baseline_among(inputs.systems)
    if len(inputs.runs) < 2:
        raise ConfigError(f"expected at least two runs, found {len(inputs.runs)}: {inputs.runs[0]}")
    baseline = baseline_of([name for name, _ in inputs.named_runs], baseline)
    inputs.check_budgets(inputs.request)
    request = replace(inputs.request, annotators=tuple(map(inputs.reading.annotation, others)))
    evaluations = inputs.evaluations_by_name(request)
    text_of = evaluations[baseline].text_of
    decisive = None if primary is None else text_of(primary)
    if decisive is not None and metrics and decisive not in map(text_of, metrics):
        metrics = [*metrics, decisive]
    inputs.waiting.doing("comparing")
    return comparison_of(evaluations, baseline, Settings(**settings), metrics, decisive)


@command("power")
@BASELINE
@PRIMARY
@click.option(
    "--difference", type=float, metavar="D", help="The difference to detect (default: the observed difference)."
)
@out.default_option("--power", type=float, default=0.8, help="Target power.")
@setting_options("test", "alpha", "correction")
@out.format_option
@out.details_option
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
    """Show how small a difference these queries can detect, and how many queries you need.

    The analysis uses the per-query differences between RUNS and the baseline. If all differences have the same size,
    as with complete and hit_rate, the power is exact. Otherwise, groupgt computes the power of a paired t test.
    Requires SciPy. Unless --correction is none, alpha is divided by the number of comparisons.

    For a result folder, also show the drop or gain that each gate of its experiment can detect in the next run.

    With --audit, show how wide the intervals of corrected means and differences would be with 20, 50, 100 and 200
    audited queries.
    """
    from groupgt.report.detectable import in_folder

    folder = inputs.reopened
    gates = []
    if folder is not None and inputs.setting("audit") is None:
        gates = list(in_folder(folder, Settings(**_as_typed({**settings, "seed": 0}, folder.compare))))
    if gates and len(inputs.runs) < 2:
        inputs.check()
        out.show("\n".join(gates))
        return
    # No confidence interval is shown: one resample is enough.
    comparison = _comparison(inputs, baseline, primary, {**settings, "resamples": 1, "seed": 0})
    if inputs.setting("audit") is not None:
        out.show_result(comparison.audit_power(), style)
        return
    out.show_result(comparison.power(difference=difference, power=power), style)
    for line in gates:
        out.show_beside(line, style)


# The metric of commands that need one.
DEFAULT = "ndcg@10"


@command("correlate")
@setting_options("alpha", "resamples", "seed")
@out.format_option
@out.details_option
@input_options(TRUTH, RUNS, METRICS, LABELLER, ONE_CONVENTION)
def correlate_command(inputs: Inputs, style: str, **settings: Any) -> None:
    """Correlate the order of systems under two ground truths or metrics, and list the pairs of systems that swap.

    The output shows Kendall's tau-b and tau_AP. With one metric, give two ground truths and the runs, as in TRUTH
    OTHER_TRUTH RUN... The first ground truth is the reference. With two metrics, give one ground truth and the runs.
    Two result folders are compared by the metric from -m, or by their primary metrics. With one result folder, give two
    metrics. For ground truths, the default metric is ndcg@10.
    """
    out.show_result(correlated(inputs, **settings), style)


def correlated(inputs: Inputs, **settings: Any) -> Correlation:
    """Correlate two ground truths or two metrics over RUNS, or over result folders."""
    from groupgt.comparison.correlation import correlation_of, side_of
    from groupgt.results.correlate import correlate

    metrics = inputs.metrics if inputs.metric_texts else []
    if is_result_folder(inputs.truth_path):
        refuse_reading("dataset_name")
        if len(inputs.run_paths) > 1:
            raise ConfigError(f"expected one or two result folders, found {1 + len(inputs.run_paths)}")
        other = next(iter(inputs.run_paths), None)
        return correlate(inputs.truth_path, other, metrics=metrics, dataset=inputs.dataset_name, **settings)
    inputs = inputs if metrics else replace(inputs, metric_texts=(DEFAULT,))
    metrics = inputs.metrics
    if len(metrics) not in (1, 2):
        raise ConfigError(f"-m: expected one metric for two ground truths, or two metrics, found {len(metrics)}")
    if len(inputs.run_paths) <= 2 - len(metrics):
        raise ConfigError(NO_RUNS)
    if len(metrics) == 2:
        inputs.check()
        table = Systems.of(inputs.evaluations_by_name(inputs.request))
        sides = [side_of(table, text, text) for text in table.metrics]
    else:
        every = [inputs.truth_path, *inputs.run_paths[:1]]
        names = [path.name for path in every] if len({path.name for path in every}) > 1 else list(map(str, every))
        sides = []
        for path, name in zip(every, names):
            one = replace(inputs, truth_path=path, run_paths=inputs.run_paths[1:])
            one.check()
            table = Systems.of(one.evaluations_by_name(one.request))
            sides.append(side_of(table, table.primary, name))
    if len(sides) != 2:
        raise ConfigError(f"expected exactly two sets of means, found {len(sides)}; choose one cutoff with -k")
    return correlation_of(sides[0], sides[1], Settings(pairs=True, **settings))

"""Draws single figures with `groupgt plot`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groupgt.cli.compare import BASELINE, correlated, setting_options
from groupgt.cli.help import command
from groupgt.cli.inputs import Inputs, input_options, is_result_folder, refuse_reading
from groupgt.cli.needs import refuse
from groupgt.cli.options import ANY_RUNS, BUDGETS, BY, LABELLER, METRICS, OF_TRUTH, ONE_CONVENTION
from groupgt.cli.output import FILE, output_option, repeatable_option, say_wrote, show
from groupgt.comparison.settings import Settings
from groupgt.errors import ConfigError, DataError
from groupgt.model.values import UNITS
from groupgt.render.drawing import Figure, check_picture
from groupgt.render.figures import FIGURES, check_figure, figure_named

if TYPE_CHECKING:
    from groupgt.comparison.systems import Systems

NEEDS = "; for figures that need rankings, name one result folder, or TRUTH and RUNS"


def _size(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    size = re.fullmatch("([0-9]+)x([0-9]+)", text)
    if size is None:
        raise ConfigError(f"--size: expected WIDTHxHEIGHT in pixels, such as 400x250, found {text!r}")
    return int(size[1]), int(size[2])


@command(
    "plot", epilog="\b\nWHAT is one of:\n" + "\n".join(f"  {name:<12} {summary}" for name, summary in FIGURES.items())
)
@click.argument("what", metavar="WHAT")
@output_option("Write the figure to this file: .svg, .png, .pdf, .html or .json.", required=True)
@click.option("--title", metavar="TEXT", help="Title of the figure; empty for none.")
@click.option("--size", callback=_size, metavar="WIDTHxHEIGHT", help="Size in pixels, such as 400x250.")
@repeatable_option("--system", "shown", metavar="NAME", help="Draw only these systems and the baseline; repeatable.")
@click.option("--dataset", metavar="NAME", help="Data set to use.")
@BASELINE
@setting_options("test", "correction", "alpha", "seed", overriding=True)
@click.argument("truth_path", metavar="FOLDER|TRUTH", type=FILE)
@input_options(OF_TRUTH, ANY_RUNS, METRICS, BY, LABELLER, BUDGETS, ONE_CONVENTION)
def plot_command(
    inputs: Inputs,
    what: str,
    output: Path,
    title: str | None,
    size: tuple[int | None, int | None],
    shown: tuple[str, ...],
    dataset: str | None,
    baseline: str | None,
    **settings: Any,
) -> None:
    """Draw the figure WHAT for RUNS and the ground truth in TRUTH, or for result folders from `groupgt run`.

    A result folder replaces TRUTH and RUNS, as in groupgt plot means results/sweep/latest -o means.svg. The figures
    sweep and latency require a result folder. Depth, ecdf, groups and slices accept at most one result folder.
    Correlation takes the same input as groupgt correlate. Figures show the first metric from -m (default: the folder's
    primary metric), but depth shows all metrics.
    """
    if not what.startswith("sweep "):
        check_figure(what, UNITS)
    check_picture(output)
    settings = {name: value for name, value in settings.items() if value is not None}
    is_folder = not inputs.run_paths or is_result_folder(inputs.truth_path)
    if dataset is not None and not is_folder:
        raise ConfigError("--dataset: TRUTH and RUNS are a single data set; remove this option")
    if what == "correlation":
        figure = _of_correlation(inputs, dataset, settings)
    elif is_folder:
        figure = _of_folders(inputs, what, dataset, baseline, shown, settings)
    else:
        figure = _of_runs(inputs, what, baseline, shown, settings)
    figure = figure.styled(title=title, width=size[0], height=size[1])
    try:
        figure.save(output)
    except OSError as error:
        raise DataError(f"cannot write {output}: {error.strerror or error}") from None
    show(figure.text)
    say_wrote(output)


def _of_correlation(inputs: Inputs, dataset: str | None, settings: dict[str, Any]) -> Figure:
    """Draw the correlation of two ground truths or metrics, with the same input as `groupgt correlate`."""
    unused = ("test", "correction", "baseline", "shown", "by")
    refuse(unused, "the correlation figure shows all systems; remove this option")
    return correlated(replace(inputs, dataset_name=dataset), **settings).plot()


def _of_runs(inputs: Inputs, what: str, baseline: str | None, shown: Sequence[str], settings: dict[str, Any]) -> Figure:
    from groupgt.comparison.compare import baseline_of, comparison_of

    inputs.check()
    baseline = baseline_of([name for name, _ in inputs.named_runs], baseline)
    table = comparison_of(inputs.evaluations_by_name(inputs.request), baseline, Settings(**settings))
    table = table.only(shown) if shown else table
    figure = _against_depth(inputs, what, table) or table.plot(what)
    if not table.has_tested:
        refuse(("test", "correction", "alpha"), f"the {what} figure does not include a test; remove this option")
    return figure


def _against_depth(inputs: Inputs, what: str, systems: Systems) -> Figure | None:
    """Draw the metrics from -m against depth, or return None for other figures or if -m is not set."""
    from groupgt.report.curves import depth_curves

    if what not in ("depth", *UNITS) or not inputs.metric_texts or not systems.evaluations:
        return None
    return depth_curves(systems, "results" if what == "depth" else what, list(systems.metrics.values()))


def _of_folders(
    inputs: Inputs, what: str, dataset: str | None, baseline: str | None, shown: Sequence[str], settings: dict[str, Any]
) -> Figure:
    from groupgt.report.experiment import chosen
    from groupgt.report.merged import merged_figures
    from groupgt.results.folder import folders_of, read_folders
    from groupgt.results.merge import compared_metrics, merged, settings_of, why_stored

    refuse_reading()
    folders = read_folders(folders_of([inputs.truth_path, *inputs.run_paths]))
    metrics = inputs.metrics if inputs.metric_texts else []
    compared = compared_metrics(folders)
    tables = merged(folders, replace(settings_of(folders), **settings), baseline, metrics, compared)
    name = chosen(list(tables), dataset)
    table = tables[name].only(shown) if shown else tables[name]
    figures = merged_figures(folders, table, name, next(iter(metrics), None))
    lacking = f"; its systems cannot be evaluated again: {why}" if (why := why_stored(table)) else NEEDS
    return _against_depth(inputs, what, table) or figure_named(what, figures, lacking)

"""`groupgt power`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from groupgt.cli import options
from groupgt.comparison.compare import compare
from groupgt.comparison.power import alpha_of, grid, power_of
from groupgt.comparison.tests import CORRECTIONS
from groupgt.errors import ConfigError
from groupgt.evaluation.request import as_ground_truth
from groupgt.evaluation.slices import where
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables


@click.command("power")
@options.truth_argument
@click.argument("runs", nargs=-1, required=True, type=options.FILE)
@click.option("--baseline", metavar="NAME", help="The run to compare with; the first, where none is named.")
@options.metrics_option
@options.k_option
@options.convention_option
@click.option("--by", multiple=True, metavar="COLUMN", help=options.BY_HELP)
@click.option("--difference", type=float, metavar="D", help="The wanted difference; else the observed one.")
@click.option("--power", "wanted", type=float, default=0.8, show_default=True, help="With which to show it.")
@click.option("--alpha", type=float, default=0.05, show_default=True)
@click.option(
    "--correction",
    type=click.Choice(list(CORRECTIONS)),
    default="holm",
    show_default=True,
    help="Unless none, alpha is divided by the number of comparisons.",
)
@options.where_option
@options.policy_option
@options.lengths_options
@options.truth_format_option
@click.option("--run-format", help="The format of the runs, where it is not to be detected.")
@options.labeller_options
@options.format_option
def command(
    truth: Path,
    runs: tuple[Path, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    ks: tuple[str, ...],
    convention: str,
    by: tuple[str, ...],
    difference: float | None,
    wanted: float,
    alpha: float,
    correction: str,
    conditions: tuple[str, ...],
    policies: tuple[str, ...],
    corpus: Path | None,
    tokenizer: str | None,
    allow_code: bool,
    truth_format: str | None,
    run_format: str | None,
    labeller: str,
    settings: tuple[str, ...],
    style: str,
) -> None:
    """Say how large a difference these questions can show, and how many questions show a wanted one.

    From the differences of RUNS to the baseline, query by query; by the power of the paired t test. Needs SciPy.
    """
    tables.check_style(style, "json", "csv")
    paths = all_there(truth, runs)
    policy = Policy.of(options.split_policy(policies))
    if len(paths) < 2:
        raise ConfigError(f"expected at least two runs to compare, found {len(paths)}: {paths[0]}")
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    lengths = options.lengths_of(corpus, tokenizer, allow_code=allow_code)
    table = compare(
        grouped,
        paths,
        options.split_metrics(metrics),
        baseline=baseline,
        correction=correction,
        alpha=alpha,
        resamples=1,
        run_format=run_format,
        policy=policy,
        convention=convention,
        k=options.split_ks(ks),
        by=options.split_columns(by),
        labeller=options.labeller_from(labeller, settings, corpus, allow_code=allow_code),
        lengths=lengths,
        corpus=lengths.texts or None,
    )
    found = table.power(difference=difference, wanted=wanted)
    labels = {text: each.short(table.convention) for text, each in table.metrics.items()}
    parts = [("", "", table.rows, found)]
    for part in table.slices:
        own = power_of(part.rows, table.settings, difference=difference, wanted=wanted)
        parts.append((part.by, part.value, list(part.rows), own))
    if style == "json":
        rows = [
            {"by": column, "value": value, "alpha": alpha_of(own, table.settings), **asdict(each)}
            for column, value, own, figures in parts
            for each in figures
        ]
        click.echo(tables.json_text({"power": wanted, "rows": rows}))
        return
    headers, _ = grid(found, labels, wanted)
    cells = [
        [*([column, value] if by else []), *row]
        for column, value, _, own in parts
        for row in grid(own, labels, wanted)[1]
    ]
    click.echo(tables.shown([*(["by", "value"] if by else []), *headers], cells, style))
    if style != "csv":
        click.echo(
            f"\nagainst {table.baseline}: paired t test, two-sided, alpha {alpha_of(table.rows, table.settings):.4g} "
            "for each comparison; spread is the standard deviation of the differences\n" + "\n".join(table.footer)
        )

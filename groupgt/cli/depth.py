"""`groupgt depth`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groupgt.cli import options
from groupgt.errors import ConfigError, Faults
from groupgt.evaluation.depth import Depth, check_depth, depths_of
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.request import Request, as_ground_truth
from groupgt.evaluation.slices import where
from groupgt.formats.detect import all_there
from groupgt.model.lengths import UNITS
from groupgt.model.policy import Policy
from groupgt.model.validity import number_of
from groupgt.render import tables


@click.command("depth")
@options.truth_argument
@click.argument("runs", nargs=-1, required=True, type=options.FILE)
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="S",
    help="Shares of questions, such as 0.5,0.9; else 0.9.",
)
@click.option(
    "--unit",
    type=click.Choice(["results", *UNITS]),
    default="results",
    show_default=True,
    help="What depth is counted in.",
)
@click.option("--by", multiple=True, metavar="COLUMN", help=options.BY_HELP)
@click.option("--intervals", type=float, default=0.95, show_default=True, help="The level of intervals.")
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
    shares: tuple[str, ...],
    unit: str,
    by: tuple[str, ...],
    intervals: float,
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
    """Say how deep one must look: the smallest k, or budget, at which a share of questions has all it needs."""
    tables.check_style(style, "json", "csv")
    policy = Policy.of(options.split_policy(policies))
    wanted = _shares(shares)
    paths = all_there(truth, runs)
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    lengths = options.lengths_of(corpus, tokenizer, allow_code=allow_code)
    judge = options.labeller_from(labeller, settings, corpus, allow_code=allow_code)
    columns = options.split_columns(by)
    check_depth(wanted, unit, intervals)
    request = Request.of(
        "complete.coverage", by=columns, lengths=lengths, policy=policy, labeller=judge, run_format=run_format
    )
    evaluations = evaluate_each(request, grouped, [("", path) for path in paths])
    found = [
        row
        for evaluation in evaluations
        for row in depths_of(evaluation, wanted, unit=unit, level=intervals, lengths=lengths)
    ]
    if style == "json":
        click.echo(tables.json_text([vars(each) for each in found]))
        return
    if style == "csv":
        headers = ["run", "share", unit, "low", "high", "queries", "undefined", "missing", "ever_complete"]
    else:
        interval = f"{100 * intervals:g} % interval"
        headers = ["run", "share complete", unit, interval, "queries", "undefined", "missing", "ever complete"]
    headers = ["by", "value", *headers] if columns else headers
    rows: list[list[Any]] = [[*([each.by, each.value] if columns else []), *_row(each, style)] for each in found]
    click.echo(tables.shown(headers, rows, style))
    if style != "csv":
        click.echo(f"\n{100 * intervals:g} % intervals of order statistics\npolicy {policy}")


def _row(each: Depth, style: str) -> list[Any]:
    low, high = each.interval
    last = [each.queries, each.undefined, each.missing, each.reached]
    if style == "csv":
        return [each.run, each.share, each.depth, low, high, *last]
    return [each.run, f"{100 * each.share:g} %", _told(each), _ends(low, high), *last]


def _told(found: Depth) -> str:
    if not found.queries:
        return "–"
    return "not reached" if found.depth is None else f"{found.depth:,}"


def _ends(low: int | None, high: int | None) -> str:
    """An interval of which an end may be unknown."""
    if low is None:
        return "–" if high is None else f"at most {high:,}"
    return f"at least {low:,}" if high is None else f"{low:,} to {high:,}"


def _shares(given: tuple[str, ...]) -> list[float]:
    faults = Faults()
    found = []
    for text in (part.strip() for each in given for part in each.split(",")):
        number = number_of(text.removesuffix("%"))
        number = number / 100 if number is not None and text.endswith("%") else number
        if number is None or not 0 < number <= 1:
            faults.add("--share", f"expected numbers above 0, at most 1, such as 0.5,0.9 or 90%, found {text!r}")
        else:
            found.append(number)
    faults.stop(ConfigError)
    return list(dict.fromkeys(found)) or [0.9]

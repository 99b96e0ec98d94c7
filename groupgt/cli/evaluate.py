"""What results are worth: `groupgt evaluate`, `explain`, `misses` and `depth`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from groupgt.cli.inputs import (
    BUDGETS,
    BY,
    EVALUATION,
    LABELLER,
    METRICS,
    ONE_RUN,
    RUNS,
    SEVERAL_CONVENTIONS,
    TRUTH,
    Inputs,
    input_options,
)
from groupgt.cli.output import (
    FILE,
    check_table_ending,
    format_option,
    show,
    show_csv,
    show_json,
    show_rows,
    write_table,
)
from groupgt.errors import ConfigError, Faults
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.request import metrics_in
from groupgt.evaluation.tables import means_and_slices, per_query_rows, side_by_side, summary
from groupgt.model.validity import number_of
from groupgt.model.values import UNITS
from groupgt.render import tables


@click.command("evaluate")
@click.option("--per-query", type=FILE, help="Write every query's values: .csv, .jsonl or .parquet.")
@click.option("--html", "page", type=FILE, help="Write an HTML report: one self-contained page.")
@format_option
@input_options(EVALUATION, SEVERAL_CONVENTIONS)
def evaluate_command(inputs: Inputs, per_query: Path | None, page: Path | None, style: str) -> None:
    """Compute metrics for RUNS (files, folders or globs; each file is one run) against the ground truth in TRUTH.

    Default metrics: precision, recall, f1, mrr, map and ndcg. Without -k, metrics written without a cutoff use the
    whole ranking.
    """
    check_table_ending(per_query)
    inputs.check(written=[per_query, page])
    evaluations = inputs.evaluations(inputs.request)
    if page is not None:
        from groupgt.comparison.compare import comparison_of
        from groupgt.comparison.settings import Settings

        by_name = {evaluation.name: evaluation for evaluation in evaluations}
        comparison_of(by_name, next(iter(by_name)), Settings()).to_html(page, corpus=inputs.texts)
    write_table(per_query, lambda: per_query_rows(evaluations))
    if style == "json":
        show_json({"runs": [evaluation.to_dict() for evaluation in evaluations]})
    elif style == "csv":
        show_csv(*(means_and_slices(evaluations) if inputs.by else side_by_side(evaluations, inputs.conventions)))
    else:
        show(summary(evaluations, inputs.conventions, style))


@click.command("explain")
@click.option("--query", "qid", required=True, metavar="ID", help="The query to explain.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@input_options(
    TRUTH,
    ONE_RUN,
    METRICS,
    SEVERAL_CONVENTIONS,
    LABELLER,
    BUDGETS,
)
def explain_command(inputs: Inputs, qid: str, style: str) -> None:
    """Show how each metric of one query is calculated: the hits, and each formula with its numbers filled in."""
    inputs.check()
    # By their full names: what two spellings ask is worked out once.
    metrics = metrics_in(inputs.metrics, inputs.conventions, inputs.cutoffs)
    evaluation = evaluate_run(inputs.request_for(metrics, inputs.conventions[0]), inputs.truth, inputs.run)
    if style == "json":
        show_json(evaluation.explain_dict(qid))
    else:
        show(evaluation.explain(qid, corpus=inputs.lengths.texts or None))


@click.command("misses")
@click.option(
    "--worst",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many queries to list; with several runs, how many groups.",
)
@click.option(
    "-k",
    "k",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Cutoff: a group counts as met if it has a hit in the first k results.",
)
@format_option
@input_options(TRUTH, RUNS, LABELLER)
def misses_command(inputs: Inputs, worst: int, k: int, style: str) -> None:
    """List the groups that the worst queries miss, with the rank of their first hit, and how well groups are covered.

    With several RUNS: the groups that the fewest runs meet, with the rank of their first hit in each run.
    """
    from groupgt.comparison.failures import failures_of
    from groupgt.evaluation.misses import misses

    inputs.check()
    evaluations = inputs.evaluations(inputs.request_for([f"recall.coverage@{k}"], "coverage"))
    if len(evaluations) > 1:
        failures = failures_of({evaluation.name: evaluation for evaluation in evaluations}, k)
        _show_failures(failures, worst, style, inputs.texts)
        return
    found = misses(evaluations[0], k, worst)
    if style == "json":
        show_json(asdict(found))
    elif style == "csv":
        show_csv(*found.grid())
    else:
        show(found.text(style, inputs.texts or None))


def _show_failures(failures: Any, worst: int, style: str, texts: Mapping[str, str]) -> None:
    """The groups that fewest runs meet, after how many queries each run completes."""
    if style == "json":
        show_json(failures.to_dict(worst))
        return
    headers = ["query", "group", *failures.systems, "alternatives"]
    rows: list[list[Any]] = []
    hardest = failures.hardest(worst)
    for group in hardest:
        alternatives = " or ".join(group["alternatives"])
        text = " ".join(texts.get(group["alternatives"][0], "").split())
        ranks = ["–" if rank is None else f"{rank:,}" for rank in group["ranks"].values()]
        rows.append([group["qid"], group["group"], *ranks, f"{alternatives}: {text[:59]}" if text else alternatives])
    if style == "csv":
        show_csv(headers, rows)
        return
    counted = failures.counted
    complete = failures.solved[counted].sum(axis=0).tolist()
    counts = ", ".join(f"{name} {count:,}" for name, count in zip(failures.systems, complete))
    whole = f"complete in the first {failures.cutoff}, of {int(counted.sum()):,} queries"
    parts = [
        f"{whole}: {counts}; by none {len(failures.nobody):,}",
        tables.table(headers, rows, style) if rows else "every run meets every group",
    ]
    unmet = int(failures.unmet.sum())
    if unmet > len(rows):
        parts.append(f"the hardest {len(rows):,} of {unmet:,} groups that at least one run misses")
    queries = dict.fromkeys((group["qid"], failures.text_of(group["qid"])) for group in hardest)
    if questions := [f"{qid}: {text}" for qid, text in queries if text]:
        parts.append("\n".join(questions))
    show("\n\n".join(parts))


@click.command("depth")
@click.option(
    "--share", "shares", multiple=True, metavar="S", help="Shares of queries, such as 0.5,0.9 (default: 0.9)."
)
@click.option(
    "--unit",
    type=click.Choice(["results", *UNITS]),
    default="results",
    show_default=True,
    help="Unit of the cutoff.",
)
@click.option("--intervals", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@format_option
@input_options(TRUTH, RUNS, BY, LABELLER, BUDGETS)
def depth_command(inputs: Inputs, shares: tuple[str, ...], unit: str, intervals: float, style: str) -> None:
    """Find the smallest cutoff, or budget, at which a given share of queries is fully covered."""
    from groupgt.evaluation.depth import METRIC, check_depth, depths_of

    wanted = _shares(shares)
    check_depth(wanted, unit, intervals)
    inputs.check()
    depths = [
        depth
        for evaluation in inputs.evaluations(inputs.request_for([METRIC]))
        for depth in depths_of(evaluation, wanted, unit=unit, level=intervals, lengths=inputs.lengths)
    ]
    if style == "json":
        show_json([vars(depth) for depth in depths])
        return
    level = f"{100 * intervals:g} % interval"
    if style == "csv":
        headers = ["run", "share", unit, "low", "high", "queries", "undefined", "missing", "ever_complete"]
    else:
        headers = ["run", "share complete", unit, level, "queries", "undefined", "missing", "ever complete"]
    rows = [[*([depth.by, depth.value] if inputs.by else []), *_depth_row(depth, style)] for depth in depths]
    show_rows([*(["by", "value"] if inputs.by else []), *headers], rows, style)
    if style != "csv":
        show(f"\n{level}s of order statistics\npolicy {inputs.policy}")


def _depth_row(depth: Any, style: str) -> list[Any]:
    low, high = depth.interval
    population = [depth.queries, depth.undefined, depth.missing, depth.reached]
    if style == "csv":
        return [depth.run, depth.share, depth.depth, low, high, *population]
    reached = "not reached" if depth.depth is None else f"{depth.depth:,}"
    return [depth.run, f"{100 * depth.share:g} %", reached if depth.queries else "–", _range(low, high), *population]


def _range(low: int | None, high: int | None) -> str:
    """An interval of which an end may be unknown."""
    if low is None:
        return "–" if high is None else f"at most {high:,}"
    return f"at least {low:,}" if high is None else f"{low:,} to {high:,}"


def _shares(texts: tuple[str, ...]) -> list[float]:
    """The shares of all --share options, or 0.9."""
    faults = Faults()
    shares = []
    for text in (part.strip() for each in texts for part in each.split(",")):
        number = number_of(text.removesuffix("%"))
        number = number / 100 if number is not None and text.endswith("%") else number
        if number is None or not 0 < number <= 1:
            faults.add("--share", f"expected numbers above 0, at most 1, such as 0.5,0.9 or 90%, found {text!r}")
        else:
            shares.append(number)
    faults.stop(ConfigError)
    return list(dict.fromkeys(shares)) or [0.9]

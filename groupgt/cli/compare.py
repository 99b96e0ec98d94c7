"""`groupgt compare`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.comparison.compare import compare
from groupgt.comparison.tests import CORRECTIONS, TESTS
from groupgt.errors import ConfigError
from groupgt.evaluation.request import as_ground_truth
from groupgt.evaluation.slices import where
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.exports import check_ending, write_rows
from groupgt.store.files import written_whole


@click.command("compare")
@options.truth_argument
@click.argument("runs", nargs=-1, required=True, type=options.FILE)
@click.option("--baseline", metavar="NAME", help="The run to compare with; the first, where none is named.")
@options.metrics_option
@options.k_option
@options.convention_option
@click.option("--by", multiple=True, metavar="COLUMN", help=options.BY_HELP)
@click.option(
    "--test", type=click.Choice(list(TESTS)), default="randomization", show_default=True, help="t, wilcoxon: by SciPy."
)
@click.option("--correction", type=click.Choice(list(CORRECTIONS)), default="holm", show_default=True)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="A p-value of at most this is significant.")
@click.option("--intervals", type=float, default=0.95, show_default=True, help="The level of intervals.")
@click.option("--resamples", type=int, default=10_000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bits.")
@click.option("--pairs", is_flag=True, help="Compare every two runs as well, with Tukey's HSD.")
@click.option("--per-query", type=options.FILE, help="Write every query's values: .csv, .jsonl or .parquet.")
@click.option(
    "--failures",
    type=options.FILE,
    help="Write the groups each run meets and misses: .csv, .jsonl, .parquet.",
)
@options.where_option
@options.policy_option
@options.lengths_options
@options.truth_format_option
@click.option("--run-format", help="The format of the runs, where it is not to be detected.")
@options.parts_option
@options.memory_option
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
    test: str,
    correction: str,
    alpha: float,
    intervals: float,
    resamples: int,
    seed: int,
    pairs: bool,
    per_query: Path | None,
    failures: Path | None,
    conditions: tuple[str, ...],
    policies: tuple[str, ...],
    corpus: Path | None,
    tokenizer: str | None,
    allow_code: bool,
    truth_format: str | None,
    run_format: str | None,
    in_parts: bool,
    memory: str | None,
    labeller: str,
    settings: tuple[str, ...],
    style: str,
) -> None:
    """Say which differences between RUNS are real, where they come from and what they are worth.

    Each run is held against the baseline query by query: means and deltas with bootstrap intervals, a paired test,
    wins and losses; with --by in every slice. Then who solves what, and what a perfect choice among runs would reach.
    """
    tables.check_style(style, "json", "csv")
    engine = options.engine_with(memory)
    if pairs and style == "csv":
        raise ConfigError("--pairs: there is no room for pairs in the CSV table; use --format json")
    for path in (per_query, failures):
        if path is not None:
            check_ending(path)
    paths = all_there(truth, runs, in_parts=in_parts)
    options.check_outputs([truth, *paths, *([corpus] if corpus else [])], [per_query, failures])
    policy = Policy.of(options.split_policy(policies))
    if len(paths) < 2:
        raise ConfigError(f"expected at least two runs to compare, found {len(paths)}: {paths[0]}")
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    lengths = options.lengths_of(corpus, tokenizer, allow_code=allow_code)
    found = compare(
        grouped,
        paths,
        options.split_metrics(metrics),
        baseline=baseline,
        test=test,
        correction=correction,
        alpha=alpha,
        intervals=intervals,
        resamples=resamples,
        seed=seed,
        pairs=pairs,
        run_format=run_format,
        engine=engine,
        policy=policy,
        convention=convention,
        k=options.split_ks(ks),
        by=options.split_columns(by),
        labeller=options.labeller_from(labeller, settings, corpus, allow_code=allow_code),
        lengths=lengths,
        corpus=lengths.texts or None,
    )
    if style == "json":
        text = tables.json_text(found.to_dict())
    elif style == "csv":
        text = tables.csv_text(*found.csv_rows()).rstrip("\n")
    else:
        text = found.text(style)
    if per_query is not None:
        frame = found.per_query
        written_whole(per_query, lambda part: write_rows(part, frame.columns, frame.rows(), per_query.suffix))
    if failures is not None and found.failures is not None:
        headers, rows = found.failures.rows()
        written_whole(failures, lambda part: write_rows(part, headers, rows, failures.suffix))
    click.echo(text)

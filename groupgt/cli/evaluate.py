"""`groupgt evaluate`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.request import Request, as_ground_truth, metrics_in
from groupgt.evaluation.slices import where
from groupgt.evaluation.tables import per_query_rows, summary
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.exports import check_ending, write_rows
from groupgt.store.files import written_whole


@click.command("evaluate")
@options.truth_argument
@click.argument("runs", nargs=-1, required=True, type=options.FILE)
@options.metrics_option
@options.k_option
@options.conventions_option
@click.option("--by", multiple=True, metavar="COLUMN", help=options.BY_HELP)
@options.where_option
@options.policy_option
@click.option("--per-query", type=options.FILE, help="Write every query's values: .csv, .jsonl or .parquet.")
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
    metrics: tuple[str, ...],
    ks: tuple[str, ...],
    convention: str,
    by: tuple[str, ...],
    conditions: tuple[str, ...],
    policies: tuple[str, ...],
    per_query: Path | None,
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
    """Measure RUNS (files, folders or globs; each file one system) against the ground truth in TRUTH.

    Without -m: precision, recall, f1, mrr, map and ndcg. Without -k, a metric without a cutoff of its own looks at
    the whole ranking.
    """
    tables.check_style(style, "json", "csv")
    engine = options.engine_with(memory)
    if per_query is not None:
        check_ending(per_query)
    conventions = options.split_conventions(convention)
    texts, cutoffs = options.split_metrics(metrics), options.split_ks(ks)
    asked = metrics_in(texts, conventions, cutoffs) if len(conventions) > 1 else texts
    policy = Policy.of(options.split_policy(policies))
    paths = all_there(truth, runs, in_parts=in_parts)
    options.check_outputs([truth, *paths, *([corpus] if corpus else [])], [per_query])
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    judge = options.labeller_from(labeller, settings, corpus, allow_code=allow_code)
    lengths = options.lengths_of(corpus, tokenizer, allow_code=allow_code)
    request = Request.of(
        asked,
        convention=conventions[0],
        k=cutoffs,
        by=options.split_columns(by),
        policy=policy,
        labeller=judge,
        lengths=lengths,
        corpus=lengths.texts or None,
        run_format=run_format,
        engine=engine,
    )
    found = evaluate_each(request, grouped, [("", path) for path in paths])
    if per_query is not None:
        headers, rows = per_query_rows(found)
        written_whole(per_query, lambda part: write_rows(part, headers, rows, per_query.suffix))
    click.echo(summary(found, conventions, style))

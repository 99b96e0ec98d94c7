"""`groupgt explain`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.evaluation.evaluate import evaluate
from groupgt.evaluation.request import metrics_in
from groupgt.render.tables import json_text


@click.command("explain")
@options.truth_argument
@options.run_argument
@click.option("--query", "qid", required=True, metavar="ID", help="The query to work out.")
@options.metrics_option
@options.k_option
@options.conventions_option
@options.policy_option
@options.corpus_option
@options.tokenizer_option
@options.allow_code_option
@options.truth_format_option
@options.labeller_options
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    truth: Path,
    run: Path,
    qid: str,
    metrics: tuple[str, ...],
    ks: tuple[str, ...],
    convention: str,
    policies: tuple[str, ...],
    corpus: Path | None,
    tokenizer: str | None,
    allow_code: bool,
    truth_format: str | None,
    labeller: str,
    settings: tuple[str, ...],
    style: str,
) -> None:
    """Work out one query: who hit what, and each formula with its figures filled in."""
    lengths = options.lengths_of(corpus, tokenizer, allow_code=allow_code)
    conventions = options.split_conventions(convention)
    found = evaluate(
        truth,
        run,
        metrics_in(options.split_metrics(metrics), conventions, options.split_ks(ks)),
        convention=conventions[0],
        policy=options.split_policy(policies),
        lengths=lengths,
        corpus=lengths.texts or None,
        labeller=options.labeller_from(labeller, settings, corpus, allow_code=allow_code),
        truth_format=truth_format,
    )
    if style == "json":
        click.echo(json_text(found.explain_dict(qid)))
    else:
        click.echo(found.explain(qid, corpus=lengths.texts or None))

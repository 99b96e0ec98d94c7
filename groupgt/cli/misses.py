"""`groupgt misses`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from groupgt.cli import options
from groupgt.evaluation.core import evaluate
from groupgt.evaluation.missed import misses
from groupgt.formats.corpus import read_corpus
from groupgt.render import tables
from groupgt.render.tables import json_text

__all__ = ["command"]


@click.command("misses")
@options.truth_argument
@options.run_argument
@click.option("--worst", type=click.IntRange(min=1), default=20, show_default=True, help="How many queries to list.")
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="A group is met within k.")
@options.policy_option
@options.corpus_option
@options.truth_format_option
@options.format_option
def command(
    truth: Path,
    run: Path,
    worst: int,
    k: int,
    policies: tuple[str, ...],
    corpus: Path | None,
    truth_format: str | None,
    style: str,
) -> None:
    """List the unmet groups of the worst queries, and how well groups are covered."""
    tables.check_style(style, "json", "csv")
    found = evaluate(
        truth,
        run,
        [f"recall.coverage@{k}"],
        convention="coverage",
        policy=options.split_policy(policies),
        truth_format=truth_format,
    )
    report = misses(found, k, worst)
    if style == "json":
        click.echo(json_text(asdict(report)))
    elif style == "csv":
        click.echo(tables.csv_text(*report.grid()).rstrip("\n"))
    else:
        click.echo(report.text(style, read_corpus(corpus) if corpus else None))

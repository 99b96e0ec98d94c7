"""`groupgt misses`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from groupgt.cli import options
from groupgt.comparison.display import failures_dict
from groupgt.comparison.failures import Failures, failures_of
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.misses import misses
from groupgt.evaluation.request import Request, as_ground_truth
from groupgt.evaluation.slices import where
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.tables import json_text


@click.command("misses")
@options.truth_argument
@click.argument("runs", nargs=-1, required=True, type=options.FILE)
@click.option(
    "--worst",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many queries to list; groups, of several runs.",
)
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="A group is met within k.")
@options.where_option
@options.policy_option
@options.corpus_option
@options.allow_code_option
@options.truth_format_option
@options.parts_option
@options.labeller_options
@options.format_option
def command(
    truth: Path,
    runs: tuple[Path, ...],
    worst: int,
    k: int,
    conditions: tuple[str, ...],
    policies: tuple[str, ...],
    corpus: Path | None,
    allow_code: bool,
    truth_format: str | None,
    in_parts: bool,
    labeller: str,
    settings: tuple[str, ...],
    style: str,
) -> None:
    """List the unmet groups of the worst queries, and how well groups are covered.

    Of several RUNS: the groups that fewest of them meet, with the rank at which each run has them.
    """
    tables.check_style(style, "json", "csv")
    policy = Policy.of(options.split_policy(policies))
    paths = all_there(truth, runs, in_parts=in_parts)
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    judge = options.labeller_from(labeller, settings, corpus, allow_code=allow_code)
    request = Request.of(f"recall.coverage@{k}", convention="coverage", policy=policy, labeller=judge)
    found = evaluate_each(request, grouped, [("", path) for path in paths])
    if len(found) > 1:
        failures = failures_of({each.name: each for each in found}, k)
        _show(failures, worst, style, read_corpus(corpus) if corpus else {})
        return
    report = misses(found[0], k, worst)
    if style == "json":
        click.echo(json_text(asdict(report)))
    elif style == "csv":
        click.echo(tables.csv_text(*report.grid()).rstrip("\n"))
    else:
        click.echo(report.text(style, read_corpus(corpus) if corpus else None))


def _show(failures: Failures, worst: int, style: str, corpus: Mapping[str, str]) -> None:
    """The hardest groups of several runs."""
    if style == "json":
        click.echo(json_text(failures_dict(failures, worst)))
        return
    headers = ["query", "group", *failures.systems, "alternatives"]
    rows: list[list[Any]] = []
    hardest = failures.hardest(worst)
    for group in hardest:
        wanted = " or ".join(group["alternatives"])
        text = " ".join(corpus.get(group["alternatives"][0], "").split())
        places = ["–" if rank is None else f"{rank:,}" for rank in group["ranks"].values()]
        rows.append([group["qid"], group["group"], *places, f"{wanted}: {text[:59]}" if text else wanted])
    if style == "csv":
        click.echo(tables.csv_text(headers, rows).rstrip("\n"))
        return
    counted = failures.counted
    solved = failures.solved[counted].sum(axis=0).tolist()
    told = ", ".join(f"{name} {count:,}" for name, count in zip(failures.systems, solved))
    whole = f"complete in the first {failures.cutoff}, of {int(counted.sum()):,} queries"
    click.echo(f"{whole}: {told}; by none {len(failures.nobody):,}\n")
    click.echo(tables.table(headers, rows, style) if rows else "every group is met by every run")
    unmet = int(failures.unmet.sum())
    if unmet > len(rows):
        click.echo(f"\nthe hardest {len(rows):,} of {unmet:,} groups that some run does not meet")
    texts = dict.fromkeys((group["qid"], failures.text_of(group["qid"])) for group in hardest)
    questions = [f"{qid}: {text}" for qid, text in texts if text]
    if questions:
        click.echo("\n" + "\n".join(questions))

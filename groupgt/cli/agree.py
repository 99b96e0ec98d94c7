"""`groupgt agree`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from groupgt.cli import options
from groupgt.curation.agree import Agreement, agree
from groupgt.evaluation.request import as_ground_truth
from groupgt.evaluation.slices import where
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.exports import check_ending, write_rows
from groupgt.store.files import written_whole

COUNTS = ("both", "only_first", "only_second")


@click.command("agree")
@options.truth_argument
@click.argument("run", type=options.FILE, required=False)
@click.option("--annotator", type=options.FILE, help="Another ground truth of the same questions.")
@options.labeller_options
@click.option("--other", metavar="NAME", help="Another labeller of the same results.")
@click.option("--other-with", "others", multiple=True, metavar="OPTION=VALUE", help="Its options; repeatable.")
@click.option("--worst", type=click.IntRange(min=0), default=20, show_default=True, help="How many groups to list.")
@click.option("--groups", "every", type=options.FILE, help="Write every group's counts: .csv, .jsonl or .parquet.")
@options.where_option
@options.policy_option
@options.corpus_option
@options.allow_code_option
@options.truth_format_option
@click.option("--run-format", help="The format of the run, where it is not to be detected.")
@options.format_option
def command(
    truth: Path,
    run: Path | None,
    annotator: Path | None,
    labeller: str,
    settings: tuple[str, ...],
    other: str | None,
    others: tuple[str, ...],
    worst: int,
    every: Path | None,
    conditions: tuple[str, ...],
    policies: tuple[str, ...],
    corpus: Path | None,
    allow_code: bool,
    truth_format: str | None,
    run_format: str | None,
    style: str,
) -> None:
    """Say how far two labellers, or two annotators, agree: Cohen's kappa, and the groups they differ on.

    With --other two labellers are asked of every result in RUN whether it hits each group. With --annotator two ground
    truths are asked which results are relevant; without RUN, which of all that either has judged.
    """
    tables.check_style(style, "json", "csv")
    if every is not None:
        check_ending(every)
    policy = Policy.of(options.split_policy(policies))
    given = [each for each in (run, annotator, corpus) if each is not None]
    all_there(truth, given)
    options.check_outputs([truth, *given], [every])
    grouped = where(as_ground_truth(truth, policy, truth_format), options.split_where(conditions))
    found = agree(
        grouped,
        run,
        other_truth=annotator,
        labeller=options.labeller_from(labeller, settings, corpus, allow_code=allow_code),
        other_labeller=None
        if other is None
        else options.labeller_from(other, others, corpus, allow_code=allow_code, option="--other-with"),
        policy=policy,
        run_format=run_format,
    )
    if annotator is not None:
        found = replace(found, first=str(truth), second=str(annotator))
    names = ["qid", *(["annotator"] if annotator is not None else []), "group", *COUNTS]
    rows: list[list[Any]] = [[row[name] for name in names] for row in found.groups]
    if every is not None:
        written_whole(every, lambda part: write_rows(part, names, rows, every.suffix))
    if style == "json":
        click.echo(tables.json_text(found.to_dict()))
        return
    if style == "csv":
        figures = found.to_dict()
        figures.pop("groups")
        figures.pop("labellers")
        click.echo(tables.csv_text(list(figures), [list(figures.values())]).rstrip("\n"))
        return
    click.echo(_text(found, style))
    differing = [row for row in rows if row[-2] or row[-1]][:worst]
    if differing:
        headers = ["query", *names[1:-3], "both", "only the first", "only the second"]
        click.echo("\n" + tables.table(headers, differing, style))


def _text(found: Agreement, style: str) -> str:
    figures: list[list[Any]] = [
        ["Cohen's kappa", found.kappa],
        ["observed agreement", found.observed],
        ["expected by chance", found.expected],
        ["agreement on hits", found.positive],
        [f"items ({found.of})", found.items],
        ["both", found.both],
        ["only the first", found.only_first],
        ["only the second", found.only_second],
        ["neither", found.neither],
    ]
    asked = (
        [] if found.labellers in (("id", "id"), (found.first, found.second)) else list(dict.fromkeys(found.labellers))
    )
    by = f"labeller {' and '.join(asked)}\n" if asked else ""
    head = f"first: {found.first}\nsecond: {found.second}\n{by}{found.queries:,} queries\n\n"
    return head + tables.table(["agreement", "value"], figures, style)

"""`groupgt rechunk`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from groupgt.cli import options
from groupgt.cli.writing import format_named_by, write_truth
from groupgt.curation.rechunk import WAYS, Carried, rechunk
from groupgt.errors import ConfigError
from groupgt.formats.detect import all_there
from groupgt.labellers.spans import UNITS
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.exports import check_ending, write_rows
from groupgt.store.files import written_whole

HEADERS = ["query", "group", "alternative", "chunk", "share", "lost"]


@click.command("rechunk")
@options.truth_argument
@click.option("--from", "old", type=options.FILE, help="The chunks that TRUTH names: their table, or their corpus.")
@click.option("--to", "new", type=options.FILE, help="The chunks to carry it to; none for the places themselves.")
@click.option(
    "--out",
    type=options.FILE,
    help="Where it goes: .jsonl, .parquet, .csv, .tsv; none to see what would become of it.",
)
@click.option(
    "--method",
    type=click.Choice(WAYS),
    help="By places (spans) or by texts; spans where both tables have places, else contained.",
)
@click.option("--min-overlap", type=float, default=0.5, show_default=True, help="Of an alternative, with spans.")
@click.option("--threshold", type=float, default=0.9, show_default=True, help="With partial_ratio and token_recall.")
@click.option("--unit", type=click.Choice(UNITS), default="chars", show_default=True, help="Of the places of chunks.")
@click.option("--drop-lost", is_flag=True, help="Leave out queries of which a whole group cannot be carried.")
@click.option("--report", type=options.FILE, help="Write what became of each alternative: .csv, .jsonl or .parquet.")
@options.policy_option
@options.truth_format_option
@options.format_option
def command(
    truth: Path,
    old: Path | None,
    new: Path | None,
    out: Path | None,
    method: str | None,
    min_overlap: float,
    threshold: float,
    unit: str,
    drop_lost: bool,
    report: Path | None,
    policies: tuple[str, ...],
    truth_format: str | None,
    style: str,
) -> None:
    """Carry the ground truth of one chunking over to another, and say what could not be carried.

    Chunks are tables with chunk_id, doc_id, start and end, or corpora with texts. Nothing is written while a group of
    some query would be lost, for the query would then ask for less than before.
    """
    tables.check_style(style, "json", "csv")
    if report is not None:
        check_ending(report)
    kind = "" if out is None else format_named_by(out)
    if out is None and new is None:
        raise ConfigError("expected --to, the chunks to carry it to, or --out, where the places go")
    chunks = [each for each in (old, new) if each is not None]
    all_there(truth, chunks)
    options.check_outputs([truth, *chunks], [out, report])
    found = rechunk(
        truth,
        old,
        new,
        method=method,
        min_overlap=min_overlap,
        threshold=threshold,
        unit=unit,
        # Where nothing is written nothing can be lost: it is only told.
        drop_lost=drop_lost or out is None,
        policy=Policy.of(options.split_policy(policies)),
        truth_format=truth_format,
    )
    if report is not None:
        rows = [[row.qid, row.group, row.old, row.new, row.share, str(row.lost).lower()] for row in found.rows]
        written_whole(report, lambda part: write_rows(part, HEADERS, rows, report.suffix))
    if out is not None:
        write_truth(out, found.truth, kind)
    if style == "json":
        lost = [asdict(row) for row in found.lost]
        told = {"method": found.method, "counts": found.counts(), "lost": lost, "left_out": found.dropped}
        click.echo(tables.json_text(told))
        return
    if not found.rows:
        return
    grid: list[list[Any]] = [[what, count] for what, count in found.counts().items()]
    if style == "csv":
        click.echo(tables.csv_text(["what", "count"], grid).rstrip("\n"))
        return
    click.echo(tables.table([f"by {found.method}", "count"], grid, style))
    if found.lost:
        lines = [_row(row, found.dropped) for row in found.lost]
        click.echo(
            "\n" + tables.table(["query", "group", "lost alternative", "most of it is in", "share", ""], lines, style)
        )


def _row(row: Carried, dropped: dict[str, list[str]]) -> list[Any]:
    note = "the query is left out" if row.group in dropped.get(row.qid, ()) else "others of its group stand"
    return [row.qid, row.group, row.old, row.new or "nothing", row.share, note]

"""`groupgt cache`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.experiment.config import load
from groupgt.experiment.keeping import cache_of
from groupgt.experiment.matrix import matching
from groupgt.render import tables
from groupgt.store.cache import Cache

__all__ = ["command"]


@click.command("cache")
@click.argument("place", metavar="CONFIG|FOLDER", type=options.FILE, default=Path(".groupgt/cache"))
@click.option("--clear", is_flag=True, help="Remove what is listed.")
@click.option("--only", multiple=True, metavar="SYSTEM", help="These systems alone: a name, or a pattern; repeatable.")
@options.format_option
def command(place: Path, clear: bool, only: tuple[str, ...], style: str) -> None:
    """List the runs that an experiment (or a folder) keeps, so that they need not be retrieved again; or clear them."""
    tables.check_style(style, "json", "csv")
    cache = (
        Cache(place) if place.is_dir() or place == Path(".groupgt/cache") else cache_of(load(place, allow_code=True))
    )
    found = list(cache.entries()) if cache is not None else []
    names = {str(entry.about.get("system", "")) for entry in found}
    chosen = names if not only else {name for pattern in only for name in matching(pattern, names)}
    found = [entry for entry in found if entry.about.get("system", "") in chosen]
    if clear:
        for entry in found:
            Cache.remove(cache, entry.key) if cache is not None else None
        click.echo(f"groupgt: removed {len(found):,} runs, {sum(entry.size for entry in found):,} bytes", err=True)
        return
    headers = ["experiment", "dataset", "system", "uses", "depth", "questions", "made", "bytes", "key"]
    keys = ("experiment", "dataset", "system", "use", "depth", "rows", "made")
    rows = [[*(entry.about.get(key, "damaged") for key in keys), entry.size, entry.key[:12]] for entry in found]
    click.echo(tables.shown(headers, sorted(rows, key=str), style))

"""`groupgt cache`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.errors import ConfigError, near_names
from groupgt.experiment.cache import cache_beside
from groupgt.experiment.sweeps import matching
from groupgt.render import tables
from groupgt.store.cache import Cache

HERE = Path(".groupgt/cache")


@click.command("cache")
@click.argument("place", metavar="CONFIG|FOLDER", type=options.FILE, default=HERE)
@click.option("--clear", is_flag=True, help="Remove what is listed.")
@click.option("--only", multiple=True, metavar="SYSTEM", help="These systems alone: a name, or a pattern; repeatable.")
@options.format_option
def command(place: Path, clear: bool, only: tuple[str, ...], style: str) -> None:
    """List the runs that an experiment (of a folder: all) has kept and need not retrieve again; or clear them."""
    tables.check_style(style, "json", "csv")
    cache, name = (Cache(place), None) if place.is_dir() or place == HERE else cache_beside(place)
    found = list(cache.entries()) if cache is not None else []
    # One that is damaged cannot say whose it is.
    found = [entry for entry in found if name is None or entry.about.get("experiment", name) == name]
    names = {str(entry.about.get("system", "")) for entry in found}
    chosen = names if not only else {each for pattern in only for each in matching(pattern, names)}
    for pattern in only:
        if not matching(pattern, names):
            raise ConfigError(f"--only {pattern}: nothing is kept of such a system{near_names(pattern, names)}")
    found = [entry for entry in found if str(entry.about.get("system", "")) in chosen]
    if clear and cache is not None:
        for entry in found:
            cache.remove(entry.key)
        click.echo(f"groupgt: removed {len(found):,} runs, {sum(entry.size for entry in found):,} bytes", err=True)
        return
    headers = ["experiment", "dataset", "system", "uses", "depth", "questions", "answered", "made", "bytes", "key"]
    keys = ("experiment", "dataset", "system", "use", "depth", "questions", "rows", "made")
    rows = [[*(entry.about.get(key, "damaged") for key in keys), entry.size, entry.key[:12]] for entry in found]
    if not rows:
        click.echo(f"groupgt: nothing is kept {'here' if cache is None else f'in {cache.folder}'}", err=True)
    if rows or style in ("json", "csv"):
        click.echo(tables.shown(headers, sorted(rows, key=str), style))

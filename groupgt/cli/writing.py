"""Ground truth that commands write."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.errors import ConfigError, listed
from groupgt.formats.write import write_ground_truth
from groupgt.model.ground_truth import GroundTruth
from groupgt.store.files import written_folder, written_whole

# The formats of one file that its ending names.
ENDINGS = ("jsonl", "parquet", "csv", "tsv")


def format_named_by(out: Path) -> str:
    """The format that the ending of --out names; raises `ConfigError` where it names none."""
    kind = out.suffix.lower().removeprefix(".")
    if kind not in ENDINGS:
        known = listed(f".{each}" for each in ENDINGS)
        raise ConfigError(f"--out {out}: expected a file that ends in {known}, found {out.suffix or 'no ending'}")
    return kind


def write_truth(out: Path, truth: GroundTruth, kind: str, told: str = "") -> None:
    """Writes ground truth whole or not at all, and says on standard error what was written and what had no place."""
    missing: list[str] = []
    written = written_folder if kind == "beir" else written_whole
    written(out, lambda part: missing.extend(write_ground_truth(part, truth, kind)))
    click.echo(f"groupgt: {told}wrote {len(truth):,} queries to {out}", err=True)
    if missing:
        click.echo(f"groupgt: warning: {kind} has no place for {listed(missing)}", err=True)

"""`groupgt suggest`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.cli.writing import format_named_by, write_truth
from groupgt.curation.near import near_duplicates
from groupgt.curation.suggest import HEADERS, accepted, rows_of
from groupgt.errors import ConfigError
from groupgt.evaluation.request import as_ground_truth
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render.exports import write_rows
from groupgt.store.files import written_whole


@click.command("suggest")
@options.truth_argument
@click.option("--out", type=options.FILE, required=True, help="The file to write: candidates, or the ground truth.")
@options.corpus_option
@click.option("--threshold", type=float, default=0.9, show_default=True, help="The least similarity of a candidate.")
@click.option("--accept", type=options.FILE, help="A reviewed file of candidates: those marked are taken up.")
@options.policy_option
@options.truth_format_option
def command(
    truth: Path,
    out: Path,
    corpus: Path | None,
    threshold: float,
    accept: Path | None,
    policies: tuple[str, ...],
    truth_format: str | None,
) -> None:
    """Propose alternatives for review: passages that nearly equal one that is judged and are not judged themselves.

    First with --corpus: writes the candidates with their evidence (.csv or .jsonl). Then, once the column accept says
    yes where they are meant, with --accept: writes the ground truth with these and no others.
    """
    if (corpus is None) == (accept is None):
        raise ConfigError("expected --corpus, to write candidates, or --accept, to take up those that were marked")
    policy = Policy.of(options.split_policy(policies))
    all_there(truth, [])
    grouped = as_ground_truth(truth, policy, truth_format)
    if corpus is not None:
        if out.suffix.lower() not in (".csv", ".jsonl"):
            raise ConfigError(f"--out {out}: expected a file of candidates that ends in .csv or .jsonl")
        options.check_outputs([truth, corpus], [out])
        if out.exists():
            raise ConfigError(f"--out {out}: there already, and what was marked in it would be lost; name another file")
        candidates = near_duplicates(grouped, read_corpus(corpus), threshold)
        written_whole(out, lambda part: write_rows(part, HEADERS, rows_of(candidates), out.suffix))
        queries = len({each.qid for each in candidates})
        click.echo(f"groupgt: wrote {len(candidates):,} candidates of {queries:,} queries to {out}", err=True)
        return
    if accept is None:
        return
    kind = format_named_by(out)
    options.check_outputs([truth, accept], [out])
    extended, taken, left = accepted(grouped, accept)
    write_truth(out, extended, kind, f"took up {taken:,} candidates, left {left:,}; ")

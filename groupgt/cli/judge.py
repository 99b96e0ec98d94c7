"""Commands for judging by hand: `groupgt judge` and `groupgt sample`."""

from __future__ import annotations

import getpass
import json
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import click

from groupgt.cli.help import command
from groupgt.cli.output import FILE, default_option, file_option, say, say_wrote, written_option
from groupgt.engines.carriers import all_rankings
from groupgt.errors import ConfigError, DataError, GroupgtError, first_of
from groupgt.evaluation.reading import Reading
from groupgt.formats.corpus import read_corpus, read_queries
from groupgt.formats.detect import kind_of, run_paths
from groupgt.formats.journals import ADJUDICATED, read_acts, settings_of, truth_of
from groupgt.formats.replay import OPEN, Act, QueryState, difference, replayed
from groupgt.formats.source import Source
from groupgt.formats.write import write_ground_truth
from groupgt.judge.index import Index
from groupgt.judge.log import ActLog, read_folder
from groupgt.judge.pool import PoolRule
from groupgt.judge.session import Plan, Session
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.sample import SAMPLE, entry, sample_of
from groupgt.model.validity import id_text
from groupgt.render.tables import counted
from groupgt.store.files import write_atomically, write_text


@command("judge")
@click.argument("queries", type=FILE, required=False)
@file_option("--corpus", help="The passages to judge: a JSONL, parquet or CSV file, or a BEIR folder.")
@file_option("--runs", multiple=True, help="Pool the results of this run; repeatable.")
@written_option("--out", required=True, help="Write the judgments to this ground truth file (.jsonl).")
@file_option("--journal", help="Keep the journals, one per annotator, in this folder (default: OUT with .journal).")
@click.option("--by", help="Your name in the journal (default: your login name).")
@click.option(
    "--pool",
    metavar="WAY:N",
    help="How to select passages: depth:N, rrf:N or bm25:N (default: depth:10, or bm25:20 without runs).",
)
@click.option(
    "--sample",
    "size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Judge a random sample of N queries, in a fixed order.",
)
@default_option("--seed", type=int, default=0, help="Random seed for the sample and the order of passages.")
@click.option(
    "--next",
    "following",
    type=click.Choice(["pool", "rrf", "comparison"]),
    help="Order of the queries (default: as in the file).",
)
@file_option("--audit", help="Check this ground truth for missing alternatives and unneeded groups.")
@file_option("--prior", help="Start from these prior judgments, such as a model's.")
@click.option("--blind", is_flag=True, help="Hide prior judgments until you have made your own.")
@file_option("--adjudicate", nargs=2, metavar="A B", help="Resolve the differences between two journals.")
@click.option("--spans", is_flag=True, help="Write marked words as spans instead of passage ids.")
@click.option("--export", is_flag=True, help="Write OUT from all journals, without opening the page.")
@default_option(
    "--port", type=click.IntRange(0, 65535), metavar="N", default=0, help="Port to listen on; 0 picks a free one."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def judge_command(
    queries: Path | None,
    corpus: Path | None,
    runs: tuple[Path, ...],
    out: Path,
    journal: Path | None,
    by: str | None,
    pool: str | None,
    size: int | None,
    seed: int,
    following: str | None,
    audit: Path | None,
    prior: Path | None,
    blind: bool,
    adjudicate: tuple[Path, Path] | None,
    spans: bool,
    export: bool,
    port: int,
    no_browser: bool,
) -> None:
    """Judge passages on a local page, by keyboard, and write grouped ground truth.

    QUERIES is a file of queries, or ground truth with query text. Every judgment is saved immediately. Run the same
    command again to continue. With --audit, the page asks about existing ground truth instead. (In groupgt evaluate,
    --audit takes an annotator's judgments.)
    """
    folder = journal or out.with_suffix(".journal")
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: expected a file that ends in .jsonl")
    base = _existing(audit or queries)
    if export:
        _export(out, folder, base, audit or queries, spans=spans)
        return
    if corpus is None:
        raise ConfigError("--corpus: expected the passages to judge")
    if queries is None and audit is None:
        raise ConfigError("QUERIES: expected a file of queries, or --audit with ground truth to audit")
    if queries is not None and audit is not None:
        way = f"remove {queries} (write --runs before each run)"
        raise ConfigError(f"QUERIES: the --audit file already contains the queries; {way}")
    if out.exists() and not any(folder.glob("*.jsonl")):
        raise ConfigError(f"--out {out}: already exists and was not written from {folder}; choose another file")
    clashes = {
        "--next: the order of a sample is fixed; remove --next or --sample": size and following,
        "--audit: cannot be combined with --prior or --adjudicate": audit and (prior or adjudicate),
        "--adjudicate: cannot be combined with --prior or --sample": adjudicate and (prior or size),
    }
    for message, is_clash in clashes.items():
        if is_clash:
            raise ConfigError(message)
    if audit is not None and pool is None:
        # The order of all questions shows what to ask; in a sample, every query is gone through.
        pool = f"bm25:{50 if size is None else 10}"
    rule = PoolRule.of(pool, has_runs=bool(runs))
    texts = _texts(base, queries or audit)
    opinions: dict[str, Mapping[str, QueryState]] = {}
    other_acts: dict[str, list[Act]] = {}
    if adjudicate is not None:
        other_acts, opinions, texts = _opinions(adjudicate, texts)
    files = chain.from_iterable(map(run_paths, runs))
    plan = Plan(
        kind="audit" if audit is not None else "adjudicate" if adjudicate is not None else "judge",
        queries=texts,
        index=Index(read_corpus(corpus)),
        pool=rule,
        runs=[{qid: ids for qid, (ids, _) in all_rankings(Reading().results(path), Policy())} for path in files],
        truth=base,
        prior=None if prior is None else Reading().truth(prior),
        blind=blind,
        sample=None if size is None else sample_of(list(texts), size, seed),
        seed=seed,
        next=following,
        opinions=opinions,
        out=out.name,
    )
    if following == "comparison" and len(plan.runs) < 2:
        raise ConfigError(f"--next comparison: expected at least two runs (--runs), found {len(plan.runs)}")
    if adjudicate is not None:
        # A journal besides the adjudicator's own judgments.
        by = f"{by}.{ADJUDICATED}" if by else ADJUDICATED
    log = ActLog(folder, by or _login())
    try:
        session = Session(plan, log)

        def save(*, silent: bool = True) -> None:
            unsettled: list[str] = []
            acts = {**_written_to(out, folder), **other_acts, log.by: log.acts}
            _write(out, acts, base, audit or queries, spans=spans, unsettled=unsettled, silent=silent)
            if unsettled and not silent:
                left = f"{counted(len(unsettled), 'query', 'queries')} still to settle: {first_of(unsettled, 5)}"
                hint = "run the command again" if adjudicate else "use groupgt judge --adjudicate"
                say(f"{left}; {hint}")

        _serve(session, port, save, browser=not no_browser)
        session.begin()
        save(silent=False)
    finally:
        log.close()


@command("sample")
@click.argument("queries", type=FILE)
@click.option("--size", type=click.IntRange(min=1), metavar="N", required=True, help="Number of queries.")
@default_option("--seed", type=int, default=0, help="Random seed for the sample.")
@written_option("--out", required=True, help="Write one query per line to this file (.jsonl).")
def sample_command(queries: Path, size: int, seed: int, out: Path) -> None:
    """Draw a random sample of queries to judge elsewhere, and record how it was drawn.

    QUERIES is a file of queries, or ground truth in any format. Add retrieval_gt to the lines in order, starting
    with the first. You can stop after any line, because the lines judged so far are a random sample that groupgt
    evaluate --audit accepts.
    """
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: expected a file that ends in .jsonl")
    texts = _population(queries)
    sample = sample_of(list(texts), size, seed)
    known = {qid: {} if text is None else {"query": text} for qid, text in texts.items()}
    lines = [{"qid": qid, **known[qid], SAMPLE: entry(sample, qid)} for qid in sample["order"]]
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    say_wrote(out, f"{counted(size, 'query', 'queries')} of {len(texts):,}")


def _existing(path: Path | None) -> GroundTruth | None:
    """Return the ground truth in a file, or None if it contains none."""
    if path is None:
        return None
    try:
        is_truth = kind_of(path) == "truth"
    except GroupgtError:
        return None
    return Reading().truth(path) if is_truth and b"retrieval_gt" in Source.at(path).head() else None


def _population(path: Path) -> Mapping[str, str | None]:
    """Return the queries in a file of queries or ground truth, with any query text."""
    texts: dict[str, str] = {}
    faults = []
    try:
        texts = read_queries(path)
    except GroupgtError as error:
        faults.append(f"not queries: {error}")
    # Qrels with tabs look like queries.
    if texts and not any("\t" in text for text in texts.values()):
        return texts
    # What the columns of qrels mean makes no difference to their queries.
    for named in (None, "trec-subtopics"):
        try:
            truth = Reading.of(truth_format=named).truth(path)
            return dict(zip(truth.qids, truth.texts or [None] * len(truth)))
        except GroupgtError as error:
            faults.append(f"not ground truth: {error}")
    if not texts:
        raise DataError("\n".join([f"{path}: expected a file of queries, or ground truth", *faults[:2]]))
    return texts


def _texts(base: GroundTruth | None, path: Path | None) -> dict[str, str]:
    if base is None:
        return {} if path is None else read_queries(path)
    if not base.texts or any(text is None for text in base.texts):
        raise DataError(f"{path}: expected every query's text, under the 'query' key")
    return {qid: text or "" for qid, text in zip(base.qids, base.texts)}


def _opinions(
    paths: tuple[Path, Path], texts: dict[str, str]
) -> tuple[dict[str, list[Act]], dict[str, Mapping[str, QueryState]], dict[str, str]]:
    """Return two annotators' acts and states, and the queries that they finished with different groups."""
    acts: dict[str, list[Act]] = {}
    for path in paths:
        for by, annotator_acts in read_acts(Source.at(path)).items():
            if by in acts:
                raise DataError(f"{path}: expected judgments by an annotator other than {by!r}")
            acts[by] = annotator_acts
    if len(acts) != len(paths):
        raise DataError(f"--adjudicate: expected journals from two annotators, found {len(acts)}")
    states = {}
    for by, annotator_acts in acts.items():
        states[by] = {qid: state for qid, state in replayed(annotator_acts).items() if state.status != OPEN}
    first, second = states.values()
    both = [qid for qid in texts if qid in first and qid in second]
    differing = [qid for qid in both if difference(first[qid], second[qid]) is not None]
    if not differing:
        raise ConfigError("--adjudicate: the annotators agree on all queries that both finished; nothing to settle")
    return acts, dict(states), {qid: texts[qid] for qid in differing}


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise ConfigError("--by: expected your name, because no login name was found") from None


def _serve(session: Session, port: int, save: Callable[[], None], *, browser: bool) -> None:
    from groupgt.judge.server import serve

    def ready(address: str) -> None:
        say(f"{session.progress}; press Ctrl-C to stop")
        say(address)
        if browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # how it ends
        serve(session, port, ready, save)


def _written_to(out: Path, folder: Path) -> dict[str, list[Act]]:
    """Return the acts of all annotators whose journals in this folder were started for this file."""
    usual = folder.with_suffix(".jsonl").name
    acts = read_folder(folder)
    return {by: mine for by, mine in acts.items() if mine and (mine[0].get("out") or usual) == out.name}


def _export(out: Path, folder: Path, base: GroundTruth | None, path: Path | None, *, spans: bool) -> None:
    acts = read_folder(folder)
    for by, settings in ((by, settings_of(mine)) for by, mine in acts.items()):
        if settings.get("kind") == "audit" and (base is None or base.digest != settings.get("truth")):
            found = "" if base is None else f", found {path}, which differs"
            raise ConfigError(f"--export: expected --audit with the ground truth that {by} audited{found}")
    _write(out, acts, base, path, spans=spans)


def _write(
    out: Path,
    acts: Mapping[str, list[Act]],
    base: GroundTruth | None,
    path: Path | None,
    *,
    spans: bool,
    unsettled: list[str] | None = None,
    silent: bool = False,
) -> None:
    """Write the ground truth from journals. For queries that nobody answered, copy the base's lines from `path`."""
    copied: list[str] = []
    truth = truth_of(acts, base=base, spans=spans, unsettled=unsettled, copied=copied)
    lines = _lines(path, copied) if copied and base is not None and base.shape == truth.shape else {}

    def write(part: Path) -> None:
        write_ground_truth(part, truth, "jsonl")
        if lines:
            written = part.read_text(encoding="utf-8").split("\n")
            merged = [lines.get(qid, line) for qid, line in zip(truth.qids, written)]
            part.write_text("\n".join([*merged, ""]), encoding="utf-8", newline="\n")

    write_atomically(out, write)
    if not silent:
        skipped = sum(value is not None for value in truth.columns.get("skipped", []))
        left = f", {skipped:,} of them skipped" if skipped else ""
        say_wrote(out, counted(len(truth), "query", "queries"), left)


def _lines(path: Path | None, qids: list[str]) -> dict[str, str]:
    """Return these queries' lines in a JSON Lines file, or nothing if the file has another format."""
    wanted, lines = set(qids), {}
    for _, line in Source.at(path).located_lines() if path is not None else ():
        try:
            row = json.loads(line)
        except ValueError:
            return {}
        if not isinstance(row, dict):
            return {}
        if (qid := id_text(row.get("qid"))) in wanted:
            lines[qid] = line.rstrip("\r\n")
    return lines

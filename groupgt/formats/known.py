"""Lists all formats that groupgt reads, and how groupgt recognizes them by their contents."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from groupgt.formats import beir, benchmarks, csv, frameworks, journals, jsonl, mapped, otlp, parquet, roles, words
from groupgt.formats.format import Format
from groupgt.formats.records import keys_of
from groupgt.formats.source import Source
from groupgt.model.validity import is_number
from groupgt.plugins import looked_up, names, registered


def _in_parquet(source: Source) -> str | None:
    if not source.is_parquet:
        return None
    # For unknown columns, the reader reports what is missing.
    return roles.kind_of(parquet.names_of(source), source.columns) or "either"


def _in_json_lines(source: Source) -> str | None:
    if words.first_lines(source)[0].lstrip()[:1] != b"{" and not jsonl.is_array(source):
        return None
    return roles.kind_of(keys_of(source), source.columns) or "either"


def _in_csv(source: Source) -> str | None:
    names = csv.header_of(source)
    return roles.kind_of(names, source.columns) if len(names) > 1 and not any(map(is_number, names)) else None


def is_table(source: Source) -> bool:
    """Return whether text looks like a table. Lines have the same number of cells, and the first has no number."""
    lines = words.first_lines(source)
    delimiter = csv.delimiter_of(lines[0]).encode() if lines else b","
    names = csv.header_of(source)
    if len(names) < 2 or len({line.count(delimiter) for line in lines[:-1] or lines}) > 1:
        return False
    # A TREC line has several words, some of them numbers; its ids and its tag may contain commas.
    cells = lines[0].decode("utf-8", "replace").split()
    is_one_word = all(len(line.split()) == 1 for line in lines)
    return not any(map(is_number, (*names, *cells))) or (delimiter != b"\t" and is_one_word)


# Published data sets; a file that several recognize is refused.
PUBLISHED = tuple(replace(each, shape=each.shape or "subtopics") for each in benchmarks.FORMATS)
# The first that recognizes a file is used.
FORMATS = (
    *PUBLISHED,
    Format("beir", beir.look, beir.read_ground_truth, folder=beir.is_folder),
    Format("ragas", *frameworks.RAGAS.readers, shape="flat"),
    Format("ragas-texts", None, frameworks.RAGAS_TEXTS.read_ground_truth, shape="flat"),
    Format("deepeval", *frameworks.DEEPEVAL.readers, shape="flat"),
    Format("llama-index", frameworks.look_llama_index, frameworks.read_llama_index, shape="flat"),
    Format("otlp", otlp.look, None, otlp.read_run),
    Format("otlp-sessions", None, None, partial(otlp.read_run, by_session=True)),
    Format("otlp-searches", None, None, partial(otlp.read_run, reranked=False)),
    Format("autorag", None, parquet.read_ground_truth, parquet.read_run),
    Format("parquet", _in_parquet, parquet.read_ground_truth, parquet.read_run),
    Format("trec-rag", frameworks.look_trec_rag, None, frameworks.read_trec_rag),
    Format("journal", journals.look, journals.read_ground_truth),
    Format("json", mapped.look_mapped, mapped.read_mapped_truth, mapped.read_mapped_run),
    Format("jsonl", _in_json_lines, jsonl.read_ground_truth, jsonl.read_run, usually="truth"),
    Format("csv", _in_csv, csv.read_ground_truth, csv.read_run),
    *words.FORMATS,
)
BY_NAME: dict[str, Format] = {entry.name: entry for entry in FORMATS}
TRUTHS = {entry.name: entry.truth for entry in FORMATS if entry.truth is not None}
RUNS = {entry.name: entry.run for entry in FORMATS if entry.run is not None}


def format_named(name: str, *, is_truth: bool) -> Format | None:
    """Return the format with this name if it reads ground truth, or results; otherwise None."""
    found: Format | None = looked_up("format", name)
    return found if found is not None and found.reads(is_truth=is_truth) else None


def format_names(*, is_truth: bool) -> list[str]:
    """Return the names of formats that read ground truth, or results. An unloaded plug-in may read either."""
    loaded = registered("format")
    added = names("format")[len(BY_NAME) :]
    read = [name for name in added if name not in loaded or loaded[name].reads(is_truth=is_truth)]
    return [*(TRUTHS if is_truth else RUNS), *read]

"""Reads the searches of an agent or pipeline, and their results, from OpenTelemetry traces as a run.

- Traces are OTLP in JSON, spans as the Python SDK prints them, or a table of spans as Phoenix exports it.
- Searches are retriever spans of OpenInference or GenAI, and spans of the tools that the user names. A search inside
  another one is part of the same search.
- A reranker's results replace those of the searches before it, and it counts as one call.
- Each trace or session with a search is a query, identified by an attribute or by its text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from groupgt.errors import DataError, Faults, display, first_of, listed, warn
from groupgt.formats import parquet
from groupgt.formats.fields import first_in, length_of
from groupgt.formats.records import records
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import Record, Source
from groupgt.model.run import Run, Traces
from groupgt.model.validity import finite_number, id_fault, id_text
from groupgt.model.values import CALLS, SCORE, unnamed

# The attributes that contain the id of a query, and those that contain the id of a session.
QUERY_IDS = ("groupgt.query.id", "query.id", "query_id", "qid")
SESSIONS = ("session.id", "gen_ai.conversation.id")
TEXTS = (
    *("input.value", "reranker.query", "gen_ai.retrieval.query.text"),
    *("gen_ai.tool.call.arguments", "gen_ai.memory.query.text"),
)
# Operations that run a tool or search a memory, and the attributes that contain a tool's name and what it returned.
TOOL, MEMORY = "execute_tool", "search_memory"
TOOL_NAMES = ("gen_ai.tool.name", "tool.name")
RETURNED = ("gen_ai.tool.call.result", "gen_ai.memory.records", "output.value")
TRACE_COLUMN, SPAN_COLUMN, ATTRIBUTE = "context.trace_id", "context.span_id", "attributes."
# The keys under which an input in JSON contains the text of a query.
INPUTS = ("query", "question", "input", "user_input")
TOKENS = ("tokens", "token_count")
# The lists of documents, and the keys of a text beside an id.
LISTS = ("gen_ai.retrieval.documents", "retrieval.documents", "reranker.output_documents")
CONTENTS = ("content", "text")
# The attributes that contain the cost of a span, and the id of a model's response.
COSTS = ("gen_ai.usage.cost", "llm.cost.total")
RESPONSE = "gen_ai.response.id"
LONGEST_NUMBER = 20
# The ids of a trace and of a span in it.
SpanKey = tuple[str, str]
DOCUMENT = re.compile(r"(?:retrieval\.documents|reranker\.output_documents)\.(\d{1,9})\.document\.(\w+)")


def look(source: Source) -> str | None:
    """Return `run` for a file of spans."""
    if source.is_parquet:
        return "run" if {TRACE_COLUMN, SPAN_COLUMN} <= set(parquet.names_of(source)) else None
    head = source.head().lstrip()
    names = (b'"resourceSpans"', b'"resource_spans"', b'"trace_id"', b'"traceId"')
    return "run" if head[:1] in (b"{", b"[") and any(name in head for name in names) else None


@dataclass(frozen=True)
class TraceSpan:
    """A span with its own id, the ids of its trace and parent, its start and end times in ms, and its attributes."""

    where: str
    trace: str
    id: str
    parent: str
    begin: float
    end: float
    attributes: Record

    @property
    def kinds(self) -> set[str]:
        """The kinds of the span under both conventions."""
        names = ("openinference.span.kind", "gen_ai.operation.name")
        return {str(self.attributes.get(name)).lower() for name in names}

    @property
    def tool(self) -> str | None:
        """The name of the tool that ran, or `search_memory`; None for any other span."""
        if MEMORY in self.kinds:
            return MEMORY
        return None if self.kinds.isdisjoint((TOOL, "tool")) else str(_first(self.attributes, TOOL_NAMES) or "unnamed")

    @property
    def qid(self) -> str | None:
        """The query id; None if the span has none."""
        ids = [_first(row, QUERY_IDS) for row in (self.attributes, _decoded(self.attributes.get("metadata")))]
        return next(map(id_text, filter(None, ids)), None)

    @property
    def text(self) -> str | None:
        """The input text of the span; None if it has none."""
        cell = _first(self.attributes, TEXTS)
        inner = _first(_decoded(cell), INPUTS)
        text = inner if isinstance(inner, str) else json.dumps(cell, default=str) if isinstance(cell, Mapping) else cell
        return text if isinstance(text, str) and text.strip() else None

    def documents(self, tools: Mapping[str, str], faults: Faults) -> Iterator[Record]:
        """Yield the documents that a search returned, best first, as `id`, `content`, `score` and `metadata`."""
        if (path := tools.get(self.tool or "")) is not None:
            yield from self._returned(path, faults)
            return
        flat: dict[int, Record] = {}
        for name, value in self.attributes.items():
            if match := DOCUMENT.fullmatch(name):
                flat.setdefault(int(match[1]), {})[match[2]] = value
        name = first_in(LISTS, self.attributes) or LISTS[0]
        listed = _decoded(self.attributes.get(name, []))
        if not isinstance(listed, list):
            faults.add(self.where, f"expected a list as {name}, found {display(listed)}")
            listed = []
        for document in [flat[rank] for rank in sorted(flat)] or map(_decoded, listed):
            if isinstance(document, Mapping):
                document = {key.removeprefix("document."): cell for key, cell in document.items()}
            is_valid = isinstance(document, Mapping)
            if is_valid and (id_text(document.get("id")) or isinstance(document.get("content"), str)):
                yield dict(document)
            else:
                faults.add(self.where, f"expected a document with an id or content, found {display(document)}")

    def _returned(self, path: str, faults: Faults) -> Iterator[Record]:
        """Yield the documents whose ids are at a path in a tool's response. A failed tool returned nothing."""
        returned, failed = _first(self.attributes, RETURNED), "error.type" in self.attributes
        if self.text is None or (returned is None and not failed):
            what = f"{self.tool}: expected the query as {listed(TEXTS)} and the results as {listed(RETURNED)}"
            way = "these attributes are optional, so make sure that they are recorded"
            faults.add(self.where, f"{what}, found {listed(self.attributes)}; {way}")
            return
        try:
            for document in () if failed else _documents_at(path.split(".") if path else [], returned):
                if id_text(document["id"]) is None:
                    raise LookupError(display(document["id"]))
                yield document
        except LookupError as error:
            faults.add(self.where, f"{self.tool}: expected ids at {path} in its result, found {error.args[0]}")


def read_run(source: Source, *, by_session: bool = False, reranked: bool = True) -> Run:
    """Read one query per trace or per session (which may span traces), or raise `DataError` with all errors."""
    faults = Faults()
    tools = source.tool_spans
    spans = {(span.trace, span.id): span for span in _spans(source, faults)}
    searching = {key for key, span in spans.items() if span.kinds & {"retriever", "retrieval"} or span.tool in tools}
    rerankers = {key for key, span in spans.items() if "reranker" in span.kinds} if reranked else set()
    sessions = {span.trace: name for span in spans.values() if (name := _first(span.attributes, SESSIONS)) is not None}
    queries: dict[str, list[TraceSpan]] = {}
    for span in sorted(spans.values(), key=lambda span: span.begin):
        if by_session and span.trace not in sessions:
            faults.add(span.where, f"expected a session id as {listed(SESSIONS)}, found none")
        queries.setdefault(str(sessions.get(span.trace)) if by_session else span.trace, []).append(span)
    results: dict[str, list[tuple[int, Record]]] = {}
    texts: dict[str, list[str]] = {}
    ms: dict[str, float] = {}
    asked: dict[str, list[str | None]] = {}
    costs: dict[str, float] = {}
    origins: dict[str, tuple[str, str, str | None]] = {}
    changed = 0
    for key, query_spans in queries.items():
        if not (searches := [span for span in query_spans if _is_outermost(span, spans, searching)]):
            continue
        stages = [span for span in query_spans if _is_outermost(span, spans, searching | rerankers)]
        answering = _answering(stages, rerankers)
        changed += answering != searches
        qid = _qid_of(key, query_spans, faults)
        name = qid or key
        if name in results:
            what = "two traces belong to this query; keep one, or use the otlp-sessions format"
            faults.add(query_spans[0].where, f"query {name!r}: {what}")
        inputs = (span.text for span in (query_spans[0], searches[0]))
        texts[name] = [] if qid else list(dict.fromkeys(text for text in inputs if text is not None))
        ms[name] = sum(span.end - span.begin for span in stages)
        asked[name] = [span.text for span in answering]
        responses = [id_text(span.attributes.get(RESPONSE)) for span in query_spans]
        origins[name] = (query_spans[0].trace, query_spans[0].id, next(filter(None, reversed(responses)), None))
        spent = [finite_number(_first(span.attributes, COSTS)) for span in query_spans]
        if any(cost is not None for cost in spent):
            costs[name] = math.fsum(cost or 0.0 for cost in spent)
        results[name] = [(call, row) for call, span in enumerate(answering, 1) for row in span.documents(tools, faults)]
    faults.stop()
    named = list(dict.fromkeys(span.tool for span in spans.values() if span.tool is not None))
    if not results:
        what = "expected a span whose openinference.span.kind is RETRIEVER or gen_ai.operation.name is retrieval"
        way = f"; if a tool searches ({first_of(named, 5)}), add --tool-span NAME=PATH.TO.IDS" if named else ""
        raise DataError(f"{source.path}: {what}, found none in {len(spans):,} spans{way}")
    if unused := [name for name in tools if name not in named]:
        has = first_of(named, 5) or "none"
        warn(f"{source.path}: no span for tool {first_of(unused, 5)}; tools in the traces: {has}")
    has_ids = all(id_text(document.get("id")) for rows in results.values() for _, document in rows)
    traces = Traces(texts, ms, len(queries) - len(results), searches=asked, reranked=changed, origins=origins)
    return replace(_builder_of(results).run(source), traces=traces, has_ids=has_ids, costs=costs)


def _qid_of(key: str, spans: Sequence[TraceSpan], faults: Faults) -> str | None:
    qids = list(dict.fromkeys(qid for span in spans if (qid := span.qid) is not None))
    if len(qids) > 1:
        faults.add(spans[0].where, f"{key}: expected one query, found the ids {first_of(qids, 3)}")
    if qids and (fault := id_fault(qids[0])):
        faults.add(spans[0].where, f"{key}: the query id {fault}")
    return qids[0] if qids else None


def _builder_of(results_of: Mapping[str, list[tuple[int, Record]]]) -> RunBuilder:
    """Collect the results of each query, with the fields that every document has."""
    documents = [document for results in results_of.values() for _, document in results]
    fields: dict[str, list[Any]] = {
        "text": [document.get("content") for document in documents],
        SCORE: [finite_number(document.get("score")) for document in documents],
        "tokens": [length_of(_first(_decoded(document.get("metadata")) or {}, TOKENS)) for document in documents],
    }
    columns = {name: iter(cells) for name, cells in fields.items() if cells and None not in cells}
    builder = RunBuilder()
    for qid, results in results_of.items():
        # Documents without an id are numbered by distinct content.
        without = dict.fromkeys(row["content"] for _, row in results if not id_text(row.get("id")))
        names = dict(zip(without, unnamed(len(without))))
        ids = [id_text(row.get("id")) or names[row["content"]] for _, row in results]
        cells = {name: [next(column) for _ in results] for name, column in columns.items()}
        lengths: dict[str, list[Any]] = {CALLS: [call for call, _ in results]}
        if "tokens" in cells:
            lengths["tokens"] = cells.pop("tokens")
        builder.add_ranking(qid, ids, None, lengths, cells)
    return builder


def _spans(source: Source, faults: Faults) -> Iterator[TraceSpan]:
    """Yield all spans from OTLP requests, or from records with one span each (as printed by the Python SDK)."""
    for where, record in records(source, faults):
        row = _folded(_nested(record) if TRACE_COLUMN in record else record)
        if "resourcespans" not in row:
            yield from _span(row, where, faults)
            continue
        for resource in _rows(row, "resourcespans"):
            for scope in _rows(resource, "scopespans", "instrumentationlibraryspans"):
                for span in _rows(scope, "spans"):
                    yield from _span(span, where, faults)


def _nested(row: Record) -> Record:
    """Convert a row of a span table to a span. Flatten namespaces that the table stores as objects."""
    cells = {name.removeprefix(ATTRIBUTE): cell for name, cell in row.items() if name.startswith(ATTRIBUTE)}
    others = {name: cell for name, cell in row.items() if not name.startswith(ATTRIBUTE)}
    return {**others, "trace_id": row[TRACE_COLUMN], "span_id": row.get(SPAN_COLUMN), "attributes": dict(_flat(cells))}


def _flat(cells: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells that are not null. Cells inside objects get dotted names."""
    for name, cell in cells.items():
        if isinstance(cell, Mapping):
            yield from _flat(cell, f"{above}{name}.")
            cell = {key: inner for key, inner in cell.items() if inner is not None}
        if cell is not None and cell != {}:
            yield above + name, cell


def _rows(row: Record, *names: str) -> list[Record]:
    cells = _first(row, names)
    return list(map(_folded, cells)) if isinstance(cells, list) else []


def _span(row: Record, where: str, faults: Faults) -> Iterator[TraceSpan]:
    row = {**row, **_folded(row.get("context"))}
    trace, name = row.get("traceid"), row.get("spanid")
    begin, end = _ms(row, "start"), _ms(row, "end")
    if not isinstance(trace, str) or not isinstance(name, str) or begin is None or end is None:
        faults.add(where, f"expected a span with traceId, spanId, and start and end times, found {display(row)}")
        return
    parent = str(row.get("parentspanid") or row.get("parentid") or "")
    yield TraceSpan(f"{where}: span {name}", trace, name, parent, begin, end, _attributes(row.get("attributes")))


def _ms(row: Record, name: str) -> float | None:
    """Return a time in ms, from nanoseconds as a number or text, or from a date."""
    nanoseconds, date = row.get(f"{name}timeunixnano"), row.get(f"{name}time")
    try:
        return int(nanoseconds) / 1e6 if nanoseconds else datetime.fromisoformat(str(date)).timestamp() * 1e3
    except (OverflowError, TypeError, ValueError):
        return None


def _attributes(cells: Any) -> Record:
    """Return attributes as a dict. OTLP lists each attribute with its type."""
    if isinstance(cells, Mapping):
        return dict(cells)
    pairs = [cell for cell in cells if isinstance(cell, Mapping)] if isinstance(cells, list) else []
    return {str(cell.get("key")): _value(cell.get("value")) for cell in pairs}


def _value(cell: Any) -> Any:
    """Unwrap an attribute value such as `{"stringValue": …}`."""
    if not isinstance(cell, Mapping) or len(cell) != 1:
        return cell
    ((kind, value),) = _folded(cell).items()
    if kind == "arrayvalue":
        values = _folded(value).get("values")
        return list(map(_value, values)) if isinstance(values, list) else []
    if kind == "intvalue" and isinstance(value, str):
        return int(value) if value.lstrip("-").isdecimal() and len(value) <= LONGEST_NUMBER else value
    return _attributes(_folded(value).get("values")) if kind == "kvlistvalue" else value


def _folded(row: Any) -> Record:
    """Convert the keys of a record to lower case without underscores, so that `traceId` and `trace_id` are equal."""
    return {str(key).replace("_", "").lower(): value for key, value in row.items()} if isinstance(row, Mapping) else {}


def _decoded(cell: Any) -> Any:
    try:
        return json.loads(cell) if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "[") else cell
    except (ValueError, RecursionError):
        return cell


def _first(row: Any, names: Iterable[str]) -> Any:
    return row.get(first_in(names, row)) if isinstance(row, Mapping) else None


def _documents_at(path: Sequence[str], cell: Any, beside: Mapping[str, Any] = {}) -> Iterator[Record]:
    """Yield a document for each id at a path of keys, or raise `LookupError` with the value found instead."""
    cell = _decoded(cell)
    if isinstance(cell, list):
        for item in cell:
            yield from _documents_at(path, item)
    elif not path:
        yield {**beside, "id": cell, "content": _first(beside, CONTENTS)}
    elif isinstance(cell, Mapping) and path[0] in cell:
        yield from _documents_at(path[1:], cell[path[0]], cell)
    elif cell is not None:
        raise LookupError(display(cell))


def _answering(stages: Sequence[TraceSpan], rerankers: Container[SpanKey]) -> list[TraceSpan]:
    """Return the spans whose results count. A reranker's results replace those of earlier searches."""
    kept: list[TraceSpan] = []
    pending: list[TraceSpan] = []
    for span in stages:
        if (span.trace, span.id) not in rerankers:
            pending.append(span)
            continue
        if not pending:
            kept = kept[:-1]
        kept.append(span)
        pending = []
    return kept + pending


def _is_outermost(span: TraceSpan, spans: Mapping[SpanKey, TraceSpan], searching: Container[SpanKey]) -> bool:
    """Return whether a span is a search that is not part of another one."""
    is_search, seen = (span.trace, span.id) in searching, {span.id}
    while is_search and (above := spans.get((span.trace, span.parent))) is not None and above.id not in seen:
        is_search = (above.trace, above.id) not in searching
        seen.add(above.id)
        span = above
    return is_search

"""Send each query's scores to its trace with OpenTelemetry: `python examples/send_events.py SCORES.otel.jsonl`.

`groupgt evaluate TRUTH TRACES --per-query SCORES.otel.jsonl` writes the file. In Python, `Evaluation.to_events()`
returns the same events. Needs `pip install 'groupgt[otel]'`. Replace the console exporter with your backend's exporter.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opentelemetry._logs import LoggerProvider, LogRecord
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context


def send(events: Iterable[Mapping[str, Any]], provider: LoggerProvider) -> None:
    """Emit each event in the context of the span that it evaluates, or without a context if the run had no traces."""
    logger = provider.get_logger("groupgt")
    for event in events:
        context = None
        if event["trace_id"] is not None:
            ids = int(event["trace_id"], 16), int(event["span_id"], 16)
            span = SpanContext(*ids, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
            context = set_span_in_context(NonRecordingSpan(span))
        name, attributes = event["event_name"], event["attributes"]
        logger.emit(LogRecord(timestamp=time.time_ns(), context=context, event_name=name, attributes=attributes))


def main() -> None:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter

    provider = LoggerProvider()
    provider.add_log_record_processor(BatchLogRecordProcessor(ConsoleLogRecordExporter()))
    send(map(json.loads, Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()), provider)
    provider.shutdown()


if __name__ == "__main__":
    main()

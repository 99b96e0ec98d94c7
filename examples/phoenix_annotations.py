"""Annotate traces in Phoenix with their scores: `python examples/phoenix_annotations.py TRUTH [PROJECT]`.

The script reads a project's spans from the server in PHOENIX_COLLECTOR_ENDPOINT (default: http://localhost:6006),
evaluates each trace as a query, and annotates the trace's first span with the scores. If you run the script again, the
new scores replace the old ones. Needs `pip install arize-phoenix-client`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import groupgt

METRICS = ["complete", "recall", "completion_rr"]


def annotations(evaluation: groupgt.Evaluation) -> list[dict[str, Any]]:
    """Return a Phoenix annotation for each event. Queries without a trace have scores, but no span to annotate."""
    made = []
    for event in evaluation.to_events():
        if event["span_id"] is None:
            continue
        cells = {name.removeprefix("gen_ai.evaluation."): cell for name, cell in event["attributes"].items()}
        result = {"score": cells["score.value"], "label": cells.get("score.label")}
        result["explanation"] = cells.get("explanation")
        # Phoenix replaces a span's earlier annotation with the same name and identifier.
        about = {"name": cells["name"], "annotator_kind": "CODE", "identifier": "groupgt"}
        made.append({"span_id": event["span_id"], "result": result, **about})
    return made


def annotate(client: Any, project: str, truth: Any) -> groupgt.Evaluation:
    """Evaluate a project's traces, and annotate them."""
    with TemporaryDirectory() as folder:
        spans = Path(folder) / "spans.parquet"
        client.spans.get_spans_dataframe(project_identifier=project, limit=100_000).to_parquet(spans)
        evaluation = groupgt.evaluate(truth, spans, METRICS)
    client.spans.log_span_annotations(span_annotations=annotations(evaluation), sync=True)
    return evaluation


def main() -> None:
    from phoenix.client import Client

    truth, project = [*sys.argv[1:], "default"][:2]
    print(annotate(Client(), project, truth))


if __name__ == "__main__":
    main()

"""Scores reach the places where people look: OpenTelemetry's SDK, real servers of MLflow and Phoenix.

Each needs a package that is no part of the tests' own: opentelemetry-sdk, mlflow, arize-phoenix.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
servers = pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes cannot be ended as a group")
TRUTH = {"river": [["vienna", "austria"], ["danube"]], "trial": [["kafka"]]}
# Two traces: the agent of the first searches twice and finds both groups, the second finds nothing.
TRACES = ("0" * 31 + "a", "0" * 31 + "b")
FIRST_SPANS = ("0" * 15 + "1", "0" * 15 + "4")


def span(trace: str, name: str, kind: str, at: int, **attributes: str) -> dict[str, Any]:
    attributes["openinference.span.kind"] = kind
    cells = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    times = {"startTimeUnixNano": str(at * 10**6), "endTimeUnixNano": str((at + 1) * 10**6)}
    return {"traceId": trace, "spanId": name.zfill(16), "name": kind.lower(), **times, "attributes": cells}


def files(folder: Path) -> tuple[Path, Path]:
    """Ground truth and traces as files."""
    first, second = TRACES
    spans = [
        span(first, "1", "AGENT", 1, **{"groupgt.query.id": "river"}),
        span(first, "2", "RETRIEVER", 2, **{"retrieval.documents.0.document.id": "austria"}),
        span(first, "3", "RETRIEVER", 4, **{"retrieval.documents.0.document.id": "danube"}),
        span(second, "4", "AGENT", 6, **{"groupgt.query.id": "trial"}),
        span(second, "5", "RETRIEVER", 7, **{"retrieval.documents.0.document.id": "brod"}),
    ]
    rows = [{"qid": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items()]
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "traces.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return folder / "truth.jsonl", folder / "traces.jsonl"


def test_events_reach_the_traces_through_the_sdk(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    truth, traces = map(str, files(tmp_path))
    scores = tmp_path / "scores.otel.jsonl"
    main(["evaluate", truth, traces, "-m", "complete@1calls,recall", "--per-query", str(scores)])
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    send = runpy.run_path(str(EXAMPLES / "send_events.py"))["send"]
    events = [json.loads(line) for line in scores.read_text().splitlines()]
    # A run without traces has values without a span.
    send([*events, *groupgt.evaluate(TRUTH, {"river": ["danube"]}, ["recall"]).to_events()], provider)
    records = [each.log_record for each in exporter.get_finished_logs()]
    assert {record.event_name for record in records} == {"gen_ai.evaluation.result"}
    name, value = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
    spans = [(f"{record.trace_id or 0:032x}", f"{record.span_id or 0:016x}") for record in records]
    (first, second), nowhere = zip(TRACES, FIRST_SPANS), ("0" * 32, "0" * 16)
    assert spans == [first, first, second, second, nowhere, nowhere]
    # One of two groups after one search, both after two; half of the groups of the direct run, none for "trial".
    values = [(record.attributes[name], record.attributes[value]) for record in records]
    assert values == [
        ("complete@1calls", 0),
        ("recall", 1),
        ("complete@1calls", 0),
        ("recall", 0),
        ("recall", 0.5),
        ("recall", 0),
    ]


@contextmanager
def served(folder: Path, command: list[str], **variables: str) -> Iterator[str]:
    """The address of a server that is started for a test; PORT in its command and variables is a free one."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words, given = [word.replace("PORT", port) for word in command], os.environ | variables
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, *words],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={key: value.replace("PORT", port) if key in variables else value for key, value in given.items()},
            start_new_session=True,
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}", server, folder / "server.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            # With the processes that it started.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 240
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            assert server.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.2)
        else:
            return


@pytest.mark.slow
@servers
@pytest.mark.filterwarnings("ignore")
def test_means_and_values_are_logged_to_a_server_of_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    result = groupgt.evaluate(*files(tmp_path), ["recall@1", "complete@2"])
    store = ["--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}", "--workers", "1"]
    with served(tmp_path, ["-m", "mlflow", "server", *store, "--port", "PORT"]) as address:
        mlflow.set_tracking_uri(address)
        with mlflow.start_run() as run:
            mlflow.log_metrics(result.to_metrics())
            mlflow.log_table(result.to_pandas(), "means.json")
            mlflow.log_table(result.per_query.to_pandas(), "values.json")
        kept = mlflow.MlflowClient(address).get_run(run.info.run_id)
        values = mlflow.load_table("values.json", run_ids=[run.info.run_id])
        means = mlflow.load_table("means.json", run_ids=[run.info.run_id])
    # One of the two groups of "river" at rank 1, both at rank 2; no result of "trial" is relevant.
    assert kept.data.metrics == {"recall/at_1": 0.25, "complete/at_2": 0.5}
    assert values.to_dict("list") == {"qid": ["river", "trial"], "recall@1": [0.5, 0.0], "complete@2": [1.0, 0.0]}
    assert dict(zip(means["metric"], means["mean"])) == {"recall@1": 0.25, "complete@2": 0.5}


@pytest.mark.slow
@servers
@pytest.mark.filterwarnings("ignore")
def test_the_example_annotates_traces_in_a_server_of_phoenix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("phoenix.server", reason="arize-phoenix is not installed")
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from phoenix.client import Client

    truth, traces = files(tmp_path)
    request = json.loads(traces.read_text())
    for each in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId"):  # protobuf's own JSON has bytes in base 64
            each[key] = b64(each[key])
    home = {"PHOENIX_WORKING_DIR": str(tmp_path), "PHOENIX_PORT": "PORT", "PHOENIX_GRPC_PORT": "0"}
    with served(tmp_path, ["-m", "phoenix.server.main", "serve"], **home, PHOENIX_TELEMETRY_ENABLED="false") as address:
        body = ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
        header = {"Content-Type": "application/x-protobuf"}
        urllib.request.urlopen(urllib.request.Request(f"{address}/v1/traces", body, header), timeout=60).close()
        client = Client(base_url=address)
        while len(spans := client.spans.get_spans(project_identifier="default")) < 5:
            time.sleep(0.2)
        annotate = runpy.run_path(str(EXAMPLES / "phoenix_annotations.py"))["annotate"]
        annotate(client, "default", truth)
        annotate(client, "default", truth)  # replaces the first
        stored = client.spans.get_span_annotations(spans=spans, project_identifier="default")
    told = {(each["span_id"], each["name"]): each["result"] for each in stored}
    assert len(told) == len(stored) == 6
    first, second = FIRST_SPANS
    assert told[first, "completion_rr"] == {"score": 0.5, "label": "complete", "explanation": "2 of 2 groups covered"}
    missed = "0 of 1 group covered; not covered: kafka"
    assert told[second, "recall"] == {"score": 0, "label": "incomplete", "explanation": missed}


def b64(digits: str) -> str:
    from base64 import b64encode

    return b64encode(bytes.fromhex(digits)).decode()

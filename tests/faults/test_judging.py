"""The server of the judge page is killed while a script judges: every act that was confirmed stays."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra groupgt[judge] is not installed")

import groupgt
from groupgt.cli.main import main
from groupgt.formats.journals import read_acts
from groupgt.formats.source import Source
from tests.judge.acts import QUERIES, TEXTS

pytestmark = [pytest.mark.faults, pytest.mark.skipif(os.name != "posix", reason="SIGKILL")]
KILLS = 20


class Server:
    """`groupgt judge` in a process of its own, and requests to it."""

    def __init__(self, folder: Path, code: str = "") -> None:
        words = [
            "judge",
            "queries.tsv",
            "--corpus",
            "corpus.jsonl",
            "--out",
            "truth.jsonl",
            "--by",
            "anna",
            "--no-browser",
        ]
        command = [sys.executable, "-c", f"{code}\nfrom groupgt.cli.main import main\nmain()", *words]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        said = ""
        assert self.process.stderr is not None
        while not (found := re.search(r"(http://[^/]+)/#(\S+)", said)):
            line = self.process.stderr.readline()
            assert line, said
            said += line
        self.address, self.token = found.groups()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"x-groupgt-token": self.token, "content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.address + path, data, headers), timeout=30) as answer:
            return json.load(answer)

    def end(self, sign: int) -> None:
        self.process.send_signal(sign)
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = "".join(json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in TEXTS.items())
    (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (tmp_path / "queries.tsv").write_text(
        "".join(f"{qid}\t{text}\n" for qid, text in QUERIES.items()), encoding="utf-8"
    )
    return tmp_path


def test_what_was_confirmed_survives(folder: Path) -> None:
    rng = random.Random(0)
    confirmed: list[dict[str, Any]] = []
    expected: dict[str, str] = {}
    for _ in range(KILLS):
        server = Server(folder)
        # The process kills itself at a random moment, from a thread: between any two instructions.
        acts = rng.randrange(1, 9)
        qid = rng.choice(list(QUERIES))
        view = server.ask(f"/api/query?qid={qid}")
        killer = subprocess.Popen(
            ["/bin/sh", "-c", f"sleep {rng.uniform(0.005, 0.08):.4f}; kill -9 {server.process.pid}"]
        )
        try:
            for _ in range(acts * 50):
                doc = rng.choice([each["doc"] for each in view["passages"]])
                act = rng.choice([{"act": "group", "doc": doc}, {"act": "not_relevant", "doc": doc}, {"act": "done"}])
                answer = server.ask("/api/act", {"qid": qid, **act})
                confirmed.append({"qid": qid, "seq": answer["seq"], **act})
                view = answer["view"]
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            pass
        killer.wait(60)
        server.end(signal.SIGKILL)
        found = {act["seq"]: act for act in read_acts(Source.at(folder / "truth.journal" / "anna.jsonl"))["anna"]}
        for act in confirmed:
            assert {**found[act["seq"]], **act} == found[act["seq"]]
    assert len(confirmed) > KILLS
    # The next session finishes every query; its truth says what the last confirmed acts said.
    server = Server(folder)
    for qid in QUERIES:
        view = server.ask(f"/api/query?qid={qid}")
        if view["status"] == "open":
            view = server.ask("/api/act", {"qid": qid, "act": "done"})["view"]
        for each in view["passages"]:
            if each["judged"] is not None:
                expected[f"{qid} {each['doc']}"] = "relevant" if each["judged"]["groups"] else "not"
    server.end(signal.SIGINT)
    rows = [json.loads(line) for line in (folder / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    told = {f"{row['qid']} {doc}": "relevant" for row in rows for group in row["retrieval_gt"] for doc in group}
    told |= {f"{row['qid']} {doc}": "not" for row in rows for doc in row["nonrelevant"]}
    assert told == expected


def test_a_full_disk_confirms_nothing(folder: Path) -> None:
    code = """
import os
from groupgt.judge import log
before, full = os.fsync, []
def fsync(handle):
    if os.path.exists("full"): raise OSError(28, "No space left on device")
    before(handle)
log.os.fsync = fsync
"""
    server = Server(folder, code)
    view = server.ask("/api/query?qid=q1")
    doc = view["passages"][0]["doc"]
    (folder / "full").touch()
    with pytest.raises(urllib.error.HTTPError) as error:
        server.ask("/api/act", {"qid": "q1", "act": "group", "doc": doc})
    assert "No space left on device" in json.load(error.value)["error"]
    (folder / "full").unlink()
    answer = server.ask("/api/act", {"qid": "q1", "act": "not_relevant", "doc": doc})
    assert answer["view"]["groups"] == []
    server.end(signal.SIGINT)
    acts = read_acts(Source.at(folder / "truth.journal" / "anna.jsonl"))["anna"]
    assert [act["act"] for act in acts] == ["begin", "open", "not_relevant"]


def test_export_from_a_killed_journal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(folder)
    view = server.ask("/api/query?qid=q1")
    server.ask("/api/act", {"qid": "q1", "act": "group", "doc": view["passages"][0]["doc"]})
    server.ask("/api/act", {"qid": "q1", "act": "done"})
    server.end(signal.SIGKILL)
    monkeypatch.chdir(folder)
    (folder / "truth.jsonl").unlink()
    main(["judge", "queries.tsv", "--out", "truth.jsonl", "--export"])
    assert groupgt.read_ground_truth("truth.jsonl").relevant("q1") == [[view["passages"][0]["doc"]]]

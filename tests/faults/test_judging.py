"""The server of the judge page is killed while a script judges: every act that was confirmed stays."""

from __future__ import annotations

import http.client
import json
import multiprocessing
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
from groupgt.judge.log import ActLog
from tests.judge.acts import QUERIES, TEXTS

pytestmark = [pytest.mark.faults, pytest.mark.skipif(os.name != "posix", reason="SIGKILL")]
KILLS, FULL, PAIRS = 20, 100, 200


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


def test_a_file_that_reached_its_limit_keeps_what_was_confirmed(folder: Path) -> None:
    resource = pytest.importorskip("resource")
    rng = random.Random(1)
    server = Server(folder)
    path = folder / "truth.journal" / "anna.jsonl"
    docs = [each["doc"] for each in server.ask("/api/query?qid=q1")["passages"]]
    confirmed, refused = [], []
    for _ in range(FULL):
        # The next act needs about 120 bytes: it is written in part, or not at all, or as a whole.
        limit = path.stat().st_size + rng.randrange(200)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            confirmed.append(server.ask("/api/act", {"qid": "q1", "act": "group", "doc": rng.choice(docs)})["seq"])
        except urllib.error.HTTPError as error:
            refused.append(json.load(error)["error"])
        assert path.read_bytes().endswith(b"}\n")
    server.end(signal.SIGKILL)
    assert [act["seq"] for act in read_acts(Source.at(path))["anna"]][2:] == confirmed
    assert all("cannot write " in error and "anna.jsonl: " in error for error in refused)
    assert min(len(confirmed), len(refused)) > FULL / 4


def test_an_act_is_confirmed_though_its_ground_truth_cannot_be_written(folder: Path) -> None:
    server = Server(folder)
    server.ask("/api/query?qid=q1")
    (folder / "truth.jsonl").mkdir()
    answer = server.ask("/api/act", {"qid": "q1", "act": "done"})
    assert answer["view"]["status"] == "done"
    assert re.match(
        r"saved in the journal, but the ground truth was not written: .*truth.jsonl: expected a file", answer["warning"]
    )
    (folder / "truth.jsonl").rmdir()
    assert server.ask("/api/act", {"qid": "q1", "act": "done"})["warning"] is None
    server.end(signal.SIGINT)
    assert json.loads((folder / "truth.jsonl").read_text(encoding="utf-8"))["qid"] == "q1"


def _opens(barrier: Any, folders: list[Path], opened: Any) -> None:
    for number, folder in enumerate(folders):
        barrier.wait()
        try:
            log = ActLog(folder, "anna")
        except groupgt.ConfigError:
            log = None
        else:
            opened.put(number)
        barrier.wait()
        if log is not None:
            log.close()


def test_of_two_sessions_on_one_journal_one_is_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, opened = context.Barrier(2), context.Queue()
    folders = [tmp_path / str(number) for number in range(PAIRS)]
    people = [context.Process(target=_opens, args=(barrier, folders, opened)) for _ in range(2)]
    for each in people:
        each.start()
    found = [opened.get(timeout=60) for _ in folders]
    for each in people:
        each.join(60)
    assert sorted(found) == list(range(PAIRS))
    assert opened.empty()


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

"""The server: data needs the token, other hosts and origins get nothing, and no body is too much for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra groupgt[judge] is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient

from groupgt.judge import index
from groupgt.judge.server import HEADERS, STATIC, application
from groupgt.judge.session import Session
from tests.judge.acts import session_of

HOST = "127.0.0.1:8765"
AUTHORIZED = {"x-groupgt-token": "secret-token"}
DATA = ("/api/overview", "/api/query?qid=q1", "/api/search?qid=q1&text=pets", "/api/progress?")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return session_of(tmp_path)


@pytest.fixture
def client(session: Session) -> Iterator[Any]:
    with TestClient(application(session, "secret-token", {HOST}), base_url=f"http://{HOST}") as found:
        yield found


def test_the_page_holds_no_data_and_needs_no_token(client: Any) -> None:
    for path in STATIC:
        answer = client.get(path)
        assert answer.status_code == 200
        assert "ferry" not in answer.text.lower()
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "default-src 'none'" in policy
    page = client.get("/").text
    assert "<style" not in page
    assert "<script>" not in page
    assert "http:" not in page + client.get("/judge.js").text + client.get("/judge.css").text


def test_data_needs_the_token(client: Any, session: Session) -> None:
    for path in DATA:
        for headers in ({}, {"x-groupgt-token": "secret"}, {"x-groupgt-token": ""}, {"cookie": "groupgt=secret-token"}):
            assert client.get(path, headers=headers).status_code == 401
        assert client.get(f"{path}{'&' if '?' in path else '?'}token=secret-token").status_code == 401
        assert client.get(path, headers=AUTHORIZED).status_code == 200
    before = len(session.log.acts)
    assert client.post("/api/act", json={"qid": "q1", "act": "skip"}).status_code == 401
    assert len(session.log.acts) == before


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"host": "127.0.0.1"}, {"host": "127.0.0.1.evil.example:8765"}]
)
def test_other_hosts_get_nothing(client: Any, headers: dict[str, str]) -> None:
    for path in (*DATA, *STATIC):
        answer = client.get(path, headers={**AUTHORIZED, **headers})
        assert (answer.status_code, answer.json()) == (403, {"error": "wrong host"})


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:1"])
def test_other_origins_get_nothing(client: Any, session: Session, origin: str) -> None:
    headers = {**AUTHORIZED, "origin": origin}
    assert client.get("/api/overview", headers=headers).status_code == 403
    before = len(session.log.acts)
    assert client.post("/api/act", headers=headers, json={"qid": "q1", "act": "skip"}).status_code == 403
    assert len(session.log.acts) == before
    assert client.get("/api/overview", headers={**AUTHORIZED, "origin": f"http://{HOST}"}).status_code == 200


def test_nothing_else_is_served(client: Any) -> None:
    for path in (
        "/../pyproject.toml",
        "/%2e%2e/server.py",
        "/judge.py",
        "//etc/passwd",
        "/page/judge.js",
        "/api",
        "/docs",
    ):
        assert client.get(path, headers=AUTHORIZED).status_code == 404
    for path in ("/", *DATA):
        assert client.post(path, headers=AUTHORIZED).status_code == 405
    assert client.get("/api/act", headers=AUTHORIZED).status_code == 405
    assert client.options("/api/act", headers={**AUTHORIZED, "origin": "http://evil.example"}).status_code == 405


def test_bodies_are_checked(client: Any, session: Session) -> None:
    client.get("/api/query?qid=q1", headers=AUTHORIZED)
    before = len(session.log.acts)

    def post(body: bytes, kind: str = "application/json") -> Any:
        return client.post("/api/act", headers={**AUTHORIZED, "content-type": kind}, content=body)

    assert post(b"{}", "text/plain").status_code == 415
    assert post(b"{").json() == {"error": "expected JSON"}
    assert post(b"[]").json() == {"error": "expected an object"}
    assert post(json.dumps({"qid": "q1", "act": "not_relevant", "doc": ["pets"]}).encode()).status_code == 400
    assert post(json.dumps({"qid": {"a": 1}, "act": "done"}).encode()).status_code == 400
    assert len(session.log.acts) == before


def test_a_query_of_another_session_is_not_found(client: Any) -> None:
    for answer in (
        client.get("/api/query?qid=q9", headers=AUTHORIZED),
        client.get("/api/search?qid=q9&text=pets", headers=AUTHORIZED),
        client.post("/api/act", headers=AUTHORIZED, json={"qid": "q9", "act": "done"}),
    ):
        assert (answer.status_code, answer.json()) == (404, {"error": "expected a query in this session, found 'q9'"})


def test_the_progress_is_told_while_a_query_waits_for_the_index(
    client: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, is_building = threading.Event(), threading.Event()
    part = index._part

    def slow(first: int, texts: Any) -> Any:
        is_building.set()
        assert goes_on.wait(60)
        return part(first, texts)

    monkeypatch.setattr(index, "_part", slow)
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(client.get, "/api/query?qid=q1", headers=AUTHORIZED)
        assert is_building.wait(60)
        assert client.get("/api/progress", headers=AUTHORIZED).json() == {"indexed": 0}
        assert client.get("/api/overview", headers=AUTHORIZED).json()["next"] == "q1"
        assert not query.done()
        goes_on.set()
        assert query.result(60).json()["qid"] == "q1"
    assert client.get("/api/progress", headers=AUTHORIZED).json() == {"indexed": 1}


def test_an_act_is_in_the_journal_before_it_is_confirmed(client: Any, session: Session) -> None:
    view = client.get("/api/query?qid=q1", headers=AUTHORIZED).json()
    doc = view["passages"][0]["doc"]
    answer = client.post("/api/act", headers=AUTHORIZED, json={"qid": "q1", "act": "group", "doc": doc}).json()
    last = json.loads(session.log.path.read_text(encoding="utf-8").splitlines()[-1])
    assert (answer["seq"], last["doc"]) == (last["seq"], doc)
    assert answer["view"]["groups"][0]["docs"] == [doc]

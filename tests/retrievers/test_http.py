"""`use: http`, against a server of this process: every shape of answer, and every way to give none."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Corpus, Setting, checked
from groupgt.retrievers.http import Http, Options
from tests.retrievers.small import small

pytestmark = pytest.mark.slow

SETTING = Setting(Corpus([], []))
Answer = tuple[int, dict[str, str], bytes]


class Server:
    """Answers each request by the next of `answers`, the last of them again and again; remembers what was sent."""

    def __init__(self) -> None:
        self.answers: list[Callable[[dict[str, Any]], Answer]] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.released = threading.Event()
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                own.times.append(time.monotonic())
                own.bodies.append(body)
                own.headers.append(dict(self.headers.items()))
                answer = own.answers.pop(0) if len(own.answers) > 1 else own.answers[0]
                status, headers, content = answer(body)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that went away is expected."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.http.server_port}"
        self.url = f"http://{self.place}/search"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()

    def says(self, value: Any, status: int = 200, **headers: str) -> None:
        """Appends an answer: bytes as they are, else JSON."""
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.answers.append(
            lambda body: (status, {name.replace("_", "-"): own for name, own in headers.items()}, content)
        )


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def ask(url: str, queries: list[str] | None = None, k: int = 5, **options: Any) -> list[Any]:
    given = Options(url, **{"backoff": 0.0, "retries": 0, "timeout": 5.0} | options)
    retriever, texts, rankings = Http(SETTING, given), queries or ["one", "two"], list[Any]()
    for start in range(0, len(texts), given.batch_size()):  # as runs do
        rankings += retriever.retrieve(texts[start : start + given.batch_size()], k)
    return rankings


def fault(url: str, **options: Any) -> str:
    with pytest.raises(groupgt.RetrieverError) as error:
        ask(url, **options)
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


# ---- right answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda rankings: rankings, lambda rankings: {"results": rankings, "took": 3}])
@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        ([["a", "b"], []], [["a", "b"], []]),
        ([[["a", 2.5], ["b", 1]], []], [[["a", 2.5], ["b", 1]], []]),
        ([[{"id": "a", "score": 2}, {"id": "b", "score": 1, "more": 0}], []], [[("a", 2), ("b", 1)], []]),
        ([[{"id": "a"}], [{"id": 7}]], [["a"], [7]]),
    ],
)
def test_every_shape_of_answer(server: Server, rankings: Any, expected: Any, wrap: Callable[[Any], Any]) -> None:
    server.says(wrap(rankings))
    found = ask(server.url)
    assert found == expected
    assert checked("mine", ["q1", "q2"], found, 5)


def test_fields_of_other_names(server: Server) -> None:
    server.says([[{"doc": "a", "similarity": 0.5}]])
    assert ask(server.url, ["one"], id_field="doc", score_field="similarity") == [[("a", 0.5)]]


def test_questions_go_in_batches(server: Server) -> None:
    server.answers.append(
        lambda body: (
            200,
            {},
            json.dumps([[f"{query} of {len(body['queries'])}"] for query in body["queries"]]).encode(),
        )
    )
    assert ask(server.url, ["a", "b", "c", "d", "é"], k=3, batch=2) == [
        ["a of 2"],
        ["b of 2"],
        ["c of 2"],
        ["d of 2"],
        ["é of 1"],
    ]
    assert server.bodies == [
        {"queries": ["a", "b"], "k": 3},
        {"queries": ["c", "d"], "k": 3},
        {"queries": ["é"], "k": 3},
    ]
    assert Options(server.url, batch=7).batch_size() == 7


def test_headers_are_sent(server: Server) -> None:
    server.says([["a"]])
    ask(server.url, ["one"], headers={"X-Key": "abc", "Authorization": "Bearer t"})
    sent = server.headers[0]
    assert (sent["X-Key"], sent["Authorization"]) == ("abc", "Bearer t")
    assert (sent["Accept"], sent["Content-Type"]) == ("application/json", "application/json")


def test_user_and_password_of_the_url_are_sent(server: Server) -> None:
    server.says([["a"]])
    ask(f"http://user:p%40ss%C3%A9@{server.place}/search?key=v", ["one"])
    kind, _, token = server.headers[0]["Authorization"].partition(" ")
    assert (kind, base64.b64decode(token).decode()) == ("Basic", "user:p@ssé")


def test_a_whole_experiment_with_a_server(server: Server, tmp_path: Path) -> None:
    server.answers.append(
        lambda body: (200, {}, json.dumps({"results": [["d2", "d1"]] * len(body["queries"])}).encode())
    )
    outcome = run_experiment(small(tmp_path, f'mine: {{use: http, with: {{url: "{server.url}", batch: 2}}}}'))
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)
    assert [len(body["queries"]) for body in server.bodies[:2]] == [2, 1]


# ---- trouble on the way ------------------------------------------------------------------------------------------


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    text = fault(f"http://{place}/search", retries=2)
    assert text == f"http://{place}/search: connection refused, 3 times; is the server running at this address?"


def test_slower_than_the_timeout(server: Server) -> None:
    def slow(body: Any) -> Answer:
        server.released.wait(5)
        return 200, {}, b"[]"

    server.answers.append(slow)
    text = fault(server.url, timeout=0.2, retries=1)
    assert text == f"{server.url}: no answer in 2 tries of 0.2 s: timed out"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(server: Server, status: int) -> None:
    server.says(b"busy", status)
    server.says(b"busy", status)
    server.says([["a"], ["b"]])
    assert ask(server.url, retries=2) == [["a"], ["b"]]
    assert len(server.bodies) == 3
    assert server.bodies[0] == server.bodies[2]


def test_waits_double(server: Server) -> None:
    server.says(b"busy", 503)
    text = fault(server.url, retries=3, backoff=0.02)
    assert text == f"{server.url}: expected status 200, found 503 Service Unavailable in 4 tries of 5 s: busy"
    waits = [later - sooner for sooner, later in zip(server.times, server.times[1:])]
    assert [wait >= least for wait, least in zip(waits, (0.02, 0.04, 0.08), strict=True)] == [True] * 3
    assert sum(waits) < 2


def test_retry_after_is_heeded_up_to_the_timeout(server: Server) -> None:
    server.says(b"busy", 429, Retry_After="3600")
    server.says([["a"], ["b"]])
    assert ask(server.url, retries=1, timeout=0.1, backoff=0.0)
    assert 0.1 <= server.times[1] - server.times[0] < 2


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_other_faults_are_not_repeated(server: Server, status: int) -> None:
    server.says(b"<html>\n  <b>sorry</b>\n</html>", status)
    assert f": expected status 200, found {status} " in (text := fault(server.url, retries=3))
    assert text.endswith(": <html> <b>sorry</b> </html>")
    assert len(server.bodies) == 1


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.says(b"", 302, Location="/other")
    assert fault(server.url, retries=3) == f"{server.url}: expected status 200, found 302 Found: no text"
    assert len(server.bodies) == 1


def test_an_answer_that_breaks_off(server: Server) -> None:
    server.says([["a"], ["b"]], Content_Length="1000")
    assert f"{server.url}: no answer in 2 tries of 0.1 s: " in fault(server.url, retries=1, timeout=0.1)


# ---- answers that are none ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>no</html>", "expected JSON, found '<html>no</html>'"),
        (b"", "expected JSON, found ''"),
        (b"\xff\xfe", "expected JSON, found"),
        (b"x" * 10_000_000, "expected JSON, found 'xxxx"),
        ({"rankings": []}, "expected {\"results\": [ranking, …]}, found {'rankings': []}"),
        ("text", "expected {\"results\": [ranking, …]}, found 'text'"),
        ({"results": {"q": "x" * 10_000}}, "expected {\"results\": [ranking, …]}, found {'results'"),
        ([["a"]], "expected 2 rankings, one per query, found 1"),
        ([[{"name": "a"}], []], "expected a result with the field 'id' (id_field), found {'name': 'a'}"),
    ],
)
def test_answers_that_are_none(server: Server, answer: Any, words: str) -> None:
    server.says(answer)
    assert f"{server.url}: {words}" in fault(server.url)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'[[["a", NaN]], []]', "expected a finite score at rank 1, found nan"),
        (b'[[["a", 1e999]], []]', "expected a finite score at rank 1, found inf"),
        (b'[[["a", "1"]], []]', "expected a finite score at rank 1, found '1'"),
        (b'[[{"id": "a", "score": null}], []]', "expected a finite score at rank 1, found None"),
        (b"[[7.0], []]", "expected an id (a string or integer) at rank 1, found 7.0"),
        (b"[[null], []]", "expected an id (a string or integer) at rank 1, found None"),
        (b'[["a", ""], []]', "the id at rank 2 is blank"),
        (b'["ab", []]', "expected a list of results, found str"),
        (b"[{}, []]", "expected a list of results, found dict"),
        (b'[["a", "b", "c"], []]', "expected at most 2 results, found 3"),
    ],
)
def test_rankings_are_checked(server: Server, answer: bytes, words: str) -> None:
    server.says(answer)
    with pytest.raises(groupgt.RetrieverError) as error:
        checked("mine", ["q1", "q2"], ask(server.url, k=2), 2)
    assert str(error.value) == f"system 'mine': query 'q1': {words}"


def test_repeated_ids_are_told(server: Server, tmp_path: Path) -> None:
    server.answers.append(lambda body: (200, {}, json.dumps([["d1", "d2", "d1"]] * len(body["queries"])).encode()))
    file = small(tmp_path, f'mine: {{use: http, with: {{url: "{server.url}"}}}}')
    outcome = run_experiment(file)
    assert outcome.evaluations["set"]["mine"].counts["duplicates"] == 3
    assert "queries with a repeated result: mine 3." in outcome.text()


# ---- answers on the line -----------------------------------------------------------------------------------------


def read_request(caller: socket.socket) -> bytes:
    request = b""
    while part := caller.recv(65536):
        request += part
        head, _, body = request.partition(b"\r\n\r\n")
        if (length := re.search(rb"Content-Length: (\d+)", head)) and len(body) >= int(length[1]):
            break
    return request


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n[["a"]]'
PEM = Path(__file__).with_name("localhost.pem")


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))


class Raw:
    """A server that writes whatever it likes on the line; with TLS, its certificate is that of localhost."""

    def __init__(self, write: Callable[[socket.socket], None], *, tls: bool = False) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' * tls}://127.0.0.1:{self.socket.getsockname()[1]}/search"
        self.write, self.calls = write, 0
        self.context: ssl.SSLContext | None = None
        if tls:
            self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.context.load_cert_chain(PEM)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            self.calls += 1
            threading.Thread(target=self.answer, args=(caller,), daemon=True).start()

    def answer(self, caller: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
            closing.enter_context(caller)
            if self.context is not None:
                caller = closing.enter_context(self.context.wrap_socket(caller, server_side=True))
            read_request(caller)
            self.write(caller)
            # To close with a part of the request unread would reset the connection, and take back what was written.
            caller.shutdown(socket.SHUT_WR)
            caller.settimeout(5)
            while caller.recv(65536):
                pass


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde", "IncompleteRead(5 bytes read, 4 more expected)"),
        (b"HELLO\r\n", r"expected HTTP, found 'HELLO\r\n'"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_answers_that_are_no_http(answer: bytes, words: str) -> None:
    server = Raw(lambda caller: caller.sendall(answer))
    text = fault(server.url, retries=1)
    assert text.startswith(f"{server.url}: no answer in 2 tries of 5 s: ")
    assert words in text
    assert server.calls == 2


@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "Wed, 99 Foo 2026", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_a_retry_after_that_is_malformed_or_past_is_no_reason_to_fail(server: Server, value: str) -> None:
    server.says(b"busy", 503, Retry_After=value)
    server.says([["a"], ["b"]])
    assert ask(server.url, retries=1, timeout=0.5) == [["a"], ["b"]]


# ---- one connection ----------------------------------------------------------------------------------------------


def test_a_connection_is_kept() -> None:
    def answer(caller: socket.socket) -> None:
        for _ in range(2):
            caller.sendall(ANSWER)
            read_request(caller)

    server = Raw(answer)
    assert ask(server.url, ["a", "b"], batch=1) == [["a"], ["a"]]
    assert server.calls == 1


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
def test_a_connection_that_the_server_closes_is_made_anew(header: bytes) -> None:
    def answer(caller: socket.socket) -> None:
        caller.sendall(b"HTTP/1.1 200 OK\r\n" + header + b'Content-Length: 7\r\n\r\n[["a"]]')
        caller.close()

    server = Raw(answer)
    retriever = Http(SETTING, Options(server.url, retries=0))
    for calls in (1, 2, 3):
        assert retriever.retrieve(["a"], 1) == [["a"]]
        assert server.calls == calls
        time.sleep(0.1)


def test_a_server_with_tls(trusted: None) -> None:
    server = Raw(lambda caller: caller.sendall(ANSWER), tls=True)
    assert ask(server.url, ["a"]) == [["a"]]


def test_a_certificate_that_is_not_trusted() -> None:
    server = Raw(lambda caller: caller.sendall(ANSWER), tls=True)
    assert "certificate verify failed" in fault(server.url)


def test_what_is_special_in_an_address_is_encoded() -> None:
    sent: list[bytes] = []

    class Heard(Raw):
        def answer(self, caller: socket.socket) -> None:
            sent.append(read_request(caller))
            caller.sendall(ANSWER)
            caller.close()

    url = Heard(lambda caller: None).url
    ask(url.replace("/search", "/süß/a%20b?q=ä&x={1}#part"), ["a"])
    ask(url.replace("/search", "//x/"), ["a"])
    ask(url.replace("/search", "?q=1"), ["a"], headers={"content-type": "text/json", "Host": "other"})
    assert sent[0].startswith(b"POST /s%C3%BC%C3%9F/a%20b?q=%C3%A4&x=%7B1%7D HTTP/1.1\r\n")
    assert sent[1].startswith(b"POST //x/ HTTP/1.1\r\n")
    assert sent[2].startswith(b"POST /?q=1 HTTP/1.1\r\n")
    assert b"content-type: text/json" in sent[2]
    assert b"Content-Type" not in sent[2]
    assert sent[2].count(b"Host:") == 1


def test_a_host_that_cannot_be_asked_for() -> None:
    assert "no answer in 1 try of 5 s: " in fault(f"http://{'x' * 100}.example/")


# ---- secrets -----------------------------------------------------------------------------------------------------


def test_no_message_shows_user_password_or_query_of_the_url(server: Server) -> None:
    server.says(b"no such page", 404)
    url = f"http://someone:p%40ssword@{server.place}/search?token=tok%20en"
    assert fault(url) == f"http://{server.place}/search: expected status 200, found 404 Not Found: no such page"
    text = fault("http://someone:p%40ssword@127.0.0.1:1/search?token=tok%20en")
    assert text == "http://127.0.0.1:1/search: connection refused; is the server running at this address?"


def test_a_key_that_the_server_repeats_is_neither_shown_nor_stored(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.says(b"denied for sk-live-0123456789", 401)
    monkeypatch.setenv("GROUPGT_KEY", "sk-live-0123456789")
    options = f'{{url: "{server.url}", headers: {{X-Api-Key: "${{env:GROUPGT_KEY}}"}}, retries: 0}}'
    file = small(tmp_path, f"bm25: bm25\n  mine: {{use: http, on_error: skip, with: {options}}}")
    assert "denied for ${env:GROUPGT_KEY}" in run_experiment(file).failed["set"]["mine"]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"${env:GROUPGT_KEY}" in stored
    assert b"sk-live" not in stored


@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:s3cret@h/x?k=s3cret",
        "h/s3cret",
        "http://",
        "http:///s3cret",
        "http://h:s3cret/",
        "http://[::s3cret",
        "http://u:s3c ret@h/",
        "",
    ],
)
def test_urls_at_fault_are_not_shown(url: str) -> None:
    with pytest.raises(groupgt.ConfigError, match="url: expected http://host/… or https://host/…") as error:
        options_from(Options, {"url": url})
    assert "s3c" not in str(error.value)


@pytest.mark.parametrize("value", ["s3cret\n", "s3cret\r\nX: y", "s3cret “x”"])
def test_headers_at_fault_are_not_shown(value: str) -> None:
    with pytest.raises(groupgt.ConfigError, match="headers: expected one line of Latin characters") as error:
        options_from(Options, {"url": "http://h/", "headers": {"Authorization": value}})
    assert "s3cret" not in str(error.value)
    with pytest.raises(groupgt.ConfigError, match="headers: expected the name of a header, found 'a b'"):
        options_from(Options, {"url": "http://h/", "headers": {"a b": "x"}})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch: expected a whole number from 1 to 100,000, found 0"),
        ({"timeout": 0.0}, "timeout: expected seconds above 0"),
        ({"retries": -1}, "retries: expected a whole number from 0 to 100, found -1"),
        ({"backoff": -1.0}, "backoff: expected seconds from 0 to 3,600, found -1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(Options, {"url": "http://h/", **options})


def test_an_address_of_version_six_is_shown_whole() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Http(SETTING, Options("http://u:p@[::1]:80/x?y=z")).shown == "http://[::1]:80/x"

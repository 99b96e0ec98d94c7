"""`use: http`, against a server of this process: every shape of answer, and every way to give none."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import socket
import ssl
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import groupgt
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Corpus, Setting, checked
from groupgt.retrievers.http import Http, Options
from tests.retrievers.small import small

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
        (b"[" * 100_000, "expected JSON, found '[[[["),
        (b"x" * 10_000_000, "expected JSON, found 'xxxx"),
        ({"rankings": []}, "expected {\"results\": [ranking, …]}, found {'rankings': []}"),
        ("text", "expected {\"results\": [ranking, …]}, found 'text'"),
        ({"results": {"q": "x" * 10_000}}, "expected {\"results\": [ranking, …]}, found {'results'"),
        ([["a"]], "expected 2 rankings, one per query, found 1"),
        ([[{"name": "a"}], []], "expected a result with 'id' (id_field), found {'name': 'a'}"),
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
    with pytest.warns(groupgt.GroupgtWarning, match=r"repeated ids in 3 of 3 rankings \(query 'q1': 'd1'\)"):
        assert run_experiment(file).evaluations["set"]["mine"].counts["duplicates"] == 3


# ---- answers without end -----------------------------------------------------------------------------------------


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

    def __init__(self, write: Callable[[socket.socket], None], *, tls: bool = False, reads: bool = True) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' * tls}://127.0.0.1:{self.socket.getsockname()[1]}/search"
        self.write, self.reads, self.calls = write, reads, 0
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
            if self.reads:
                read_request(caller)
            self.write(caller)
            # To close with a part of the request unread would reset the connection, and take back what was written.
            caller.shutdown(socket.SHUT_WR)
            caller.settimeout(5)
            while caller.recv(65536):
                pass


def drip(caller: socket.socket, first: bytes, byte: bytes) -> None:
    caller.sendall(first)
    for _ in range(2000):
        caller.sendall(byte)
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("first", "byte"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"HTTP/1.1 2", b"0"),
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1; ", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: x\r\n"),
    ],
)
def test_a_drip_fed_answer_ends(first: bytes, byte: bytes) -> None:
    """Each part comes in time, and the whole would not: no try is left when the time of the call is over."""
    check_drip(Raw(lambda caller: drip(caller, first, byte)))


def test_a_drip_fed_answer_with_tls_ends(trusted: None) -> None:
    check_drip(Raw(lambda caller: drip(caller, b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"), tls=True))


def check_drip(server: Raw) -> None:
    start = time.monotonic()
    text = fault(server.url, timeout=0.3, retries=3, max_seconds=0.2)
    assert text == f"{server.url}: no complete response within 0.2 s (max_seconds)"
    assert time.monotonic() - start < 5
    assert server.calls == 1


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_a_request_that_is_read_slowly_ends(trusted: None, tls: bool) -> None:
    def read(caller: socket.socket) -> None:
        while caller.recv(1000):
            time.sleep(0.02)

    start = time.monotonic()
    url = Raw(read, tls=tls, reads=False).url
    text = fault(url, queries=["x" * 50_000_000], timeout=5.0, retries=3, max_seconds=0.4)
    assert text == f"{url}: no complete response within 0.4 s (max_seconds)"
    assert time.monotonic() - start < 5


def test_a_drip_fed_handshake_ends() -> None:
    server = Raw(lambda caller: drip(caller, b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\0"))
    url = server.url.replace("http:", "https:")
    start = time.monotonic()
    assert fault(url, timeout=5.0, max_seconds=0.4) == f"{url}: no complete response within 0.4 s (max_seconds)"
    assert time.monotonic() - start < 2


def test_addresses_that_do_not_answer_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    class Silent(socket.socket):
        def connect(self, address: Any) -> None:
            asked.append(self.gettimeout() or 0.0)
            time.sleep(asked[-1])
            raise TimeoutError("timed out")

    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80))] * 100
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    monkeypatch.setattr(socket, "socket", Silent)
    url = "http://many.example/search"
    assert fault(url, timeout=0.15, max_seconds=0.4) == f"{url}: no complete response within 0.4 s (max_seconds)"
    assert len(asked) == 3


def test_the_next_address_is_tried(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.says([["a"], ["b"]])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", place)
            for place in (free.getsockname(), server.http.server_address)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        assert ask("http://two.example/search") == [["a"], ["b"]]
    assert server.headers[0]["Host"] == "two.example"


def test_silence_until_the_time_is_over(server: Server) -> None:
    """The last part may take what is left, which is less than its timeout."""
    url = Raw(lambda caller: time.sleep(5)).url
    assert fault(url, timeout=5.0, max_seconds=0.1) == f"{url}: no complete response within 0.1 s (max_seconds)"


def test_the_time_is_that_of_all_tries(server: Server) -> None:
    server.says(b"busy", 503)
    start = time.monotonic()
    text = fault(server.url, timeout=5.0, retries=100, backoff=0.05, max_seconds=0.5)
    assert text == f"{server.url}: no complete response within 0.5 s (max_seconds)"
    assert time.monotonic() - start < 5
    assert 2 <= len(server.bodies) < 20


@pytest.mark.slow
def test_the_time_begins_anew_with_each_call(server: Server) -> None:
    def slow(body: Any) -> Answer:
        time.sleep(0.3)
        return 200, {}, json.dumps([["a"]] * len(body["queries"])).encode()

    server.answers.append(slow)
    assert ask(server.url, ["a", "b", "c"], batch=1, max_seconds=0.6) == [["a"]] * 3


TOO_LARGE = "the answer is larger than 1,000 bytes (max_bytes)"


def flood(caller: socket.socket, first: bytes, part: bytes) -> None:
    caller.sendall(first)
    for _ in range(10_000):
        caller.sendall(part)


@pytest.mark.parametrize(
    ("first", "part"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n", b"x" * 1000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"64\r\n" + b"x" * 100 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: x\r\n" * 10),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", b"x" * 1000),
    ],
)
def test_an_answer_without_bound_ends(first: bytes, part: bytes) -> None:
    server = Raw(lambda caller: flood(caller, first, part))
    assert fault(server.url, max_bytes=1000) == f"{server.url}: {TOO_LARGE}"
    assert server.calls == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabcde", ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\nabcde", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde", "IncompleteRead(5 bytes read, 4 more expected)"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n[]", "got more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n[]", "got more than 65536 bytes"),
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


def test_an_answer_of_just_so_many_bytes(server: Server) -> None:
    answer = b'[["a"], ["b"]]'
    server.says(answer)
    assert ask(server.url, max_bytes=len(answer)) == [["a"], ["b"]]
    assert "is larger than 13 bytes" in fault(server.url, max_bytes=len(answer) - 1)


@pytest.mark.parametrize(
    "pack", [gzip.compress, zlib.compress, lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])]
)
def test_an_answer_that_was_packed_unasked(server: Server, pack: Callable[[bytes], bytes]) -> None:
    server.says(pack(b'[["a"], ["b"]]'), Content_Encoding="gzip")
    assert ask(server.url) == [["a"], ["b"]]


def test_a_bomb(server: Server) -> None:
    """Ten megabytes that would be ten gigabytes."""
    bomb = gzip.compress(b"\0" * 10_000_000, compresslevel=9)
    server.says(bomb * 1000, Content_Encoding="gzip")
    tracemalloc.start()
    text = fault(server.url, max_bytes=12_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text == f"{server.url}: the answer is larger than 12,000,000 bytes (max_bytes)"
    assert peak < 100_000_000


def test_a_bomb_of_many_small_ones(server: Server) -> None:
    """Half a million packed texts of no length: to look at each takes longer than the call may."""
    server.says(gzip.compress(b"") * 500_000, Content_Encoding="gzip")
    start = time.monotonic()
    assert "no complete response within 0.5 s (max_seconds)" in fault(server.url, max_seconds=0.5)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("content", "encoding", "words"),
    [
        (gzip.compress(b"[]")[:-3], "gzip", "expected an answer in gzip, found a truncated one"),
        (b"[[], []]", "gzip", "expected an answer in gzip, found other bytes"),
        (b"[[], []]", "br", "expected an answer as it is, or in gzip, found the encoding 'br'"),
    ],
    ids=["cut short", "not packed", "brotli"],
)
def test_answers_packed_otherwise(server: Server, content: bytes, encoding: str, words: str) -> None:
    server.says(content, Content_Encoding=encoding)
    assert fault(server.url) == f"{server.url}: {words}"


@pytest.mark.parametrize(
    "value", ["soon", "-5", "1.5", "Wed, 99 Foo 2026", "9" * 5000, "Fri, 31 Dec 99999 23:59:59 GMT", ""]
)
def test_a_malformed_retry_after_is_no_reason_to_fail(server: Server, value: str) -> None:
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


def test_a_call_that_failed_leaves_nothing_to_the_next(server: Server) -> None:
    server.says(b"x" * 1000)
    server.says([["a"]])
    retriever = Http(SETTING, Options(server.url, retries=0, max_bytes=100))
    with pytest.raises(groupgt.RetrieverError, match="is larger than 100 bytes"):
        retriever.retrieve(["a"], 1)
    assert retriever.retrieve(["a"], 1) == [["a"]]


def test_a_server_with_tls(trusted: None) -> None:
    server = Raw(lambda caller: caller.sendall(ANSWER), tls=True)
    assert ask(server.url, ["a"]) == [["a"]]


def test_a_certificate_that_is_not_trusted() -> None:
    server = Raw(lambda caller: caller.sendall(ANSWER), tls=True)
    assert "certificate verify failed" in fault(server.url)


def test_a_certificate_of_another_name(trusted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Raw(lambda caller: caller.sendall(ANSWER), tls=True)
    address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", server.socket.getsockname())
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address])
    assert "not valid for 'other.example'" in fault("https://other.example/search")


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

SECRETS = ("p%40ssword", "p@ssword", "tok%20en", "tok en", "any+thing", "any thing", "k3y-of-mine")


def secret_url(place: str) -> str:
    return f"http://someone:p%40ssword@{place}/search?token=tok%20en&more=any+thing&k=5"


def test_no_message_holds_a_secret(server: Server) -> None:
    def echo(status: int, template: str) -> None:
        text = template.format(
            url=secret_url(server.place), rest="someone p@ssword, tok en, any thing, Bearer k3y-of-mine"
        )
        server.answers[:] = [lambda body: (status, {}, text.encode())]

    for status, template in (
        (404, "no such page: {url}; {rest}"),
        (503, "busy: {url}; {rest}"),
        (200, "no JSON: {url}; {rest}"),
        (200, '{{"error": "{url} {rest}"}}'),
        (200, '[[{{"name": "{url} {rest}"}}], []]'),
    ):
        echo(status, template)
        text = fault(secret_url(server.place), headers={"Authorization": "Bearer k3y-of-mine"})
        assert text.startswith(f"http://{server.place}/search: ")
        assert not [each for each in SECRETS if each in text], text
        assert "…" in text


PASSWORD, KEY = "hunter2/Ä<x>", "sk-live-0123456789"
SPELLED = {
    "as it is": lambda text: text,
    "in capitals": str.upper,
    "in small letters": str.lower,
    "backwards": lambda text: text[::-1],
    "backwards in capitals": lambda text: text[::-1].upper(),
    "as JSON escapes it": lambda text: json.dumps(text)[1:-1],
    "in JSON escapes alone": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "in JSON escapes, twice": lambda text: "".join(f"\\\\u{ord(letter):04X}" for letter in text),
    "in escapes of Python": lambda text: "".join(f"\\x{ord(letter):02x}" for letter in text),
    "with solidus escaped": lambda text: text.replace("/", "\\/").replace("-", "\\-"),
    "in percent signs": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "in entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
}


@pytest.mark.parametrize("how", SPELLED)
@pytest.mark.parametrize("where", ["text", "JSON", "fields", "reason"])
def test_a_secret_in_other_signs(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, where: str
) -> None:
    """Neither shown nor stored, where a server repeats it in whatever spelling."""
    told = [SPELLED[how](secret) for secret in (PASSWORD, KEY)]
    text = f"denied for {told[0]} and {told[1]}"
    if where == "text":
        server.says(text.encode(), 401)
    elif where == "JSON":
        server.says(('{"error": "' + text.replace('"', "'") + '"}').encode())
    elif where == "fields":
        server.says([[{"name": text}], []])
    else:
        line = f"HTTP/1.1 401 {text}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace")
        server.close()
        server.url = Raw(lambda caller: caller.sendall(line)).url
    url = server.url.replace("http://", f"http://user:{quote(PASSWORD, safe='')}@")
    shown = fault(url, headers={"X-Api-Key": KEY})
    for secret in (PASSWORD, KEY):
        for spelling in (secret, secret[::-1], *told):
            assert spelling.lower() not in shown.lower()
    assert "…" in shown
    monkeypatch.setenv("GROUPGT_URL", url)
    monkeypatch.setenv("GROUPGT_KEY", KEY)
    options = '{url: "${env:GROUPGT_URL}", headers: {X-Api-Key: "${env:GROUPGT_KEY}"}, retries: 0}'
    file = small(tmp_path, f"bm25: bm25\n  mine: {{use: http, on_error: skip, with: {options}}}")
    assert "mine" in run_experiment(file).failed["set"]
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()).lower()
    for spelling in (PASSWORD, KEY, KEY[::-1], *told):
        assert spelling.lower().encode() not in stored


def test_a_secret_that_is_cut(server: Server) -> None:
    """What is looked at ends within one, and what stands before it vanishes."""
    server.says((KEY * 500).encode(), 401)
    shown = fault(server.url, headers={"X-Api-Key": KEY})
    assert "sk-l" not in shown
    assert "0123" not in shown


@pytest.mark.parametrize("spelled", [str, str.upper, lambda key: key[::-1], lambda key: f"doc/{key}#1"])
def test_an_id_that_repeats_a_key_is_not_kept(server: Server, spelled: Callable[[str], str]) -> None:
    words = "the id of a result repeats a password or a key that the server was sent"
    for ranking in ([spelled(KEY)], [[spelled(KEY), 1.0]], [{"id": spelled(KEY), "score": 1}]):
        server.answers.clear()
        server.says([ranking, []])
        assert fault(server.url, headers={"X-Api-Key": KEY}) == f"{server.url}: {words}"


def test_ids_that_hold_what_is_no_secret(server: Server) -> None:
    """A collection that is named in the URL, or in a header, may well be named in ids."""
    server.says([["documents/1"], ["short-1"]])
    url = f"{server.url}?collection=documents&key=short"
    assert ask(url, headers={"X-Collection": "documents"}) == [["documents/1"], ["short-1"]]


def test_connection_faults_hold_no_secret() -> None:
    for place in ("127.0.0.1:1", "no-such-host.invalid"):
        text = fault(secret_url(place), headers={"Authorization": "Bearer k3y-of-mine"})
        assert not [each for each in (*SECRETS, "someone") if each in text], text
        reason = "connection refused" if place == "127.0.0.1:1" else "no answer in 1 try of "
        assert text.startswith(f"http://{place}/search: {reason}")


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
        ({"max_seconds": 0}, "max_seconds: expected seconds above 0, at most 604,800, found 0"),
        ({"max_bytes": 0}, "max_bytes: expected a whole number from 1 to 1,000,000,000,000, found 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(Options, {"url": "http://h/", **options})


def test_an_address_of_version_six_is_shown_whole() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Http(SETTING, Options("http://u:p@[::1]:80/x?y=z")).shown == "http://[::1]:80/x"

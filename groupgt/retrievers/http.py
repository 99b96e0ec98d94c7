"""A retriever that calls an HTTP server: it posts queries and k as JSON and receives rankings as JSON."""

from __future__ import annotations

import html
import http.client
import io
import json
import re
import selectors
import socket
import ssl
import time
import weakref
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated, Any
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlsplit

from annotated_types import Ge, Gt, Le
from typing_extensions import Doc

from groupgt.errors import RetrieverError, display
from groupgt.options import Called, Clash
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin

# Status codes of a server that is busy or starting: the request is retried.
BUSY = (429, 502, 503, 504)
# Maximum characters of an answer that a message reads and shows.
READ_CHARS, SHOWN_CHARS = 2000, 200
# Length of a value too short to be a secret, and of one that is certainly a secret if its name indicates it.
SHORT_CHARS, LONG_CHARS = 3, 8
KEY = re.compile("auth|key|token|secret|pass|cookie|session", re.IGNORECASE)
# Bytes of headers and chunk delimiters, in addition to those of an answer.
HEADER_BYTES = 1 << 18
# Bytes of an answer read at a time.
PART_BYTES = 1 << 16
# Default headers of each request, unless `headers` overrides them.
HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "groupgt"}


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: http`, which posts `{"queries": [text, …], "k": 10}`.

    The server returns `{"results": [ranking, …]}` or just the list; a ranking contains ids, [id, score] pairs, or
    objects. The server is queried on every run; set its `version` next to `use` to cache responses.
    """

    url: Annotated[str, Doc("URL that requests are posted to.")]
    headers: Annotated[dict[str, str], Doc("Headers of each request.")] = field(default_factory=dict)
    batch: Annotated[int, Ge(1), Le(100_000), Doc("Number of queries per request.")] = 32
    timeout: Annotated[
        float,
        Called("seconds"),
        Gt(0),
        Le(86_400),
        Doc("Seconds to wait for a connection and for each part of a response, and at most before a retry."),
    ] = 30.0
    retries: Annotated[int, Ge(0), Le(100), Doc("Number of retries when a request fails or the server is busy.")] = 3
    backoff: Annotated[
        float,
        Called("seconds"),
        Ge(0),
        Le(3600),
        Doc("Seconds before the first retry, doubled each time, unless the server says how long (Retry-After)."),
    ] = 0.5
    max_seconds: Annotated[
        float,
        Called("seconds"),
        Gt(0),
        Le(604_800),
        Doc("Maximum duration of a request including retries, in seconds."),
    ] = 600.0
    max_bytes: Annotated[int, Ge(1), Le(10**12), Doc("Maximum size of a response, in bytes.")] = 100_000_000
    id_field: Annotated[str, Doc("Field of a result object with the id.")] = "id"
    score_field: Annotated[str, Doc("Field of a result object with the score.")] = "score"

    def batch_size(self) -> int:
        return self.batch

    def clashes(self) -> Iterator[Clash]:
        """Yields errors for an invalid URL or headers, without showing values that may contain secrets."""
        if not _is_url(self.url):
            yield Clash("url", "expected http://host/… or https://host/…, special characters percent-encoded")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", name, re.ASCII):
                yield Clash("headers", f"expected the name of a header, found {name!r}")
            elif not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", value):
                yield Clash("headers", f"expected one line of Latin characters as the value of {name}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and text.isprintable() and " " not in text


class Http:
    """A client for a retrieval server; an invalid response is always an error, never an empty ranking."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.options = options
        parts = urlsplit(options.url)
        user, _, host = parts.netloc.rpartition("@")
        self.shown = f"{parts.scheme}://{host}{parts.path}"
        target = f"{parts.path or '/'}?{parts.query}".rstrip("?")
        self.target = quote(target, safe="!$%&'()*+,/:;=?@[]~")
        headers = {"Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if user else {}
        headers |= options.headers
        names = {name.lower() for name in headers}
        self.headers = {name: value for name, value in HEADERS.items() if name.lower() not in names} | headers
        self.secrets = Secrets(user, parts.password or "", parts.query, headers)
        self.limits = Limits(options)
        self.connection = Connection(parts, self.limits)
        self.tries = f"{options.retries + 1} {'tries' if options.retries else 'try'} of {options.timeout:g} s"

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Returns the rankings from the server; the host passes at most `batch` queries at a time."""
        body = json.dumps({"queries": list(queries), "k": k}, ensure_ascii=False).encode()
        self.limits.begin()
        try:
            response, content = self._answer(body)
            content = self._unpacked(content, response.getheader("Content-Encoding", ""))
        except ExceededError as error:
            raise self._fault(str(error)) from None
        if response.status != 200:
            again = f" in {self.tries}" if response.status in BUSY else ""
            reason = self.secrets.hidden(f" {response.reason or ''}".rstrip())
            text = " ".join(content[:READ_CHARS].decode("utf-8", "replace").split())
            raise self._fault(f"expected status 200, found {response.status}{reason}{again}: ", text or "no text")
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            raise self._fault("expected JSON, found ", repr(content[:READ_CHARS].decode("utf-8", "replace"))) from None
        rankings = value.get("results") if isinstance(value, dict) else value
        if not isinstance(rankings, list):
            raise self._fault('expected {"results": [ranking, …]}, found ', display(value, READ_CHARS))
        if len(rankings) != len(queries):
            raise self._fault(f"expected {len(queries):,} rankings, one per query, found {len(rankings):,}")
        return [self._ranking(ranking) for ranking in rankings]

    def _answer(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """Returns the final response and its content, retrying if a request fails or the server is busy."""
        tries_left, seconds = self.options.retries, self.options.backoff
        while True:
            retry_after = 0.0
            try:
                response, content = self.connection.post(self.target, body, self.headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                # A host that cannot be encoded, or a chunk of -5 bytes, raises a ValueError.
                self.limits.seconds_left()
                if not tries_left:
                    raise self._no_answer(error) from None
            else:
                if response.status not in BUSY or not tries_left:
                    return response, content
                retry_after = min(self.options.timeout, _retry_after(response.getheader("Retry-After", "")))
            time.sleep(min(retry_after or seconds, self.limits.seconds_left()))
            tries_left, seconds = tries_left - 1, 2 * seconds

    def _no_answer(self, error: Exception) -> RetrieverError:
        if isinstance(error, ConnectionRefusedError):
            times = f", {self.options.retries + 1} times" if self.options.retries else ""
            return self._fault(f"connection refused{times}; is the server running at this address?")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if type(error) is http.client.BadStatusLine:
            reason = f"expected HTTP, found {reason!r}"
        return self._fault(f"no answer in {self.tries}: ", reason)

    def _unpacked(self, content: bytes, encoding: str) -> bytes:
        """Decompresses a response, up to the size limit; the server may compress without being asked to."""
        coding = encoding.strip().lower()
        if coding in ("", "identity"):
            return content
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise self._fault("expected an answer as it is, or in gzip, found the encoding ", display(encoding))
        unpacked = b""
        while content:
            self.limits.seconds_left()
            # gzip or zlib, detected by the first bytes; gzip data may have several members.
            unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            try:
                unpacked += unpacker.decompress(content, self.options.max_bytes + 1 - len(unpacked))
            except zlib.error:
                raise self._fault(f"expected an answer in {coding}, found other bytes") from None
            self.limits.check_size(len(unpacked))
            if not unpacker.eof:
                raise self._fault(f"expected an answer in {coding}, found a truncated one")
            content = unpacker.unused_data
        return unpacked

    def _fault(self, what: str, answer: str = "") -> RetrieverError:
        """Builds an error with the truncated response, without any secrets that were sent to the server."""
        return RetrieverError(f"{self.shown}: {what}{self.secrets.hidden(answer)[:SHOWN_CHARS]}")

    def _ranking(self, ranking: Any) -> Any:
        """Converts objects to pairs; other values are left for the host to check."""
        if not isinstance(ranking, list):
            return ranking
        id_field, score_field = self.options.id_field, self.options.score_field
        results = []
        for result in ranking:
            if isinstance(result, dict):
                if id_field not in result:
                    raise self._fault(
                        f"expected a result with {id_field!r} (id_field), found ", display(result, READ_CHARS)
                    )
                doc_id = result[id_field]
                result = (doc_id, result[score_field]) if score_field in result else doc_id
            results.append(result)
        for result in results:
            doc_id = result[0] if isinstance(result, (list, tuple)) and result else result
            if isinstance(doc_id, str) and self.secrets.keys is not None and self.secrets.keys.search(doc_id):
                raise self._fault("the id of a result repeats a password or a key that the server was sent")
        return results


# ---- limits of a server ------------------------------------------------------------------------------------------


class ExceededError(Exception):
    """Raised if a response is too large or a call takes too long; such calls are not retried."""


class Limits:
    """Limits for one call: total duration including retries, response size, and duration of each part."""

    def __init__(self, options: Options) -> None:
        self.options, self.end = options, 0.0

    def begin(self) -> None:
        """Starts the clock for a call."""
        self.end = time.monotonic() + self.options.max_seconds

    def seconds_left(self) -> float:
        """Returns the seconds left for the call; raises `ExceededError` if none are left."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise ExceededError(f"no complete response within {self.options.max_seconds:g} s (max_seconds)")
        return seconds

    def part_seconds(self) -> float:
        """Returns the maximum seconds for the next part; raises `ExceededError` if no time is left."""
        return min(self.options.timeout, self.seconds_left())

    def check_size(self, size: int) -> None:
        """Raises `ExceededError` if a response is too large."""
        if size > self.options.max_bytes:
            raise ExceededError(f"the answer is larger than {self.options.max_bytes:,} bytes (max_bytes)")


class _Stream(io.RawIOBase):
    """A socket stream that enforces limits while a response is read.

    `http.client` reads status lines, headers, chunk sizes and trailers until they end. Without
    this class, a server could send them slowly, byte by byte, or endlessly.
    """

    def __init__(self, connected: socket.socket, limits: Limits) -> None:
        self.socket, self.limits, self.size = connected, limits, 0
        # Keeps the socket open for the response if the connection is closed before it is read.
        self.stream = connected.makefile("rb", buffering=0)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Returns the stream as a file; `http.client.HTTPResponse` calls this method on its socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.socket.settimeout(self.limits.part_seconds())
        size = self.stream.readinto(buffer)
        self.size += size or 0
        self.limits.check_size(self.size - HEADER_BYTES)
        return size

    def close(self) -> None:
        self.stream.close()
        super().close()


class Connection:
    """A connection to a server that enforces limits and is reused between calls."""

    def __init__(self, url: SplitResult, limits: Limits) -> None:
        def response_of(connected: socket.socket, **keywords: Any) -> http.client.HTTPResponse:
            stream: Any = _Stream(connected, limits)
            return http.client.HTTPResponse(stream, **keywords)

        host = url.hostname or ""
        self.limits, self.context = limits, None
        self.connection: Any
        if url.scheme == "https":
            self.context = ssl.create_default_context()
            self.connection = http.client.HTTPSConnection(host, url.port or 443, context=self.context)
        else:
            self.connection = http.client.HTTPConnection(host, url.port or 80)
        self.connection.response_class = response_of
        weakref.finalize(self, self.connection.close)

    def post(self, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        """Sends a POST request and returns the response and its content."""
        connection = self.connection
        try:
            if connection.sock is not None and _is_readable(connection.sock):
                connection.close()  # the server has closed it, or sent unrequested data
            if connection.sock is None:
                connection.sock = self._socket()
            connection.sock.settimeout(self.limits.part_seconds())
            connection.request("POST", target, body, headers)
            content = bytearray()
            with connection.getresponse() as response:
                self.limits.check_size(response.length or 0)
                # Read in parts, as the memory for each read is allocated before any byte arrives.
                while part := response.read(PART_BYTES):
                    content += part
                    self.limits.check_size(len(content))
            if response.length:
                raise http.client.IncompleteRead(bytes(content), response.length)
        except BaseException:
            connection.close()
            raise
        return response, bytes(content)

    def _socket(self) -> socket.socket:
        """Connects to the first address that responds. Name lookup is limited only by the operating system."""
        failure = OSError("the host has no address")
        host, port = self.connection.host, self.connection.port
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            seconds = self.limits.part_seconds()
            connected = socket.socket(family, kind, protocol)
            try:
                connected.settimeout(seconds)
                connected.connect(address)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.context is None:
                    return connected
                connected.settimeout(self.limits.part_seconds())
                return self.context.wrap_socket(connected, server_hostname=host)
            except BaseException as error:
                connected.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
        raise failure


def _is_readable(connected: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connected, selectors.EVENT_READ)
        return bool(selector.select(0))


def _retry_after(text: str) -> float:
    """Parses a Retry-After header, a number or a date, and returns the seconds to wait; 0 if it is invalid.

    >>> _retry_after("120"), _retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), _retry_after("soon")
    (120.0, 0.0, 0.0)
    """
    text = text.strip()
    try:
        return float(text) if text.isdecimal() else max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


# ---- what a server was sent --------------------------------------------------------------------------------------


class Secrets:
    """Passwords and keys sent to a server, removed from messages and results if the server repeats them.

    >>> Secrets("", "pass/word", "", {}).hidden("no such user: PASS/WORD, or drow/ssap")
    'no such user: …, or …'
    """

    def __init__(self, user: str, password: str, query: str, headers: Mapping[str, str]) -> None:
        pairs = [pair.partition("=") for pair in query.split("&")]
        values = [user, password, query, *(value for _, _, value in pairs)]
        values += [part for value in headers.values() for part in (value, value.rpartition(" ")[2])]
        self.spellings = _spellings(values, SHORT_CHARS + 1)
        keys = [value for name, _, value in pairs if KEY.search(name)]
        keys += [value.rpartition(" ")[2] for name, value in headers.items() if KEY.search(name)]
        # A pattern of values that are certainly secrets, which an id never contains.
        self.keys = _either(_spellings([password, *keys], LONG_CHARS))
        self.any = _either(self.spellings)

    def hidden(self, text: str) -> str:
        """Returns the text without secrets, or no text at all if it contains a secret in another encoding."""
        if self.any is None:
            return text
        plain = self.any.sub("…", text)
        if len(text) >= READ_CHARS:
            # The last secret may be truncated.
            plain = plain[: -6 * max(map(len, self.spellings))]
        for _ in range(3):
            if self.any.search(text):
                text = self.any.sub("…", text)
            unescaped = _unescaped(text)
            if self.any.search(unescaped):
                return "… (not shown, for it repeats what was sent)"
            text = unescaped
        return plain


def _spellings(values: Iterable[str], shortest: int) -> list[str]:
    """Returns each value's spellings, forwards and backwards, longest first, ignoring values that are too short."""
    decoded = {text for value in values for text in (value, unquote(value), unquote_plus(value))}
    both = {text for value in decoded if len(value) >= shortest for text in (value, value[::-1])}
    return sorted(both, key=lambda text: (-len(text), text))


def _either(texts: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None


def _unescaped(text: str) -> str:
    """Decodes JSON, Python, URL and HTML escapes in a text."""

    def character(match: re.Match[str]) -> str:
        number = int(match[1], 16)
        return chr(number) if number < 0x110000 else ""

    text = re.sub(r"\\(?:u|x|U)\{?([0-9a-fA-F]{2,8})\}?", character, text)
    return unquote_plus(html.unescape(re.sub(r"\\(.)", r"\1", text)))


PLUGIN = RetrieverPlugin(Options, Http, summary="An HTTP server that accepts queries as JSON.", corpus=False, live=True)

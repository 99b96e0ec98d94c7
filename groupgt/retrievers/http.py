"""A retriever behind HTTP: questions and k are posted as JSON, rankings come back as JSON."""

from __future__ import annotations

import html
import io
import json
import re
import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from annotated_types import Ge, Gt, Le

from groupgt.errors import RetrieverError, display
from groupgt.options import Called, Clash
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin

# Answers of a server that is busy or starting: worth another try.
BUSY = (429, 502, 503, 504)
# Characters of an answer that a message looks at and shows.
READ, LONGEST = 2000, 200
# Characters of a value that is too short to be a secret, and of one that is surely one where its name says so.
SHORT, LONG = 3, 8
KEY = re.compile("auth|key|token|secret|pass|cookie|session", re.IGNORECASE)
# Bytes of headers and of the signs between chunks, beside those of an answer.
HEADERS = 1 << 18


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: http`.

    `{"queries": [text, …], "k": 10}` is posted to `url` with `headers`, `batch` questions at once. The answer is
    `{"results": [ranking, …]}` or the list alone; a ranking holds ids, [id, score] pairs, or objects with `id_field`
    and `score_field`. To be connected, and for each part of an answer, it waits `timeout` seconds; where a request
    fails or the server is busy it is sent again up to `retries` times, after `backoff` × 1, 2, 4 … seconds, or as many
    as the server says in Retry-After, at most `timeout`. With all tries it may take `max_seconds`, and an answer be of
    `max_bytes`. Each run asks anew; where `version` says which state of the server answers, its answers are kept.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    batch: Annotated[int, Ge(1), Le(100_000)] = 32
    timeout: Annotated[float, Called("seconds"), Gt(0), Le(86_400)] = 30.0
    retries: Annotated[int, Ge(0), Le(100)] = 3
    backoff: Annotated[float, Called("seconds"), Ge(0), Le(3600)] = 0.5
    max_seconds: Annotated[float, Called("seconds"), Gt(0), Le(604_800)] = 600.0
    max_bytes: Annotated[int, Ge(1), Le(10**12)] = 100_000_000
    id_field: str = "id"
    score_field: str = "score"
    version: str = ""

    def batch_size(self) -> int:
        return self.batch

    def clashes(self) -> Iterator[Clash]:
        """A URL and headers that can be sent; what is at fault may hold a password or a key, and is not shown."""
        if not _is_url(self.url):
            yield Clash("url", "expected http://host/… or https://host/…, what is special in it percent-encoded")
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
    """Asks a server; whatever is no answer is an error, never an empty ranking."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.options = options
        parts = urlsplit(options.url)
        user, _, place = parts.netloc.rpartition("@")
        self.shown = f"{parts.scheme}://{place}{parts.path}"
        self.url = urlunsplit((parts.scheme, place, parts.path, parts.query, ""))
        headers = {"Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if user else {}
        headers |= options.headers
        self.headers = {"Accept": "application/json", **headers}
        self.secrets = Secrets(user, parts.password or "", parts.query, headers)
        self.limits = Limits(options.max_seconds, options.max_bytes, options.timeout)
        self.pool = _pool(options, self.limits)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """The rankings the server gives."""
        rankings: list[base.Ranking] = []
        for start in range(0, len(queries), self.options.batch):
            rankings += self._asked(list(queries[start : start + self.options.batch]), k)
        return rankings

    def _asked(self, queries: list[str], k: int) -> list[base.Ranking]:
        import urllib3

        options = self.options
        tries = f"{options.retries + 1} {'tries' if options.retries else 'try'} of {options.timeout:g} s"
        self.limits.begin()
        try:
            answer = self.pool.request(
                "POST", self.url, json={"queries": queries, "k": k}, headers=self.headers, decode_content=False
            )
            content = self._unpacked(answer.data, answer.headers.get("Content-Encoding", ""))
        except ExceededError as error:
            raise self._fault(str(error)) from None
        except urllib3.exceptions.MaxRetryError as error:
            if isinstance(_cause(error.reason), ConnectionRefusedError):
                times = f", {options.retries + 1} times" if options.retries else ""
                raise self._fault(f"connection refused{times}; is the server running at this address?") from None
            raise self._fault(f"no answer in {tries}: ", _reason(error.reason)) from None
        except urllib3.exceptions.HTTPError as error:
            raise self._fault("", _reason(error)) from None
        if answer.status != 200:
            again = f" in {tries}" if answer.status in BUSY else ""
            reason = self.secrets.hidden(f" {answer.reason or ''}".rstrip())
            text = " ".join(content[:READ].decode("utf-8", "replace").split())
            raise self._fault(f"expected status 200, found {answer.status}{reason}{again}: ", text or "no text")
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            raise self._fault("expected JSON, found ", repr(content[:READ].decode("utf-8", "replace"))) from None
        rankings = value.get("results") if isinstance(value, dict) else value
        if not isinstance(rankings, list):
            raise self._fault('expected {"results": [ranking, …]}, found ', display(value, READ))
        if len(rankings) != len(queries):
            raise self._fault(f"expected {len(queries):,} rankings, one per query, found {len(rankings):,}")
        return [self._ranking(ranking) for ranking in rankings]

    def _unpacked(self, content: bytes, encoding: str) -> bytes:
        """What an answer holds, which nobody asked to be packed; never more than its ceiling in bytes."""
        coding = encoding.strip().lower()
        if coding in ("", "identity"):
            self.limits.check_size(len(content))
            return content
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise self._fault("expected an answer as it is, or in gzip, found the encoding ", display(encoding))
        unpacked = b""
        while content:
            # gzip or zlib, by what it begins with; a file of gzip may hold several.
            unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            try:
                unpacked += unpacker.decompress(content, self.limits.most_bytes + 1 - len(unpacked))
            except zlib.error:
                raise self._fault(f"expected an answer in {coding}, found other bytes") from None
            self.limits.check_size(len(unpacked))
            if not unpacker.eof:
                raise self._fault(f"expected an answer in {coding}, found one that breaks off")
            content = unpacker.unused_data
        return unpacked

    def _fault(self, what: str, said: str = "") -> RetrieverError:
        """An error, with what the server said cut short and without the secrets it was sent."""
        return RetrieverError(f"{self.shown}: {what}{self.secrets.hidden(said)[:LONGEST]}")

    def _ranking(self, ranking: Any) -> Any:
        """Objects as pairs; what is something else is left for the host to judge."""
        if not isinstance(ranking, list):
            return ranking
        results = [self._pair(cell) if isinstance(cell, dict) else cell for cell in ranking]
        for result in results:
            name = result[0] if isinstance(result, (list, tuple)) and result else result
            if isinstance(name, str) and self.secrets.are_in(name):
                raise self._fault("the id of a result repeats a password or a key that the server was sent")
        return results

    def _pair(self, cell: dict[str, Any]) -> Any:
        if self.options.id_field not in cell:
            what = f"expected a result with {self.options.id_field!r} (id_field), found "
            raise self._fault(what, display(cell, READ))
        name, score = cell[self.options.id_field], cell.get(self.options.score_field)
        return name if self.options.score_field not in cell else (name, score)


# ---- what a server may take --------------------------------------------------------------------------------------


class ExceededError(Exception):
    """An answer that is too large, or a call that takes too long; urllib3 does not try it again."""


@dataclass(eq=False)
class Limits:
    """How long a call may take, with all its tries, how large an answer may be, and how long each part may take."""

    most_seconds: float
    most_bytes: int
    timeout: float
    end: float = 0.0

    def begin(self) -> None:
        """A call begins."""
        self.end = time.monotonic() + self.most_seconds

    def wait(self) -> float:
        """How long the next part may take; raises `ExceededError` where no time is left."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise ExceededError(f"no whole answer within {self.most_seconds:g} s (max_seconds)")
        return min(self.timeout, left)

    def check_size(self, size: int) -> None:
        """Raises `ExceededError` for an answer that is too large."""
        if size > self.most_bytes:
            raise ExceededError(f"the answer is larger than {self.most_bytes:,} bytes (max_bytes)")


class _Stream(io.RawIOBase):
    """What comes from a socket, under limits: a server that sends a byte now and then does not hold us for ever."""

    def __init__(self, stream: io.RawIOBase, socket: Any, limits: Limits) -> None:
        self.stream, self.socket, self.limits, self.size = stream, socket, limits, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.socket.settimeout(self.limits.wait())
        count = self.stream.readinto(buffer)
        self.size += count or 0
        self.limits.check_size(self.size - HEADERS)
        return count

    def close(self) -> None:
        self.stream.close()
        super().close()


class _Buffer(io.BufferedReader):
    """Reads no more at once than an answer may be: what is asked for is allotted before a byte of it is there."""

    limits: Limits

    def read(self, size: int | None = -1) -> bytes:
        self.limits.check_size(size or 0)
        return super().read(size)


def _pool(options: Options, limits: Limits) -> Any:
    """Connections that hold to the limits, and try again as the options say."""
    import http.client

    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Response(http.client.HTTPResponse):
        def __init__(self, sock: Any, *arguments: Any, **keywords: Any) -> None:
            super().__init__(sock, *arguments, **keywords)
            buffer = _Buffer(_Stream(self.fp.detach(), sock, limits))
            buffer.limits = limits
            self.fp = buffer

        def begin(self) -> None:
            super().begin()
            limits.check_size(self.length or 0)

    class Plain(HTTPConnection):
        response_class = Response

        def connect(self) -> None:
            self.timeout = limits.wait()
            super().connect()

    class Secure(HTTPSConnection):
        response_class = Response

        def connect(self) -> None:
            self.timeout = limits.wait()
            super().connect()

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    pool = urllib3.PoolManager(retries=_retry(options, limits), timeout=urllib3.Timeout(total=options.timeout))
    pool.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return pool


def _retry(options: Options, limits: Limits) -> Any:
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader
    from urllib3.response import BaseHTTPResponse

    class Patient(Retry):
        """Waits before the first repetition too, and never longer than it is told to."""

        def get_backoff_time(self) -> float:
            left = limits.end - time.monotonic()
            return max(0.0, min(float(self.backoff_max), options.backoff * 2.0 ** (len(self.history) - 1), left))

        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            try:
                seconds = super().get_retry_after(response)
            except (InvalidHeader, ValueError, OverflowError):
                return None  # what cannot be read says nothing
            return None if seconds is None else min(seconds, limits.wait())

    return Patient(
        total=options.retries,
        status_forcelist=BUSY,
        allowed_methods=None,
        raise_on_status=False,
        redirect=0,
        raise_on_redirect=False,
    )


def _cause(error: BaseException | None) -> BaseException | None:
    """What lies behind an error: of one that urllib3 raises, the error of the operating system."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def _reason(error: object) -> str:
    """What urllib3 says, without the object it says it of."""
    text = re.sub(r" \((?:connect|read) timeout=.*\)$", "", str(error))
    return text.split(">: ", 1)[-1] if ">: " in text else text.split("): ", 1)[-1]


# ---- what a server was sent --------------------------------------------------------------------------------------


class Secrets:
    """Passwords and keys that a server was sent, which reach no message and no result where it repeats them.

    >>> Secrets("", "pass/word", "", {}).hidden("no such user: PASS/WORD, or drow/ssap")
    'no such user: …, or …'
    """

    def __init__(self, user: str, password: str, query: str, headers: Mapping[str, str]) -> None:
        pairs = [pair.partition("=") for pair in query.split("&")]
        values = [user, password, query, *(value for _, _, value in pairs)]
        values += [part for value in headers.values() for part in (value, value.rpartition(" ")[2])]
        self.spellings = _spellings(values, SHORT + 1)
        keys = [value for name, _, value in pairs if KEY.search(name)]
        keys += [value.rpartition(" ")[2] for name, value in headers.items() if KEY.search(name)]
        self.keys = _either(_spellings([password, *keys], LONG))
        self.any = _either(self.spellings)

    def hidden(self, text: str) -> str:
        """A text without them; where one stands in it in other signs, nothing of the text."""
        if self.any is None:
            return text
        plain = self.any.sub("…", text)
        if len(text) >= READ:
            # The last of them may be cut short.
            plain = plain[: -6 * max(map(len, self.spellings))]
        for _ in range(3):
            if self.any.search(text):
                text = self.any.sub("…", text)
            unescaped = _unescaped(text)
            if self.any.search(unescaped):
                return "… (not shown, for it repeats what was sent)"
            text = unescaped
        return plain

    def are_in(self, name: str) -> bool:
        """Whether one that is surely a secret stands in an id."""
        return self.keys is not None and self.keys.search(name) is not None


def _spellings(values: Iterable[str], shortest: int) -> list[str]:
    """How each may be repeated, forwards and backwards, the longest first; what is shorter is no secret."""
    decoded = {text for value in values for text in (value, unquote(value), unquote_plus(value))}
    both = {text for value in decoded if len(value) >= shortest for text in (value, value[::-1])}
    return sorted(both, key=lambda text: (-len(text), text))


def _either(texts: list[str]) -> re.Pattern[str] | None:
    """What finds any of these, in capitals or not."""
    return re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None


def _unescaped(text: str) -> str:
    """A text without escapes: of JSON, of Python, of URLs and of HTML."""
    text = re.sub(r"\\(?:u|x|U)\{?([0-9a-fA-F]{2,8})\}?", lambda found: _character(found[1]), text)
    return unquote_plus(html.unescape(re.sub(r"\\(.)", r"\1", text)))


def _character(digits: str) -> str:
    number = int(digits, 16)
    return chr(number) if number < 0x110000 else ""


PLUGIN = RetrieverPlugin(
    Options,
    Http,
    summary="A server that is posted queries as JSON.",
    corpus=False,
    modules={"urllib3": "http"},
    live=True,
)

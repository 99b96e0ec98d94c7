"""A retriever that calls an HTTP server. The retriever posts queries and k as JSON, and receives rankings as JSON."""

from __future__ import annotations

import http.client
import json
import re
import time
import weakref
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated
from urllib.parse import quote, unquote, urlsplit

from annotated_types import Ge, Le

from groupgt.errors import RetrieverError, display
from groupgt.model.values import as_json
from groupgt.options import Called, Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import SHOWN_CHARS, IdField, RetrieverPlugin, ScoreField, Seconds, Send, as_pairs

# Status codes of a server that is busy or starting: the request is retried.
BUSY = (429, 502, 503, 504)
# Default headers of each request, unless `headers` overrides them.
HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "groupgt"}


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: http`, which posts `{"queries": [text, …], "k": 10}` and a list for each column in `send`.

    The server returns `{"results": [ranking, …]}`, or only the list. A ranking contains ids, [id, score] pairs, or
    objects. The server is queried on every run. Set its `version` next to `use` to cache responses.
    """

    url: Annotated[str, Doc("URL to which groupgt posts requests.")]
    headers: Annotated[dict[str, str], Doc("Headers for each request.")] = field(default_factory=dict)
    batch: Annotated[int, Ge(1), Le(100_000), Doc("Number of queries per request.")] = 32
    timeout: Annotated[
        Seconds,
        Doc("Seconds to wait for a connection and for each part of a response, and the longest wait before a retry."),
    ] = 30.0
    retries: Annotated[int, Ge(0), Le(100), Doc("Number of retries when a request fails or the server is busy.")] = 3
    backoff: Annotated[
        float,
        Called("seconds"),
        Ge(0),
        Le(3600),
        Doc("Seconds before the first retry, doubled each time, unless the server sends Retry-After."),
    ] = 0.5
    send: Send = field(default_factory=list)
    id_field: IdField = "id"
    score_field: ScoreField = "score"

    def batch_size(self) -> int:
        return self.batch

    def clashes(self) -> Iterator[Clash]:
        """Yield errors for an invalid URL or headers, without showing the URL or values of headers."""
        if not is_url(self.url):
            yield Clash("url", "expected http://host/… or https://host/…, with special characters percent-encoded")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", name, re.ASCII):
                yield Clash("headers", f"expected the name of a header, found {name!r}")
            elif not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", value):
                yield Clash("headers", f"expected one line of Latin characters as the value of {name}")


def is_url(text: str) -> bool:
    """Return whether text is an HTTP address."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and text.isprintable() and " " not in text


class Http:
    """A client for a retrieval server. An invalid response is always an error, never an empty ranking."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.options = options
        url = urlsplit(options.url)
        user, _, host = url.netloc.rpartition("@")
        self.shown = f"{url.scheme}://{host}{url.path}"
        self.target = quote(f"{url.path or '/'}?{url.query}".rstrip("?"), safe="!$%&'()*+,/:;=?@[]~")
        headers = {"Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if user else {}
        headers |= options.headers
        names = {name.lower() for name in headers}
        self.headers = {name: value for name, value in HEADERS.items() if name.lower() not in names} | headers
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self.connection = kind(url.hostname or "", url.port, timeout=options.timeout)
        weakref.finalize(self, self.connection.close)
        self.tries = f"{options.retries + 1} {'tries' if options.retries else 'try'} of {options.timeout:g} s"

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the rankings from the server. groupgt passes at most `batch` queries at a time."""
        sent = {"queries": list(queries), "k": k, **base.columns_of(queries)}
        response, content = self._answer(as_json(sent).encode())
        text = content.decode("utf-8", "replace")
        if response.status != 200:
            again = f" in {self.tries}" if response.status in BUSY else ""
            status = f"{response.status} {response.reason}".rstrip() + again
            shown = " ".join(text.split())[:SHOWN_CHARS] or "no text"
            raise self._fault(f"expected status 200, found {status}: {shown}")
        try:
            value = json.loads(content)
        except ValueError:
            raise self._fault(f"expected JSON, found {display(text, SHOWN_CHARS)}") from None
        rankings = value.get("results") if isinstance(value, dict) else value
        if not isinstance(rankings, list):
            raise self._fault(f'expected {{"results": [ranking, …]}}, found {display(value, SHOWN_CHARS)}')
        if len(rankings) != len(queries):
            raise self._fault(f"expected {len(queries):,} rankings, one per query, found {len(rankings):,}")
        try:
            return [as_pairs(ranking, self.options.id_field, self.options.score_field) for ranking in rankings]
        except RetrieverError as error:
            raise self._fault(str(error)) from None

    def _answer(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """Return the final response and its content, retrying if a request fails or the server is busy."""
        tries_left, seconds = self.options.retries, self.options.backoff
        while True:
            retry_after, was_open = 0.0, self.connection.sock is not None
            try:
                response, content = self._post(body)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                if was_open and isinstance(error, ConnectionError):
                    continue  # the server had closed the idle connection
                if not tries_left:
                    raise self._no_answer(error) from None
            else:
                if response.status not in BUSY or not tries_left:
                    return response, content
                retry_after = min(self.options.timeout, _retry_after(response.getheader("Retry-After", "")))
            time.sleep(retry_after or seconds)
            tries_left, seconds = tries_left - 1, 2 * seconds

    def _post(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """Send one request. The connection stays open for the next request."""
        try:
            self.connection.request("POST", self.target, body, self.headers)
            with self.connection.getresponse() as response:
                return response, response.read()
        except BaseException:
            self.connection.close()
            raise

    def _no_answer(self, error: Exception) -> RetrieverError:
        if isinstance(error, ConnectionRefusedError):
            times = f", {self.options.retries + 1} times" if self.options.retries else ""
            return self._fault(f"connection refused{times}; is the server running at this address?")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if type(error) is http.client.BadStatusLine:
            reason = f"expected HTTP, found {reason!r}"
        return self._fault(f"no answer in {self.tries}: {reason[:SHOWN_CHARS]}")

    def _fault(self, what: str) -> RetrieverError:
        return RetrieverError(f"{self.shown}: {what}")


def _retry_after(text: str) -> float:
    """Parse a Retry-After header (a number or a date) and return the seconds to wait, or 0 if it is invalid."""
    text = text.strip()
    try:
        return float(text) if text.isdecimal() else max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


PLUGIN = RetrieverPlugin(Options, Http, summary="An HTTP server that accepts queries as JSON.", corpus=False, live=True)

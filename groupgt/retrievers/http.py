"""A retriever behind HTTP: questions and k are posted as JSON, rankings come back as JSON."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from annotated_types import Ge, Gt, Le

from groupgt.errors import RetrieverError
from groupgt.model.validity import shown
from groupgt.options import Called, Clash
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin

# Answers of a server that is busy or starting: worth another try.
BUSY = (429, 502, 503, 504)
# Characters of an answer that a message shows, and of a value too short to be a secret.
LONGEST, SHORT = 200, 3


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: http`.

    `{"queries": [text, …], "k": 10}` is posted to `url` with `headers`, `batch` questions at once. The answer is
    `{"results": [ranking, …]}` or the list alone; a ranking holds ids, [id, score] pairs, or objects with `id_field`
    and `score_field`. To be connected, and for each part of an answer, it waits `timeout` seconds; where a request
    fails or the server is busy it is sent again up to `retries` times, after `backoff` × 1, 2, 4 … seconds, or as many
    as the server says in Retry-After, at most `timeout`.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    batch: Annotated[int, Ge(1), Le(100_000)] = 32
    timeout: Annotated[float, Called("seconds"), Gt(0), Le(86_400)] = 30.0
    retries: Annotated[int, Ge(0), Le(100)] = 3
    backoff: Annotated[float, Called("seconds"), Ge(0), Le(3600)] = 0.5
    id_field: str = "id"
    score_field: str = "score"

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


def _retry(options: Options) -> Any:
    from urllib3 import Retry
    from urllib3.response import BaseHTTPResponse

    class Patient(Retry):
        """Waits before the first repetition too, and never longer than it is told to."""

        def get_backoff_time(self) -> float:
            return min(float(self.backoff_max), options.backoff * 2.0 ** (len(self.history) - 1))

        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, options.timeout)

    return Patient(
        total=options.retries,
        status_forcelist=BUSY,
        allowed_methods=None,
        raise_on_status=False,
        redirect=0,
        raise_on_redirect=False,
    )


class Http:
    """Asks a server; whatever is no answer is an error, never an empty ranking."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        import urllib3

        self.options = options
        parts = urlsplit(options.url)
        user, _, place = parts.netloc.rpartition("@")
        self.shown = f"{parts.scheme}://{place}{parts.path}"
        self.url = urlunsplit((parts.scheme, place, parts.path, parts.query, ""))
        own = {"Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if user else {}
        own |= options.headers
        self.headers = {"Accept": "application/json", **own}
        # Neither a password nor a key reaches a message, where a server repeats what it was sent.
        secrets = [
            user,
            parts.password or "",
            parts.query,
            *(each.partition("=")[2] for each in parts.query.split("&")),
        ]
        secrets += [part for value in own.values() for part in (value, value.rpartition(" ")[2])]
        decoded = {text for each in secrets for text in (each, unquote(each), unquote_plus(each))}
        self.secrets = sorted((each for each in decoded if len(each) > SHORT), key=len, reverse=True)
        self.pool = urllib3.PoolManager(retries=_retry(options), timeout=urllib3.Timeout(total=options.timeout))

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """The rankings the server gives."""
        rankings: list[base.Ranking] = []
        for start in range(0, len(queries), self.options.batch):
            rankings += self._asked(list(queries[start : start + self.options.batch]), k)
        return rankings

    def _asked(self, queries: list[str], k: int) -> list[base.Ranking]:
        import urllib3

        options = self.options
        tries = f"{options.retries + 1} tries of {options.timeout:g} s"
        try:
            answer = self.pool.request(
                "POST",
                self.url,
                json={"queries": queries, "k": k},
                headers=self.headers,
            )
        except urllib3.exceptions.MaxRetryError as error:
            raise self._fault(f"no answer in {tries}: {_reason(error.reason)}") from None
        except urllib3.exceptions.HTTPError as error:
            raise self._fault(_reason(error)) from None
        if answer.status != 200:
            text = " ".join(answer.data[:2000].decode("utf-8", "replace").split())
            again = f" in {tries}" if answer.status in BUSY else ""
            found = f"{answer.status} {answer.reason or ''}".rstrip()
            raise self._fault(f"expected status 200, found {found}{again}: ", text or "no text")
        try:
            value = json.loads(answer.data)
        except (ValueError, RecursionError):
            raise self._fault("expected JSON, found ", repr(answer.data[:2000].decode("utf-8", "replace"))) from None
        rankings = value.get("results") if isinstance(value, dict) else value
        if not isinstance(rankings, list):
            raise self._fault('expected {"results": [ranking, …]}, found ', shown(value, 2000))
        if len(rankings) != len(queries):
            raise self._fault(f"expected {len(queries):,} rankings, one a query, found {len(rankings):,}")
        return [self._ranking(each) for each in rankings]

    def _fault(self, what: str, said: str = "") -> RetrieverError:
        """An error, with what the server said cut short and without the secrets it was sent."""
        for each in self.secrets:
            said = said.replace(each, "…")
        return RetrieverError(f"{self.shown}: {what}{said[:LONGEST]}")

    def _ranking(self, ranking: Any) -> Any:
        """Objects as pairs; what is something else is left for the host to judge."""
        if not isinstance(ranking, list):
            return ranking
        return [self._pair(cell) if isinstance(cell, dict) else cell for cell in ranking]

    def _pair(self, cell: dict[str, Any]) -> Any:
        if self.options.id_field not in cell:
            raise self._fault(f"expected a result with {self.options.id_field!r} (id_field), found ", shown(cell, 2000))
        name, score = cell[self.options.id_field], cell.get(self.options.score_field)
        return name if self.options.score_field not in cell else (name, score)


def _reason(error: object) -> str:
    """What urllib3 says, without the object it says it of."""
    text = re.sub(r" \((?:connect|read) timeout=.*\)$", "", str(error))
    return text.split(">: ", 1)[-1] if ">: " in text else text.split("): ", 1)[-1]


PLUGIN = RetrieverPlugin(
    Options,
    Http,
    summary="A server that is posted questions as JSON.",
    corpus=False,
    modules={"urllib3": "http"},
    live=True,
)

"""A retriever behind HTTP: questions and k are posted as JSON, rankings come back as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from groupgt.errors import ConfigError, Faults, RetrieverError
from groupgt.model.ids import shown
from groupgt.retrievers import base

__all__ = ["Http", "Options"]

# Answers of a server that is busy or starting: worth another try.
BUSY = (429, 502, 503, 504)


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: http`.

    `{"queries": [text, …], "k": 10}` is posted to `url` with `headers`, `batch` questions at once. The answer is
    `{"results": [ranking, …]}` or the list alone; a ranking holds ids, [id, score] pairs, or objects with `id_field`
    and `score_field`. A request may take `timeout` seconds; where it fails or the server is busy it is sent again up to
    `retries` times, after `backoff` × 1, 2, 4 … seconds.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    batch: int = 32
    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.5
    id_field: str = "id"
    score_field: str = "score"

    def batch_size(self) -> int:
        return self.batch

    def __post_init__(self) -> None:
        faults = Faults()
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            faults.add("url", f"expected http://… or https://…, found {self.url!r}")
        if not 1 <= self.batch <= 100_000:
            faults.add("batch", f"expected a number from 1 to 100,000, found {self.batch}")
        if not 0 < self.timeout <= 86_400:
            faults.add("timeout", f"expected seconds above 0 and at most 86,400, found {self.timeout:g}")
        if not 0 <= self.retries <= 100:
            faults.add("retries", f"expected a number from 0 to 100, found {self.retries}")
        if not 0 <= self.backoff <= 3600:
            faults.add("backoff", f"expected seconds from 0 to 3,600, found {self.backoff:g}")
        faults.stop(ConfigError)


class Http:
    """Asks a server; whatever is no answer is an error, never an empty ranking."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        import urllib3

        self.options = options
        parts = urlsplit(options.url)
        # Neither a password nor a key in the query reaches a message.
        self.shown = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        retry = urllib3.Retry(
            total=options.retries,
            backoff_factor=options.backoff / 2,  # urllib3 waits factor × 2, 4, 8 …
            status_forcelist=BUSY,
            allowed_methods=None,
            raise_on_status=False,
            redirect=0,
            raise_on_redirect=False,
        )
        self.pool = urllib3.PoolManager(retries=retry, timeout=urllib3.Timeout(total=options.timeout))

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
                options.url,
                json={"queries": queries, "k": k},
                headers={"Accept": "application/json", **options.headers},
            )
        except urllib3.exceptions.MaxRetryError as error:
            raise RetrieverError(f"{self.shown}: no answer in {tries}: {_reason(error.reason)}") from None
        except urllib3.exceptions.HTTPError as error:
            raise RetrieverError(f"{self.shown}: {_reason(error)}") from None
        if answer.status != 200:
            text = answer.data[:200].decode("utf-8", "replace").strip()
            again = f" in {tries}" if answer.status in BUSY else ""
            raise RetrieverError(
                f"{self.shown}: expected status 200, found {answer.status} {answer.reason or ''}{again}: "
                f"{text or 'no text'}"
            )
        try:
            value = json.loads(answer.data)
        except (ValueError, RecursionError):
            text = answer.data[:80].decode("utf-8", "replace")
            raise RetrieverError(f"{self.shown}: expected JSON, found {text!r}") from None
        rankings = value.get("results") if isinstance(value, dict) else value
        if not isinstance(rankings, list):
            raise RetrieverError(f'{self.shown}: expected {{"results": [ranking, …]}}, found {shown(value)}')
        if len(rankings) != len(queries):
            raise RetrieverError(
                f"{self.shown}: expected {len(queries):,} rankings, one a query, found {len(rankings):,}"
            )
        return [self._ranking(each) for each in rankings]

    def _ranking(self, ranking: Any) -> Any:
        """Objects as pairs; what is something else is left for the host to judge."""
        if not isinstance(ranking, list):
            return ranking
        return [self._pair(cell) if isinstance(cell, dict) else cell for cell in ranking]

    def _pair(self, cell: dict[str, Any]) -> Any:
        if self.options.id_field not in cell:
            raise RetrieverError(
                f"{self.shown}: expected a result with {self.options.id_field!r} (id_field), found {shown(cell)}"
            )
        name, score = cell[self.options.id_field], cell.get(self.options.score_field)
        return name if self.options.score_field not in cell else (name, score)


def _reason(error: object) -> str:
    """What urllib3 says, without the object it says it of."""
    text = str(error)
    return text.split(">: ", 1)[-1] if ">: " in text else text.split("): ", 1)[-1]

"""Stores page data in blocks of compressed, base64-encoded JSON, and selects details to fit a size limit."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from groupgt.render.page.data import Dataset, Detail
from groupgt.render.tables import fixed

# Number of queries with details in one block, which is opened when one of them is requested.
BLOCK_QUERIES = 40
# Length in characters to which long texts are cut if not everything fits.
SHORT_CHARS = 300
# Size of the markup around a block.
WRAPPING = 80
# Compression level: 9 takes twice as long as 6, for pages that are 1 % smaller.
LEVEL = 6
KINDS = ("first", "again", "irrelevant")


def block(value: Any) -> bytes:
    """Encodes a value as a block."""
    return deflated(json.dumps(value, separators=(",", ":"), allow_nan=False))


def deflated(text: str) -> bytes:
    """Compresses text and encodes it in base64."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL))


def opened(data: bytes) -> Any:
    """Decodes a block."""
    return json.loads(zlib.decompress(base64.b64decode(data)))


def short(value: float) -> float | int:
    """Rounds a weight or grade to six significant digits, which the page displays unchanged."""
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def score_texts(scores: Sequence[float]) -> list[str]:
    """Formats the scores of a ranking with equally many decimals, so that the largest score has four digits.

    >>> score_texts([123.4, 5.678]), score_texts([1e-7, 2e-8]), score_texts([0.0, 0.0])
    (['123.4', '5.7'], ['1e-07', '2e-08'], ['0', '0'])
    """
    largest = max(map(abs, scores), default=0.0)
    if not 0.001 <= largest < 1e15:
        return [f"{score:.4g}" for score in scores]
    decimals = max(0, 3 - math.floor(math.log10(max(largest, 0.1))))
    return [fixed(score, decimals) for score in scores]


@dataclass
class Chunk:
    """Blocks for some queries: details, texts of important passages (alternatives and hits), and all other texts."""

    places: list[int]
    details: bytes
    matter: bytes
    others: bytes
    # Number of other texts.
    others_count: int
    cut: int = 0
    kept: bool = True

    @property
    def size(self) -> int:
        """The size of this chunk in the page."""
        return sum(len(part) + WRAPPING for part in (self.details, self.matter, self.others) if part)


@dataclass
class Chunks:
    """The query details of a data set in chunks, most informative queries first."""

    chunks: list[Chunk] = field(default_factory=list)
    # The chunk with the text of an id, and whether the text is among those that matter.
    _homes: dict[str, tuple[int, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset) -> Chunks:
        """Encodes all details of a data set, before anything is omitted."""
        chunks = cls()
        for some in _taken(dataset["details"], BLOCK_QUERIES):
            chunks.chunks.append(chunks._chunk(some, dataset["passages"]))
        return chunks

    def _chunk(self, details: list[Detail], passages: Mapping[str, str]) -> Chunk:
        matter: dict[str, str] = {}
        others: dict[str, str] = {}
        number = len(self.chunks)
        rows = [self._row(detail, passages, number, matter, others) for detail in details]
        return Chunk(
            [detail["question"] for detail in details],
            block(rows),
            block(matter) if matter else b"",
            block(others) if others else b"",
            len(others),
        )

    def _row(
        self,
        detail: Detail,
        passages: Mapping[str, str],
        number: int,
        matter: dict[str, str],
        others: dict[str, str],
    ) -> list[Any]:
        """Encodes one query; each id is stored once and referred to by its index."""
        places: dict[str, int] = {}

        def at(name: str) -> int:
            return places.setdefault(name, len(places))

        groups = [
            [
                group["name"],
                short(group["weight"]),
                [[at(name), short(grade)] for name, grade in group["alternatives"]],
                *([group["cannot"]] if group["cannot"] else []),
            ]
            for group in detail["groups"]
        ]
        rankings: list[list[Any] | None] = []
        for ranking in detail["rankings"]:
            if ranking is None:
                rankings.append(None)
                continue
            ids = [at(name) for name in ranking["ids"]]
            marks = [[rank, KINDS.index(kind), met] for rank, kind, met in ranking["marks"]]
            far = {str(rank): at(name) for rank, name in ranking["far"].items()}
            scores = None if ranking["scores"] is None else score_texts(ranking["scores"])
            rankings.append([ranking["results"], ids, scores, marks, far])
        important = _important(detail)
        homes = [self._home(name, name in important, passages, number, matter, others) for name in places]
        return [detail["question"], groups, list(places), homes, rankings, detail["worked"]]

    def _home(
        self,
        name: str,
        important: bool,
        passages: Mapping[str, str],
        number: int,
        matter: dict[str, str],
        others: dict[str, str],
    ) -> int:
        """Returns the index of the chunk that stores a passage text (-1 for no text); important texts share a block."""
        home = self._homes.get(name)
        if home is not None and (home[1] or not important):
            return home[0]
        text = passages.get(name)
        if not text:
            return -1
        (matter if important else others)[name] = text
        self._homes[name] = number, important
        return number

    @property
    def size(self) -> int:
        """The total size of all kept chunks in the page."""
        return sum(chunk.size for chunk in self.chunks if chunk.kept)


def fit(every: list[Chunks], room: int) -> list[str]:
    """Omits the least informative details until the page fits; returns descriptions of what was omitted."""
    over = sum(chunks.size for chunks in every) - room
    # Begin with the last chunks of every data set: they contain the least informative queries.
    last_first = [chunk for row in _in_turn([list(reversed(chunks.chunks)) for chunks in every]) for chunk in row]
    texts = cut = queries = 0
    for chunk in last_first:
        if over <= 0:
            break
        if chunk.others:
            over -= len(chunk.others) + WRAPPING
            texts += chunk.others_count
            chunk.others = b""
    for chunk in last_first:
        if over <= 0:
            break
        if chunk.matter:
            over -= _shorten(chunk)
            cut += chunk.cut
    for chunk in last_first:
        if over <= 0:
            break
        over -= chunk.size
        chunk.kept = False
        queries += len(chunk.places)
    left_out = []
    if texts:
        left_out.append(f"{texts:,} texts of results without a hit")
    if cut:
        left_out.append(f"the ends of {cut:,} texts of more than {SHORT_CHARS:,} characters")
    if queries:
        left_out.append(f"the results of {queries:,} queries on which systems differ least")
    return left_out


def _shorten(chunk: Chunk) -> int:
    """Shortens long texts in a chunk; returns the number of bytes saved."""
    before = len(chunk.matter)
    texts: dict[str, str] = opened(chunk.matter)
    chunk.cut = sum(len(text) > SHORT_CHARS for text in texts.values())
    if chunk.cut:
        shorter = {
            name: text if len(text) <= SHORT_CHARS else text[: SHORT_CHARS - 1] + "…" for name, text in texts.items()
        }
        chunk.matter = block(shorter)
    return before - len(chunk.matter)


def _important(detail: Detail) -> set[str]:
    """Returns the ids of important passages: alternatives, and results that are hits or were judged."""
    ids = {name for group in detail["groups"] for name, _ in group["alternatives"]}
    for ranking in detail["rankings"]:
        if ranking is not None:
            length = len(ranking["ids"])
            ids.update(ranking["ids"][rank - 1] for rank, _, _ in ranking["marks"] if rank <= length)
            ids.update(ranking["far"].values())
    return ids


def _taken(details: Iterable[Detail], size: int) -> Iterator[list[Detail]]:
    rest = iter(details)
    while some := list(islice(rest, size)):
        yield some


def _in_turn(lists: list[list[Chunk]]) -> Iterator[list[Chunk]]:
    """Yields the first item of every list, then the second of every list, and so on."""
    for place in range(max(map(len, lists), default=0)):
        yield [row[place] for row in lists if place < len(row)]

"""Store page data in blocks of compressed, base64-encoded JSON, and select details to fit a size limit."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from groupgt.model.values import nulls
from groupgt.render.page.data import Dataset
from groupgt.render.tables import fixed

# Number of queries with details in one block, which is opened when one of them is requested.
BLOCK_QUERIES = 40
# Length in characters to which long texts are cut if not everything fits.
SHORT_CHARS = 300
# Size of the markup around a block.
WRAPPING = 80
# Compression level: 9 takes twice as long as 6, for pages that are 1% smaller.
LEVEL = 6


def block(value: Any) -> bytes:
    """Encode a value as a block. Undefined numbers become null."""
    try:
        return deflated(json.dumps(value, separators=(",", ":"), allow_nan=False))
    except ValueError:
        return block(nulls(value))


def deflated(text: str) -> bytes:
    """Compress text and encode it in base64."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL))


def opened(data: bytes) -> Any:
    """Decode a block."""
    return json.loads(zlib.decompress(base64.b64decode(data)))


def short(value: float) -> float | int:
    """Round a weight or grade to six significant digits, which the page displays unchanged."""
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def score_texts(scores: Sequence[float]) -> list[str]:
    """Format the scores of a ranking with the same number of decimals, so that the largest score has four digits."""
    largest = max(map(abs, scores), default=0.0)
    if not 0.001 <= largest < 1e15:
        return [f"{score:.4g}" for score in scores]
    decimals = max(0, 3 - math.floor(math.log10(max(largest, 0.1))))
    return [fixed(score, decimals) for score in scores]


@dataclass
class Chunk:
    """Blocks for a few queries: details, the text of important passages (alternatives and hits), and all other text."""

    places: list[int]
    details: bytes
    matter: bytes
    others: bytes
    others_count: int
    kept: bool = True

    @property
    def size(self) -> int:
        """The size of this chunk in the page."""
        return sum(len(part) + WRAPPING for part in (self.details, self.matter, self.others) if part)


def chunks_of(dataset: Dataset) -> list[Chunk]:
    """Encode all details of a data set, most informative queries first, before anything is omitted."""
    chunks: list[Chunk] = []
    passages, details = dataset["passages"], iter(dataset["details"])
    # The chunk with the text of an id, and whether the text is among those that matter.
    homes: dict[str, tuple[int, bool]] = {}
    while some := list(islice(details, BLOCK_QUERIES)):
        matter: dict[str, str] = {}
        others: dict[str, str] = {}
        rows = []
        for each in some:
            for name in each.names:
                is_important = name in each.important
                is_stored = name in homes and (homes[name][1] or not is_important)
                if not is_stored and (text := passages.get(name)):
                    (matter if is_important else others)[name] = text
                    homes[name] = len(chunks), is_important
            of_names = [homes[name][0] if name in homes else -1 for name in each.names]
            rows.append([each.question, each.groups, each.names, of_names, each.rankings, each.worked])
        matter_block, others_block = (block(texts) if texts else b"" for texts in (matter, others))
        places = [each.question for each in some]
        chunks.append(Chunk(places, block(rows), matter_block, others_block, len(others)))
    return chunks


def fit(every: Sequence[Sequence[Chunk]], room: int) -> list[str]:
    """Omit the least informative details until the page fits, and return descriptions of what was omitted."""
    over = sum(chunk.size for chunks in every for chunk in chunks) - room
    # Begin with the last chunks of every data set: they contain the least informative queries.
    last_first = [chunk for row in zip_longest(*map(reversed, every)) for chunk in row if chunk is not None]
    texts = cut = queries = 0
    for chunk in last_first:
        if over > 0 and chunk.others:
            over -= len(chunk.others) + WRAPPING
            texts += chunk.others_count
            chunk.others = b""
    for chunk in last_first:
        if over > 0 and chunk.matter:
            before: dict[str, str] = opened(chunk.matter)
            if long := sum(len(text) > SHORT_CHARS for text in before.values()):
                over -= len(chunk.matter)
                chunk.matter = block({name: _cut(text) for name, text in before.items()})
                over += len(chunk.matter)
                cut += long
    for chunk in last_first:
        if over > 0:
            over -= chunk.size
            chunk.kept = False
            queries += len(chunk.places)
    left_out = {
        f"the text of {texts:,} results without a hit": texts,
        f"the ends of {cut:,} passages longer than {SHORT_CHARS:,} characters": cut,
        f"the results of {queries:,} queries on which systems differ least": queries,
    }
    return [text for text, count in left_out.items() if count]


def _cut(text: str) -> str:
    return text if len(text) <= SHORT_CHARS else text[: SHORT_CHARS - 1] + "…"

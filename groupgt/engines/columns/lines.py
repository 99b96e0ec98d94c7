"""The carrier for a TREC file that is not loaded. Compiled code compares lines, one part of the file at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from types import ModuleType
from typing import NamedTuple, TypeVar

import numpy as np

from groupgt import native
from groupgt.engines.base import TOP, Flat, InvalidRowError, Labelled, LocalCarrier, RankedHits, matched, warn_if_empty
from groupgt.engines.choice import Engine
from groupgt.labellers.base import Labeller, Matches
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking
from groupgt.model.run import Block, Lines, Run
from groupgt.runtime import processors

T = TypeVar("T")
# Bytes scanned at a time: few if the lines of a query are contiguous, more if each part contains every query.
PART, SCATTERED_PART = 1 << 22, 1 << 24
# The start of a line, or of the next query, is searched for in a window of this many bytes, then in larger ones.
WINDOW, WIDEST_WINDOW = 1 << 16, 1 << 26
# Bytes of a line in a sample.
USUAL_LINE = 50


class LineCarrier(LocalCarrier):
    """Accesses results in the lines of a TREC file. All other operations use its `columns`."""

    def __init__(self, run: Run, lines: Lines) -> None:
        self.run, self.lines = run, lines

    @property
    def columns(self) -> LocalCarrier:
        """The carrier for the same results as columns or lists, or for the slow reader's results if needed."""
        from groupgt.engines.columns.carrier import row_carrier_of

        return row_carrier_of(self.run.resolved.loaded)

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        matches = matched(truth, labeller, policy, lambda rules: self.flat(truth, rules, "text"))
        try:
            ranked = self._ranked_hits(truth, matches, policy)
        except InvalidRowError:
            # The slow reader reports what is invalid; if nothing is, `columns` are those that it read.
            _ = self.lines.checked
            ranked = None
        if ranked is None:
            return self.columns.label(truth, labeller, policy, engine)
        warn_if_empty(ranked, self.run.title)
        return ranked.labelled(truth, labeller, matches, policy)

    def _ranked_hits(self, truth: GroundTruth, matches: Matches, policy: Policy) -> RankedHits | None:
        """Return the hits with their ranks, or None if the compiled module does not support the policy or an id."""
        index = matches.compiled if policy.duplicates in ("penalize", "keep") else None
        if native.built is None or index is None:
            return None
        scan = _Scan(native.built, self.lines, index, len(truth), by_id=policy.ties == "id")
        hits = scan.together()
        if hits is None:
            hits = scan.scattered()
        elif not self.lines.blocks:
            self.lines.blocks.update(scan.blocks)
        query, key, rank, low, high = hits.T
        others = [name.decode() for name in scan.extra]
        return RankedHits(query, matches.targets[key], rank, low, high, scan.length, others)

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        return self.columns.rename(truth, labeller, policy)

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        return self.columns.ranking(qid, policy)

    def qids(self) -> list[str]:
        return self.columns.qids()

    def rankings(self, policy: Policy) -> Iterator[tuple[str, Ranking]]:
        return self.columns.rankings(policy)

    def sample(self, limit: int, queries: Collection[str] = ()) -> Mapping[str, Sequence[str]]:
        """Return the ids in the first lines of the file, or of each block, without reading any columns."""
        if self.lines.in_memory:
            return self._sample_of_blocks(limit, queries) if self.lines.blocks else self.columns.sample(limit, queries)
        end = min(self.lines.begin + limit * USUAL_LINE, self.lines.end)
        results: dict[str, list[str]] = {}
        text = bytes(self.lines.part(self.lines.begin, end)).decode(errors="replace")
        # The last line may be cut off.
        for cells in (line.split(None, 3) for line in text.split("\n")[:limit]):
            if len(cells) > 3:
                results.setdefault(cells[0], []).append(cells[2])
        return results

    def _sample_of_blocks(self, limit: int, queries: Collection[str]) -> dict[str, list[str]]:
        """Return the same sample as the carrier for lists."""
        most = max(limit // len(queries), TOP) if queries else limit
        results: dict[str, list[str]] = {}
        for qid in queries or self.lines.blocks:
            block = self.lines.blocks.get(qid) if limit > 0 else None
            ids = [] if block is None else self.lines.column(block, 2, most)
            results[qid] = b"\n".join(ids).decode().split("\n") if ids else []
            limit -= len(ids)
        return results

    def repeating(self, truth: GroundTruth) -> Sequence[int] | None:
        if not self.lines.in_memory:
            return None
        if not self.lines.blocks:
            return self.columns.repeating(truth)
        flagged = [(qid, block) for qid, block in self.lines.blocks.items() if block.repeats]
        return sorted(truth.index[qid] for qid, block in flagged if len(set(self.lines.column(block, 2))) < block.lines)

    def carries(self, field: str) -> bool:
        """Return False without reading any columns, because TREC lines have no additional fields."""
        return False

    def flat(self, truth: GroundTruth, policy: Policy, *fields: str) -> Flat:
        return self.columns.flat(truth, policy, *fields)


class _Part(NamedTuple):
    """The hits in one part of the file, with its judged queries, their line counts, and the ids of other queries."""

    hits: Ints
    query: Ints
    lines: Ints
    extra: dict[bytes, None]
    blocks: list[tuple[str, Block]]


class _Scan:
    """Labels lines in one pass if the lines of each query are contiguous, or in two if they are scattered."""

    def __init__(self, module: ModuleType, lines: Lines, index: bytes, queries: int, *, by_id: bool) -> None:
        self.module, self.lines, self.index, self.queries, self.by_id = module, lines, index, queries, by_id
        self.length = np.zeros(queries, dtype=np.int64)
        self.extra: dict[bytes, None] = {}
        self.blocks: dict[str, Block] = {}

    def hits_of(self, parts: Sequence[_Part]) -> Ints:
        """Return the hits in all parts, and record their queries."""
        for part in parts:
            np.add.at(self.length, part.query, part.lines)
            self.extra.update(part.extra)
        return np.concatenate([part.hits for part in parts])

    def together(self) -> Ints | None:
        """Return query, key, rank and tied ranks of each hit, or None if a query is scattered or too long."""
        try:
            spans = list(pairwise(self.cuts()))
        except InvalidRowError:
            return None
        scan = partial(self.scan, native.CLOSELY if self.lines.in_memory else native.WHOLE, b"")
        seen = np.zeros(self.queries, dtype=np.int64)
        parts: list[_Part] = []
        # Only the first part: enough to recognize a shuffled file.
        for part in chain(map(scan, spans[:1]), _side_by_side(scan, spans[1:])):
            np.add.at(seen, part.query, 1)
            if seen[part.query].max(initial=0) > 1:
                return None
            parts.append(part)
        blocks = list(chain.from_iterable(part.blocks for part in parts))
        self.blocks = dict(blocks)
        if len(self.blocks) < len(blocks):
            self.blocks = {}
        return self.hits_of(parts)

    def scattered(self) -> Ints:
        """Label lines in any order. A second pass counts the results that are better than each hit."""
        spans = list(pairwise(self.cuts(scattered=True)))
        hits = self.hits_of(list(_side_by_side(partial(self.scan, native.FIRST, b""), spans)))
        # Without lines, the second pass returns the order of hits.
        hits = hits[self.scan(native.SECOND, hits.tobytes(), (self.lines.begin, self.lines.begin)).hits[:, 0]]
        counts = np.zeros((len(hits), 3), dtype=np.int64)
        for part in _side_by_side(partial(self.scan, native.SECOND, hits.tobytes()), spans):
            counts += part.hits[:, 1:4]
        query, key = hits[:, 0], hits[:, 1]
        sums = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(counts[:, :2], axis=0)))
        ahead, above = (sums[1:] - sums[np.searchsorted(query, query)]).T
        # Results with equal scores are counted at the first of them.
        equal = counts[np.maximum.accumulate(np.where(counts[:, 2] > 0, np.arange(len(hits)), 0)), 2]
        return np.stack((query, key, ahead + 1, above + 1, above + equal), axis=1)

    def scan(self, mode: int, hits: bytes, span: tuple[int, int]) -> _Part:
        """Return the compiled module's output for the lines between two offsets."""
        data = self.lines.part(*span)
        rows, facts, suspect = self.module.scan(data, self.index, mode, self.by_id, span[0], hits)
        if suspect >= 0:
            raise InvalidRowError
        segments = np.frombuffer(facts, dtype=np.int64).reshape(-1, 5)
        judged = segments[segments[:, 0] >= 0]
        others = segments[segments[:, 0] < 0, 2:4].tolist()
        extra = dict.fromkeys(bytes(data[at : at + size]) for at, size in others)
        blocks = list(_blocks(data, span, segments)) if mode == native.CLOSELY else []
        return _Part(np.frombuffer(rows, dtype=np.int64).reshape(-1, 5), judged[:, 0], judged[:, 1], extra, blocks)

    def cuts(self, *, scattered: bool = False) -> list[int]:
        """Return offsets at which lines begin. Unless lines are `scattered`, each offset also starts another query."""
        size, end = SCATTERED_PART if scattered else PART, self.lines.end
        cuts = [self.lines.begin]
        while (target := cuts[-1] + size) < end:
            cuts.append(self.cut_behind(target, scattered=scattered))
        return cuts if cuts[-1] == end and len(cuts) > 1 else [*cuts, end]

    def cut_behind(self, target: int, *, scattered: bool) -> int:
        """Return the first offset after a target at which the file can be cut, or the end if there is none."""
        size = WINDOW
        while target + size < self.lines.end:
            window = bytes(self.lines.part(target, target + size))
            start = window.find(b"\n") + 1
            if start and scattered:
                return target + start
            end = window.find(b"\n", start)
            if start and end >= 0:
                words = window[start:end].split(None, 1)
                # The last line of this line's query; the next line is another query's.
                last = window.rfind(b"\n" + words[0] + window[start + len(words[0]) :][:1]) if words else start - 1
                end = window.find(b"\n", last + 1)
                if 0 <= end < size - 1:
                    return target + end + 1
            if size >= WIDEST_WINDOW:
                raise InvalidRowError
            size *= 8
        return self.lines.end


def _blocks(data: bytes | memoryview, span: tuple[int, int], segments: Ints) -> Iterator[tuple[str, Block]]:
    """Yield each query of a part with its lines, which end where the lines of the next query begin."""
    low, high = span
    begins = [*(segments[:, 2] + low).tolist(), high]
    for (begin, end), (_, lines, at, size, noticed) in zip(pairwise(begins), segments.tolist()):
        notes = (bool(noticed & flag) for flag in (native.REPEATS, native.CONTRADICTED, native.UNORDERED))
        yield bytes(data[at : at + size]).decode(), Block(begin, end, lines, *notes)


def _side_by_side(scan: Callable[[tuple[int, int]], T], spans: Sequence[tuple[int, int]]) -> Iterator[T]:
    """Yield the result of each part in order. Start no more parts after a failure or once the caller stops."""
    if not spans:
        return
    from concurrent.futures import ThreadPoolExecutor

    workers = processors()
    with ThreadPoolExecutor(workers) as threads:
        waiting = [threads.submit(scan, span) for span in spans[: 2 * workers]]
        try:
            for at in range(len(spans)):
                yield waiting.pop(0).result()
                if at + 2 * workers < len(spans):
                    waiting.append(threads.submit(scan, spans[at + 2 * workers]))
        finally:
            for part in waiting:
                part.cancel()

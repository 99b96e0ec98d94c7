"""Labellers beside the loop that one would write: from ground truth and lists of results to recall."""

from __future__ import annotations

import random
import time
from collections import Counter

import report
from report import Pair

import groupgt
from groupgt.labellers.likeness import Normalization
from groupgt.model.values import Chunks

RESULTS = 100


def measure(rounds: int, size: int) -> None:
    report.section(
        "Labellers",
        "each beside a loop over the results and the alternatives of a query that stops at the first hit of a group; "
        "texts are normalized once each in the loop too, where it does not say otherwise",
    )
    rounds = min(rounds, 5)
    found = [_spans(rounds, size, joint=False), _carried(rounds, size)]
    found += [_text(rounds, max(size // 100, 10), "contained", anew=True)]
    found += [_text(rounds, max(size // 10, 10), method) for method in ("contained", "token_recall", "partial_ratio")]
    report.pairs(found, "loop")


def _places(size: int) -> tuple[dict, dict, dict]:
    """10 spans for each query, and 100 results out of chunks of 500 characters, of 2,000 documents."""
    rng = random.Random(0)
    chunks = {f"c{d}-{n}": (f"d{d}", n * 500, n * 500 + 500) for d in range(2_000) for n in range(200)}
    truth, run = {}, {}
    for number in range(size):
        spans = []
        for _ in range(10):
            start = rng.randrange(99_000)
            spans.append((f"d{rng.randrange(2_000)}", start, start + rng.randrange(50, 800)))
        truth[f"q{number}"] = spans
        ids = [f"c{rng.randrange(2_000)}-{rng.randrange(200)}" for _ in range(RESULTS - 4)]
        ids += [f"c{doc[1:]}-{start // 500}" for doc, start, _ in spans[:4]]
        rng.shuffle(ids)
        run[f"q{number}"] = ids
    return truth, run, chunks


def _given(truth: dict) -> groupgt.GroundTruth:
    groups = {
        qid: [[{"doc": doc, "start": start, "end": end}] for doc, start, end in spans] for qid, spans in truth.items()
    }
    return groupgt.GroundTruth.of(groups)


def _loop(truth: dict, run: dict, chunks: dict) -> float:
    total = 0.0
    for qid, spans in truth.items():
        met = 0
        for doc, start, end in spans:
            for name in run[qid]:
                other, first, last = chunks[name]
                if other == doc and min(end, last) - max(start, first) >= (end - start) / 2:
                    met += 1
                    break
        total += met / len(spans)
    return total / len(truth)


def _loop_of_rows(truth: dict, frame) -> float:
    run: dict[str, list] = {}
    for qid, *place, _ in frame.iter_rows():
        run.setdefault(qid, []).append(tuple(place))
    return _loop(truth, run, {place: place for own in run.values() for place in own})


def _spans(rounds: int, size: int, *, joint: bool) -> Pair:
    truth, run, chunks = _places(size)
    given = _given(truth)
    labeller = {"use": "spans", "with": {"chunks": Chunks.of(chunks), "joint": joint}}
    pair = Pair(f"spans, a chunk table: {size * RESULTS:,} results, {size * 10:,} spans")
    for _ in range(rounds):
        loop = _timed(pair.other, lambda: _loop(truth, run, chunks))
        ours = _timed(pair.ours, lambda: groupgt.evaluate(given, run, ["recall"], labeller=labeller)["recall"])
        assert abs(loop - ours) < 1e-9, (loop, ours)
    return pair


def _carried(rounds: int, size: int) -> Pair:
    import polars as pl

    truth, run, chunks = _places(size)
    given = _given(truth)
    rows = [(qid, *chunks[name], -rank) for qid, ids in run.items() for rank, name in enumerate(ids)]
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "start", "end", "score"], orient="row")
    pair = Pair(f"spans that results carry, a frame: {size * RESULTS:,} results, {size * 10:,} spans")
    for _ in range(rounds):
        loop = _timed(pair.other, lambda: _loop_of_rows(truth, frame))
        ours = _timed(pair.ours, lambda: groupgt.evaluate(given, frame, ["recall"], labeller="spans")["recall"])
        assert abs(loop - ours) < 1e-9, (loop, ours)
    return pair


def _text(rounds: int, size: int, method: str, *, anew: bool = False) -> Pair:
    rng = random.Random(1)
    words = [f"w{number}" for number in range(5_000)]
    corpus = {f"c{number}": " ".join(rng.choices(words, k=150)) for number in range(20_000)}
    truth, run, ids = {}, {}, list(corpus)
    for number in range(size):
        names = list(dict.fromkeys(rng.choices(ids, k=RESULTS)))
        run[f"q{number}"] = names
        parts = []
        # One is among the results, wherever; two are not.
        for name in (rng.choice(names), *rng.choices(ids, k=2)):
            own = corpus[name].split()
            at = rng.randrange(130)
            parts.append(" ".join(own[at : at + 12]))
        truth[f"q{number}"] = [[{"text": part}] for part in parts]
    given = groupgt.GroundTruth.of(truth)
    options = {"corpus": corpus, "method": method}
    note = ", normalized anew in the loop" if anew else ""
    pair = Pair(f"text, {method}{note}: {size:,} queries × {RESULTS} results of 150 words, 3 texts")
    for _ in range(min(rounds, 3)):
        loop = _timed(pair.other, lambda: _loop_of_texts(truth, run, corpus, method, anew=anew))
        ours = _timed(
            pair.ours,
            lambda: groupgt.evaluate(given, run, ["recall"], labeller={"use": "text", "with": options})["recall"],
        )
        assert abs(loop - ours) < 1e-9, (loop, ours)
    return pair


def _loop_of_texts(truth: dict, run: dict, corpus: dict, method: str, *, anew: bool) -> float:
    from rapidfuzz import fuzz

    normal = Normalization()
    texts = {} if anew else {name: normal(text) for name, text in corpus.items()}
    total = 0.0
    for qid, groups in truth.items():
        met = 0
        for [cell] in groups:
            wanted = normal(cell["text"])
            for name in run[qid]:
                said = normal(corpus[name]) if anew else texts[name]
                if method == "contained":
                    hit = f" {wanted} " in f" {said} "
                elif method == "partial_ratio":
                    hit = (fuzz.partial_ratio if len(wanted) <= len(said) else fuzz.ratio)(wanted, said) >= 90
                else:
                    common = Counter(said.split()) & Counter(wanted.split())
                    hit = sum(common.values()) >= 0.9 * len(wanted.split())
                if hit:
                    met += 1
                    break
        total += met / len(groups)
    return total / len(truth)


def _timed(seconds: list[float], step) -> float:
    start = time.perf_counter()
    found = step()
    seconds.append(time.perf_counter() - start)
    return found

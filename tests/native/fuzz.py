"""The compiled module under random and hostile input: `python tests/native/fuzz.py --seconds 60 [--seed 1]`.

With a compiler that has them it is built with AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of its own,
and every answer is held against a few lines of Python. Ends with 1 at the first wrong number, and however the
sanitizers end it at the first wrong access.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "groupgt" / "_native.c"
WHOLE, FIRST, SECOND, CLOSELY = range(4)
REPEATS, CONTRADICTED, UNORDERED = 1, 2, 4
# Letters that readers tell apart: plain, beyond ASCII, blanks and controls of every kind, surrogates, the last one.
PLAIN = "abz0189_-./:~!é한あ漢🦜\u200d\u202e"
ODD = " \t\n\r\0\x0b\x0c\x1c\x1f\x7f\x80\x85\x9f\xa0\u1680\u2003\u2028\u2029\u3000\ufeff\ud800\udfff\udc80\U0010ffff"
REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class Text(str):
    """A str of another type."""

    __slots__ = ()


def is_plain(name: Any) -> bool:
    """Whether a name is surely an id; others may be taken for one or not."""
    return may_be_plain(name) and not name.startswith(" ")


def may_be_plain(name: Any) -> bool:
    """Whether a name can be an id at all."""
    return type(name) is str and bool(name.strip()) and not REFUSED.search(name) and len(name.encode()) <= 1 << 16


def has_plain_ends(ranking: Any) -> bool:
    """Whether a ranking is of a usual type, and is surely no list that begins or ends with a mapping."""
    if type(ranking) not in (list, tuple):
        return type(ranking) is dict
    ends = [
        cell[0] if type(cell) in (list, tuple) and len(cell) == 2 else cell for cell in (*ranking[:1], *ranking[-1:])
    ]
    return all(type(cell) is str for cell in ends)


def a_name(rng: random.Random, odd: float = 0.0) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"doc_{rng.randrange(60):0{rng.choice((1, 3, 7, 12))}d}"
    letters = PLAIN + (ODD if rng.random() < odd else "")
    size = rng.choice((1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 40)) if kind < 0.99 else rng.choice((300, 65536, 65537))
    return "".join(rng.choices(letters if kind < 0.9 else letters[:4], k=size))


def a_truth(rng: random.Random, names: Callable[[], str]) -> tuple[list[str], list[list[list[str]]]]:
    count = rng.choice((0, 1, 2, 5, 40))
    qids = list(dict.fromkeys(a_name(rng) for _ in range(count)))
    qids = [qid for qid in qids if is_plain(qid)]
    sizes = (1, 2, 3, 20, 200)
    rows = [[[names() for _ in range(rng.choice(sizes))] for _ in range(rng.randrange(4))] for _ in qids]
    return qids, rows


def keys_of(rows: list[list[list[str]]]) -> list[list[str]]:
    return [[name for group in row for name in group] for row in rows]


def ints(data: bytes, width: int = 5) -> list[list[int]]:
    return np.frombuffer(data, np.int64).reshape(-1, width).tolist()


def expected_hits(
    number: int, first: dict[str, int], names: list[str], scores: list[float] | None, by_id: bool
) -> list[list[int]]:
    """Rows of (query, key, rank, first and last rank of its equals)."""
    places = list(range(len(names)))
    if scores is None:
        return [[number, first[name], rank, rank, rank] for rank, name in enumerate(names, 1) if name in first]
    places.sort(key=lambda at: names[at].encode() if by_id else b"", reverse=True)
    places.sort(key=lambda at: scores[at], reverse=True)
    ordered = [scores[at] for at in places]
    found = []
    for rank, at in enumerate(places, 1):
        if names[at] in first:
            low = ordered.index(scores[at]) + 1
            found.append([number, first[names[at]], rank, low, low + ordered.count(scores[at]) - 1])
    return found


def indexed(module: Any, rng: random.Random, qids: list[str], rows: list[list[list[str]]]) -> tuple[Any, list[Any]]:
    """The index, and of each query the first place of each key; checks what else is returned."""
    given = [tuple(map(tuple, row)) if rng.random() < 0.2 else row for row in rows]
    found = module.index(qids, given, rng.getrandbits(64))
    keys = keys_of(rows)
    plain = all(map(is_plain, (*qids, *(name for own in keys for name in own)))) and all(all(row) for row in rows)
    if found is None:
        assert not plain, (qids, rows)
        return None, []
    assert not qids or module.index([*qids, rng.choice(qids)], [*given, []], 1) is None
    ids, groups, sizes, grades, firsts, index = found
    assert grades is None
    assert ids == [name for own in keys for name in own]
    assert np.frombuffer(groups, np.int64).tolist() == [len(row) for row in rows]
    assert np.frombuffer(sizes, np.int64).tolist() == [len(group) for row in rows for group in row]
    first: list[dict[str, int]] = []
    start, expected = 0, []
    for own in keys:
        table: dict[str, int] = {}
        for at, name in enumerate(own, start):
            expected.append(table.setdefault(name, at))
        start += len(own)
        first.append(table)
    assert np.frombuffer(firsts, np.int64).tolist() == expected
    return index, first


def check_grades(module: Any, rng: random.Random) -> None:
    """Of `{id: grade}` the index is that of each id as a group of one."""
    qids, groups = a_truth(rng, lambda: a_name(rng))
    odd = rng.choice((0, 0, 0, 0.02))
    kinds: tuple[Any, ...] = (True, "1", None, math.inf, 2**60)
    rows = [
        {name: rng.choice(kinds if rng.random() < odd else (0, 1, -2, 0.5)) for name in own} for own in keys_of(groups)
    ]
    seed = rng.getrandbits(64)
    found = module.index(qids, rows, seed)
    alone = module.index(qids, [[[name] for name in row] for row in rows], seed)
    cells = [grade for row in rows for grade in row.values()]
    if alone is None or not {*map(str, cells)} <= {"0", "1", "-2", "0.5"} or "1" in cells:
        assert found is None
    elif rows:
        *before, grades, firsts, index = found
        assert (*before, None, firsts) == alone[:-1]
        probed = [module.probe(dict(zip(qids, rows)), None, qids, one, True, True) for one in (index, alone[-1])]
        assert probed[0] == probed[1]
        assert np.frombuffer(grades).tolist() == cells


def check_probe(module: Any, rng: random.Random) -> None:
    """Rankings in every shape, some of them odd, against sorted lists."""
    odd = rng.choice((0.0, 0.0, 0.3))
    pool = [a_name(rng, odd) for _ in range(rng.choice((3, 30, 300)))]
    qids, rows = a_truth(rng, lambda: rng.choice(pool))
    index, first = indexed(module, rng, qids, rows)
    if index is None:
        return
    by_id, distinct = rng.random() < 0.5, rng.random() < 0.3
    rankings: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for qid in (*qids, "other"):
        if rng.random() < 0.1:
            continue
        names = [rng.choice(pool) for _ in range(rng.choice((0, 1, 5, 50, 500)))]
        if distinct and rng.random() < 0.7:
            names = list(dict.fromkeys(names))
        shape = rng.random()
        scores = [a_score(rng) for _ in names]
        if rng.random() < 0.3:
            scores.sort(reverse=True)
        if rng.random() < 0.2:
            scores = [np.float64(score) if type(score) is float else score for score in scores]
        if shape < 0.3:
            rankings[qid] = names
        elif shape < 0.5:
            rankings[qid] = [(name, rng.choice((None, score))) for name, score in zip(names, scores, strict=True)]
        elif shape < 0.8:
            rankings[qid] = dict(zip(names, scores, strict=True))
        else:
            rankings[qid], beside[qid] = names, scores
        if type(rankings[qid]) is list and rng.random() < 0.2:
            rankings[qid] = tuple(rankings[qid])
        if odd and names and rng.random() < 0.2:
            rankings[qid] = rng.choice(
                (None, 7, "text", (), names[0], {1: 2}, [[1]], [Text("a")], [b"a"], [None], Text)
            )
            beside.pop(qid, None)
    assert module.plain(rankings, True) == all(map(has_plain_ends, rankings.values())), rankings
    assert module.plain(rankings, False)
    assert not module.plain({**rankings, rng.choice((7, "", "a\tb", Text("one more"))): []}, False)
    lengths, hits = module.probe(rankings, beside or None, qids, index, by_id, distinct)
    found: dict[int, list[list[int]]] = {}
    for row in ints(hits):
        found.setdefault(row[0], []).append(row)
    for number, (qid, length) in enumerate(zip(qids, np.frombuffer(lengths, np.int64).tolist(), strict=True)):
        if qid not in rankings:
            assert length == -1
            continue
        names, scores = as_pairs(rankings[qid], beside.get(qid))
        if length == -2:
            repeated = distinct and names is not None and len(set(names)) < len(names)
            assert repeated or names is None or not all(map(is_plain, names)), rankings[qid]
            assert number not in found
            continue
        assert names is not None
        assert all(map(may_be_plain, names)), rankings[qid]
        assert length == len(names)
        assert not distinct or len(set(names)) == len(names)
        assert found.get(number, []) == expected_hits(number, first[number], names, scores, by_id)


def a_score(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return float(rng.randrange(6))
    if kind < 0.9:
        return rng.uniform(-1, 1)
    return rng.choice((0.0, -0.0, 1e308, -1e308, 5e-324, 3, -7, 2**53 - 1, 2**53, 2**53 + 1, 10**400))


def as_pairs(ranking: Any, beside: Any) -> tuple[list[str] | None, list[float] | None]:
    """The names of a ranking and the scores that order it; None where it is none."""
    nothing = None, None
    if type(ranking) is dict:
        scores = as_numbers(ranking.values())
        return nothing if scores is None else (list(ranking), scores)
    if type(ranking) not in (list, tuple):
        return nothing
    pairs = [cell if type(cell) in (tuple, list) else (cell, None) for cell in ranking]
    if any(len(pair) != 2 or type(pair[0]) is not str for pair in pairs):
        return nothing
    scores = None if beside is None else as_numbers(beside)
    if as_numbers(score for _, score in pairs if score is not None) is None or (beside is not None and scores is None):
        return nothing
    return [name for name, _ in pairs], scores


def as_numbers(scores: Iterable[Any]) -> list[float] | None:
    """Finite doubles; None where one is none, or an integer that a double may not hold."""
    given = list(scores)
    if not all(math.isfinite(score) if isinstance(score, float) else type(score) is int for score in given):
        return None
    return None if any(type(score) is int and abs(score) >= 2**53 for score in given) else list(map(float, given))


NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
RANK = re.compile(rb"[+-]?\d+(\.0*)?")


def a_number(rng: random.Random) -> str:
    kind = rng.randrange(9)
    if kind < 3:
        return f"{rng.uniform(-50, 50):.{rng.randrange(8)}f}"
    if kind < 6:
        return repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-30, 12))
    if kind == 6:
        digits = "".join(rng.choices("0123456789", k=rng.choice((1, 5, 17, 18, 19, 20, 25, 400))))
        point = rng.randrange(len(digits) + 1)
        return f"{rng.choice(('', '-', '+'))}{digits[:point]}{rng.choice(('.', ''))}{digits[point:]}"
    if kind == 7:
        power = f"{rng.choice('eE')}{rng.choice(('', '+', '-'))}{rng.randrange(40)}"
        return str(rng.randrange(10 ** rng.randrange(1, 20))) + power
    # Halfway between two doubles, and beside it.
    value = rng.getrandbits(53) * 2 + 1 + rng.randrange(-1, 2)
    return f"{value}{rng.choice(('', 'e-5', 'e-17', 'e3', '.0'))}"


def a_line(rng: random.Random, qid: str, name: str, rank: str = "", number: str = "") -> bytes:
    gap = rng.choice((" ", " ", " ", "\t", "  ", " \t"))
    tag = ["tag", rng.choice(("more", "more", "1", "1e999", "1_0")), "of it", "x"][: rng.choice((1, 1, 1, 2, 4))]
    rank = rank or rng.choice(("0", "1", "12", "3.0", "-1", "7.", "+007", "9" * rng.choice((17, 30, 400))))
    cells = [qid, "Q0", name, rank, number or a_number(rng), *tag]
    line = rng.choice(("", "", " ")) + gap.join(cells) + rng.choice(("", "", " "))
    return line.encode("utf-8", "surrogatepass") + rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\n\n"))


def cells_of(line: bytes) -> list[bytes] | None:
    """The cells of a line; None where it is no result."""
    line = line.removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    cells = [cell.encode() for cell in re.split("[ \t]+", text) if cell]
    if REFUSED.search(text.replace("\t", " ")) or (cells and not 6 <= len(cells) <= 10):
        return None
    if not cells:
        return []
    if not (RANK.fullmatch(cells[3]) and NUMBER.fullmatch(cells[4]) and math.isfinite(float(cells[4]))):
        return None
    if len(cells) > 6 and NUMBER.fullmatch(cells[5]):
        return None
    blank = any(not cell.decode().strip() for cell in cells)
    return None if blank or max(len(cells[0]), len(cells[2])) > 1 << 16 else cells


def an_order(rng: random.Random, count: int) -> Iterable[tuple[str, str]]:
    """Ranks and scores of results: nothing for any, or in order but for a few."""
    if rng.random() < 0.4:
        return [("", "")] * count
    digits = rng.choice((1, 1, 3))
    scores = sorted((rng.choice((f"{rng.random():.{digits}f}", a_number(rng))) for _ in range(count)), key=float)
    ranks = [str(rank // rng.choice((1, 1, 9))) for rank in range(rng.randrange(2), count + 2)][:count]
    rows = list(zip(ranks, reversed(scores), strict=True))
    for _ in range(rng.choice((0, 0, 1, 2)) if count else 0):
        one, other = rng.randrange(count), rng.randrange(count)
        if rng.random() < 0.5:
            rows[one], rows[other] = rows[other], rows[one]
        else:
            rows[one] = (rows[other][0], rows[one][1])
    return rows


def check_scan(module: Any, rng: random.Random) -> None:
    """Lines of a run, in order and scattered, some of them damaged, against the same lines cut in Python."""
    pool = [name for name in (a_name(rng).replace(" ", "_") for _ in range(40)) if is_plain(name)]
    qids, rows = a_truth(rng, lambda: rng.choice(pool))
    if any(" " in qid for qid in qids):
        return
    index, first = indexed(module, rng, qids, rows)
    if index is None:
        return
    blocks = []
    for qid in (*qids, "other", "another"):
        names = rng.choices(pool, k=rng.choice((0, 1, 3, 40, 300)))
        blocks.append([a_line(rng, qid, name, *order) for name, order in zip(names, an_order(rng, len(names)))])
        if rng.random() < 0.3:
            blocks[-1] = [line.replace(b" 0.", b" 1.") for line in blocks[-1]]
    lines = [line for block in blocks for line in block]
    scattered = rng.random() < 0.4
    if scattered:
        rng.shuffle(lines)
    data = b"".join(lines)
    if rng.random() < 0.3:
        data = damaged(rng, data)
    by_id = rng.random() < 0.5
    results: list[tuple[str, str, float, int, float]] = []
    doubt, start = -1, 0
    for line in data.split(b"\n"):
        cells = cells_of(line)
        if cells is None:
            doubt = start
            break
        if cells:
            results.append((cells[0].decode(), cells[2].decode(), float(cells[4]), start, float(cells[3])))
        start += len(line) + 1
    number_of = {qid: number for number, qid in enumerate(qids)}
    if not scattered:
        compare_whole(module, data, index, first, by_id, results, number_of, doubt)
    compare_scattered(module, rng, data, index, first, by_id, results, number_of, doubt)


def compare_whole(
    module: Any, data: bytes, index: bytes, first: list[Any], by_id: bool, results: Any, number_of: Any, doubt: int
) -> None:
    hits, segments, told = module.scan(data, index, WHOLE, by_id, 0, b"")
    assert told == doubt, (told, doubt, data)
    closely = module.scan(data, index, CLOSELY, by_id, 0, b"")
    assert (closely[0], closely[2]) == (hits, told)
    if doubt >= 0:
        return
    blocks: list[tuple[str, list[Any]]] = []
    for result in results:
        if not blocks or blocks[-1][0] != result[0]:
            blocks.append((result[0], []))
        blocks[-1][1].append(result)
    expected = []
    for qid, own in blocks:
        number = number_of.get(qid, -1)
        if number >= 0:
            names, scores = [each[1] for each in own], [each[2] for each in own]
            expected += expected_hits(number, first[number], names, scores, by_id)
    assert ints(hits) == expected
    got = [(row[0], row[1], data[row[2] : row[2] + row[3]].decode()) for row in ints(segments)]
    assert got == [(number_of.get(qid, -1), len(own), qid) for qid, own in blocks]
    assert [row[:4] for row in ints(closely[1])] == [row[:4] for row in ints(segments)]
    for (qid, own), (*_, noticed) in zip(blocks, ints(closely[1]), strict=True):
        compare_noticed(own, noticed, judged=qid in number_of)


def compare_noticed(own: list[Any], noticed: int, *, judged: bool) -> None:
    """What was noticed of the lines of a query, against all of them sorted by rank, the best score first."""
    names, scores, ranks = ([each[at] for each in own] for at in (1, 2, 4))
    assert bool(noticed & REPEATS) == (judged and len(set(names)) < len(names))
    by_rank = sorted(zip(ranks, (-score for score in scores), strict=True))
    contradicted = any(one[1] > other[1] for one, other in pairwise(by_rank))
    in_order = all(one >= other for one, other in pairwise(scores)) or all(
        one <= other for one, other in pairwise(ranks)
    )
    if noticed & UNORDERED:
        assert not in_order
        assert not noticed & CONTRADICTED
    else:
        assert bool(noticed & CONTRADICTED) == contradicted


def compare_scattered(
    module: Any,
    rng: random.Random,
    data: bytes,
    index: bytes,
    first: list[Any],
    by_id: bool,
    results: Any,
    number_of: Any,
    doubt: int,
) -> None:
    cuts = sorted({0, len(data), *(data.find(b"\n", rng.randrange(len(data) + 1)) + 1 for _ in range(3))})
    parts = list(pairwise(cuts))
    told = [module.scan(data[low:high], index, FIRST, by_id, low, b"") for low, high in parts]
    bad = [low + each[2] for (low, _), each in zip(parts, told, strict=True) if each[2] >= 0]
    assert (bad[0] if bad else -1) == doubt, (bad, doubt, data)
    if bad:
        return
    length: dict[Any, int] = {}
    for (low, _), (_, segments, _) in zip(parts, told, strict=True):
        for number, lines, at, size, _ in ints(segments):
            key = number if number >= 0 else data[low + at : low + at + size].decode()
            length[key] = length.get(key, 0) + lines
    expected: dict[Any, int] = {}
    for result in results:
        key = number_of.get(result[0], result[0])
        expected[key] = expected.get(key, 0) + (key != result[0])
    assert length == expected
    hits = b"".join(each[0] for each in told)
    order = [row[0] for row in ints(module.scan(b"", index, SECOND, by_id, 0, hits)[0])]
    hits = np.array([ints(hits)[at] for at in order], np.int64).reshape(-1, 5).tobytes()
    counts = np.zeros((len(order), 5), np.int64)
    for low, high in parts:
        counts += np.array(ints(module.scan(data[low:high], index, SECOND, by_id, low, hits)[0]), np.int64).reshape(
            -1, 5
        )
    found, last, ahead, above, equal = [], -1, 0, 0, 0
    for row, (_, one, two, three, _) in zip(ints(hits), counts.tolist(), strict=True):
        if row[0] != last:
            last, ahead, above = row[0], 0, 0
        ahead, above, equal = ahead + one, above + two, three or equal
        found.append([row[0], row[1], ahead + 1, above + 1, above + equal])
    wanted = []
    for qid, number in number_of.items():
        own = [each for each in results if each[0] == qid]
        names, scores = [each[1] for each in own], [each[2] for each in own]
        wanted += expected_hits(number, first[number], names, scores, by_id)
    assert found == wanted


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes changed, cut off, doubled or put in."""
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0 and data:
            data = data[: max(at - 1, 0)] + bytes([rng.randrange(256)]) + data[max(at, 1) :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[max(at - rng.randrange(40), 0) :]
        else:
            odd = rng.choice((*ODD, "\r\n", "\n\r", "x" * 65537, " 1 ", "\ufeff")).encode("utf-8", "surrogatepass")
            data = data[:at] + odd + data[at:]
    return data


def check_hostile(module: Any, rng: random.Random) -> None:
    """What is no index, no list, no bytes: an exception, or numbers that mean nothing, but no wrong access."""
    qids, rows = a_truth(rng, lambda: a_name(rng))
    found = module.index(qids, rows, 1)
    index = rng.randbytes(rng.randrange(300)) if found is None else found[-1]
    if rng.random() < 0.8 and index:
        for _ in range(rng.choice((1, 4, 40))):
            at = rng.randrange(len(index))
            index = index[:at] + bytes([rng.choice((0, 1, 127, 255, rng.randrange(256)))]) + index[at + 1 :]
    if rng.random() < 0.2:
        index = index[: rng.randrange(len(index) + 1)]
    names = [a_name(rng, 0.5) for _ in range(20)]
    data = b"".join(a_line(rng, rng.choice(qids or ["q"]), name) for name in names)
    junk: list[Any] = [None, 1, "a", b"a", [1], [[1]], {}, {"a": {}}, (), math.nan]
    calls: list[Callable[[], Any]] = [
        lambda: module.probe(dict.fromkeys(qids, names), None, qids, index, True, False),
        lambda: module.probe(rng.choice(junk), rng.choice(junk), rng.choice((qids, *junk)), index, False, False),
        lambda: module.plain(rng.choice(junk), rng.random() < 0.5),
        lambda: module.index(rng.choice((qids, *junk)), rng.choice((rows, *junk)), 3),
        lambda: module.scan(data, index, rng.randrange(-1, 5), True, rng.randrange(-5, 5), rng.randbytes(80)),
        lambda: module.scan(rng.randbytes(200), index, FIRST, True, 2**62, rng.randbytes(7)),
        lambda: module.scan(rng.choice(junk), index, SECOND, 2, 0, rng.choice(junk)),
        lambda: module.scan(data, index, SECOND, True, 0, np.array([[0, 0, 0, 0, 0]] * 3, np.int64).tobytes()),
    ]
    for call in calls:
        with suppress(TypeError, ValueError, OverflowError):
            call()


def check_threads(module: Any, rng: random.Random) -> None:
    """Lists that another thread changes while they are read: each reading sees one state of them."""
    qids = [f"q{number}" for number in range(20)]
    rows = [[[f"d{at}" for at in range(5)]] for _ in qids]
    index = module.index(qids, rows, 5)[-1]
    rankings: dict[str, Any] = {qid: [f"d{at}" for at in range(50)] for qid in qids}
    stop = threading.Event()

    def change() -> None:
        turn = random.Random(1)
        while not stop.is_set():
            qid = turn.choice(qids)
            kind = turn.randrange(5)
            if kind == 0:
                rankings[qid] = {f"d{at}": float(turn.random()) for at in range(turn.randrange(50))}
            elif kind == 1:
                rankings.pop(qid, None)
            elif kind == 2:
                rankings[qid] = [f"d{at}" for at in range(turn.randrange(50))]
            elif isinstance(rankings.get(qid), list):
                rankings[qid][:] = [turn.choice(("한", "d1", 3, None))] * turn.randrange(60)
            elif isinstance(rankings.get(qid), dict):
                rankings[qid].clear()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            module.plain(rankings, True)
            lengths, hits = module.probe(rankings, None, qids, index, True, False)
            sizes = np.frombuffer(lengths, np.int64).tolist()
            for query, key, rank, low, high in ints(hits):
                assert sizes[query] > 0
                assert key // 5 == query
                assert 1 <= low <= rank <= high <= sizes[query]
    finally:
        stop.set()
        thread.join()


CHECKS = (check_grades, check_probe, check_probe, check_scan, check_scan, check_hostile)


def run(module: Any, seed: int, rounds: int) -> None:
    """So many rounds of every check."""
    for number in range(rounds):
        rng = random.Random(f"{seed} {number}")
        try:
            CHECKS[number % len(CHECKS)](module, rng)
        except BaseException:
            print(f"seed {seed}, round {number}", file=sys.stderr)
            raise


def built(folder: Path) -> list[Path]:
    """Builds with the sanitizers; what must be loaded before Python for them."""
    compiler = os.environ.get("CC", "cc")
    digest = f"{zlib.crc32(SOURCE.read_bytes()):08x}"
    options = ["-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    include = [f"-I{sysconfig.get_path('include')}", f'-DSOURCE_DIGEST="{digest}"']
    module = folder / "_native.abi3.so"
    subprocess.run([compiler, *options, "-fPIC", "-shared", *include, str(SOURCE), "-o", str(module)], check=True)
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return [Path(each) for each in found if Path(each).is_absolute()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is None:
        with tempfile.TemporaryDirectory() as name:
            libraries = built(Path(name))
            environ = {
                **os.environ,
                "LD_PRELOAD": ":".join(map(str, libraries)),
                "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            }
            command = [sys.executable, __file__, *sys.argv[1:], "--seed", str(options.seed), "--folder", name]
            return subprocess.run(command, env=environ, check=False).returncode
    spec = importlib.util.spec_from_file_location("_native", Path(options.folder) / "_native.abi3.so")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    end, rounds = time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        run(module, options.seed + rounds, 50)
        rounds += 50
        if rounds % 1000 == 0:
            check_threads(module, random.Random(rounds))
    print(f"{rounds:,} rounds from seed {options.seed}: no wrong number, no wrong access")
    return 0


if __name__ == "__main__":
    sys.exit(main())

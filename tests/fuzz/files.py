"""Small files in every text format, and structured mutations of them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable

from groupgt.runtime import zstd

QIDS = ("q1", "q2", "10", "질문", "q-ü")
DOCS = (
    *("a", "b", "c", "doc_0001", "007", "7", "한국어", "e\u0301", "x\u200dy", "d,1", "z;2", "A", "p#3"),
    *("1e5", "é", "nul"),
)
NUMBERS = ("1", "0.5", "-2", "3e-2", "+4", ".5", "7.", "1e5", "0", "12345678901234567890", "0.1", "1e-320", "2.50")
ODD_NUMBERS = (
    *("1_000", "nan", "inf", "-Infinity", "0x10", "1,5", "", "1e400", "٣", "1 2", "--1", "1e", "e5"),
    *("1.2.3", "True", "½"),
)
ODD_TEXT = (
    *("", " ", "\t", "\x00", "\x0b", "\x0c", "\x1c", "\x1f", "\x7f", "\x85", "\xa0", "\ufeff", "\u2028", "\u2029"),
    *("\u3000", "\u200b", "\u202e", "\ud7ff", "'", '"', '""', ",", ";", "#", "\\", "a b", " a", "a ", "\r", "\r\n"),
    *("\n", "null", "NaN", "=1+1", "x" * 70_000),
)
ODD_BYTES = (
    *(b"\x00", b"\x80", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\r", b"\n", b"\t"),
    *(b" ", b'"', b",", b"\x1a", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\x1c", b"\\", b"#"),
)

Rows = list[list[str]]


def _results(rng: random.Random) -> Rows:
    rows = []
    for qid in rng.sample(QIDS, rng.randint(1, 4)):
        docs = rng.sample(DOCS, rng.randint(1, 6))
        scores = sorted((rng.choice(NUMBERS) for _ in docs), key=float, reverse=True)
        rows += [[qid, doc, str(rank), score] for rank, (doc, score) in enumerate(zip(docs, scores), 1)]
    if rng.random() < 0.3:
        rng.shuffle(rows)
    return rows


def _judgments(rng: random.Random) -> Rows:
    rows = []
    for qid in rng.sample(QIDS, rng.randint(1, 4)):
        docs = rng.sample(DOCS, rng.randint(1, 6))
        rows += [[qid, f"g{rng.randint(1, 3)}", doc, rng.choice(("1", "1", "2", "0", "-1", "0.5"))] for doc in docs]
    return rows


def _separated(rows: Rows, header: list[str], rng: random.Random) -> str:
    sign = rng.choice((",", "\t", ";"))
    if any(sign in cell for row in rows for cell in row) or rng.random() < 0.2:
        rows = [[f'"{cell}"' for cell in row] for row in rows]
    return "".join(sign.join(row) + "\n" for row in [header, *rows])


def trec_run(rows: Rows, rng: random.Random) -> str:
    sign = rng.choice((" ", "\t", "  "))
    more = rng.choice(([], [], ["x"], ["x", "y"]))
    return "".join(sign.join([qid, "Q0", doc, rank, score, "tag", *more]) + "\n" for qid, doc, rank, score in rows)


def csv_run(rows: Rows, rng: random.Random) -> str:
    if rng.random() < 0.3:
        return _separated([[qid, doc, rank] for qid, doc, rank, _ in rows], ["qid", "doc_id", "rank"], rng)
    if rng.random() < 0.5:
        return _separated(rows, ["qid", "doc_id", "rank", "score"], rng)
    return _separated([[qid, score, doc] for qid, doc, _, score in rows], ["qid", "score", "doc_id"], rng)


def jsonl_run(rows: Rows, rng: random.Random) -> str:
    if rng.random() < 0.5:
        whole = ({"qid": qid, "doc_id": doc, "score": float(score)} for qid, doc, _, score in rows)
        return "".join(json.dumps(row, ensure_ascii=rng.random() < 0.3) + "\n" for row in whole)
    queries: dict[str, Rows] = {}
    for row in rows:
        queries.setdefault(row[0], []).append(row)
    nested = (
        {"qid": qid, "retrieved_ids": [row[1] for row in own], "retrieve_scores": [float(row[3]) for row in own]}
        for qid, own in queries.items()
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in nested)


def qrels(rows: Rows, rng: random.Random) -> str:
    sign = rng.choice((" ", "\t"))
    return "".join(sign.join([qid, "0", doc, grade]) + "\n" for qid, _, doc, grade in rows)


def subtopics(rows: Rows, rng: random.Random) -> str:
    return "".join(" ".join(row) + "\n" for row in rows)


def csv_truth(rows: Rows, rng: random.Random) -> str:
    return _separated(rows, ["qid", "group", "doc_id", "grade"], rng)


def jsonl_truth(rows: Rows, rng: random.Random) -> str:
    queries: dict[str, dict[str, list[str]]] = {}
    for qid, group, doc, _ in rows:
        queries.setdefault(qid, {}).setdefault(group, []).append(doc)
    return "".join(
        json.dumps({"qid": qid, "retrieval_gt": list(groups.values())}, ensure_ascii=False) + "\n"
        for qid, groups in queries.items()
    )


RUNS: dict[str, tuple[str, Callable[[Rows, random.Random], str]]] = {
    "trec_run": ("trec", trec_run),
    "csv_run": ("csv", csv_run),
    "jsonl_run": ("jsonl", jsonl_run),
}
TRUTHS: dict[str, tuple[str, Callable[[Rows, random.Random], str]]] = {
    "qrels": ("trec", qrels),
    "subtopics": ("trec-subtopics", subtopics),
    "csv_truth": ("csv", csv_truth),
    "jsonl_truth": ("jsonl", jsonl_truth),
}


def made(kind: str, rng: random.Random) -> bytes:
    """A sound file of a kind."""
    write = (RUNS | TRUTHS)[kind][1]
    return write(_results(rng) if kind in RUNS else _judgments(rng), rng).encode()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The file with one to three mutations; now and then as it was."""
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(data, rng)
    return data


def _cell(data: bytes, rng: random.Random) -> bytes:
    """One cell is replaced by what is odd, or grows by it at one of its ends."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    sign = next((sign for sign in (b"\t", b";", b",", b" ") if sign in lines[at]), b" ")
    cells = lines[at].split(sign)
    place = rng.randrange(len(cells))
    odd = rng.choice(rng.choice((ODD_TEXT, ODD_NUMBERS))).encode("utf-8", "surrogatepass")
    cells[place] = rng.choice((odd, odd + cells[place], cells[place] + odd, cells[place][:1] + odd + cells[place][1:]))
    lines[at] = sign.join(cells)
    return b"\n".join(lines)


def _cells(data: bytes, rng: random.Random) -> bytes:
    """A cell is left out, doubled, or changes places."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    sign = next((sign for sign in (b"\t", b";", b",", b" ") if sign in lines[at]), b" ")
    cells = lines[at].split(sign)
    place = rng.randrange(len(cells))
    change = rng.randrange(4)
    if change == 0:
        del cells[place]
    elif change == 1:
        cells.insert(place, cells[place])
    elif change == 2:
        rng.shuffle(cells)
    else:
        sign = rng.choice((b" ", b"\t", b",", b"  ", b"\x0b", b"\xc2\xa0", b"\xe3\x80\x80"))
    lines[at] = sign.join(cells)
    return b"\n".join(lines)


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Lines are doubled, joined, dropped, put elsewhere, or end otherwise."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    change = rng.randrange(9)
    if change == 0:
        lines.insert(at, lines[at])
    elif change == 1 and at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + lines[at + 1]]
    elif change == 2:
        del lines[at]
    elif change == 3:
        lines.insert(at, rng.choice((b"", b" ", b"\t", b"# a comment", b"\xef\xbb\xbf", b"\x0c", b"null", b"{}")))
    elif change == 4:
        rng.shuffle(lines)
    elif change == 5:
        return b"\r\n".join(lines)
    elif change == 6:
        return b"\r".join(lines)
    elif change == 7:
        lines[at] += b"\r"
    else:
        return data.rstrip(b"\n")
    return b"\n".join(lines)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes are flipped, put in, taken out."""
    if not data:
        return data
    at, size = rng.randrange(len(data)), rng.randint(1, 4)
    change = rng.randrange(5)
    if change == 0:
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if change == 1:
        return data[:at] + rng.choice(ODD_BYTES) + data[at:]
    if change == 2:
        return data[:at] + data[at + size :]
    if change == 3:
        return data[:at]
    return data[:at] + data[at : at + 20] + data[at:]


def _whole(data: bytes, rng: random.Random) -> bytes:
    """The file in another encoding, behind a mark, twice, or cut in two at a mark."""
    change = rng.randrange(6)
    if change == 0:
        return b"\xef\xbb\xbf" + data
    if change == 1:
        return data + data
    if change == 2:
        return data.decode("utf-8", "replace").encode("utf-16")
    if change == 3:
        return data.decode("utf-8", "replace").encode("latin-1", "replace")
    if change == 4:
        return data.replace(b" ", b"  ", rng.randint(1, 3))
    return data + b"\xef\xbb\xbf" + data


MUTATIONS = (_cell, _cell, _cells, _lines, _bytes, _bytes, _whole)


def compressed(data: bytes, rng: random.Random) -> tuple[bytes, bool]:
    """The bytes in a compressed shape, and whether that shape is whole."""
    packed = gzip.compress(data, mtime=0) if rng.random() < 0.5 else zstd.compress(data)
    if rng.random() < 0.5:
        return packed, True
    return packed[: rng.randrange(8, max(9, len(packed)))], False

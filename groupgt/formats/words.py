"""Recognizes files that consist of rows of words: TREC runs, TREC qrels and similar files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import islice

from groupgt.formats import trec
from groupgt.formats.format import Format
from groupgt.formats.source import Source
from groupgt.model.validity import is_number


def are_words(source: Source) -> bool:
    """Return whether a file certainly has rows of words. The first row has words, a number and no delimiters."""
    if source.path.is_dir() or source.is_parquet or source.is_json:
        return False
    line = next(iter(first_lines(source)), b"").decode("utf-8", "replace")
    words = line.split()
    if len(words) < 3 or set(',;|"') & set(line) or not any(map(is_number, words)):
        return False
    if not source.first_line.startswith(b"#"):
        return True
    from groupgt.formats.csv import names_table

    # A column of a table may be called #.
    return not names_table(source.first_line)


def first_lines(source: Source) -> list[bytes]:
    """Return the first lines that are neither blank nor comments."""
    lines = source.head().split(b"\n")
    # Ids may begin with #, but a file of comments has no data.
    rows = (line for line in lines if line.strip() and not line.startswith(b"#"))
    return list(islice(rows, 50)) or list(islice(filter(_is_row, lines), 50))


def _is_row(line: bytes) -> bool:
    cells = line.decode("utf-8", "replace").split()
    return trec.is_result(line) or (len(cells) in (3, 4) and is_number(cells[-1]))


def look(source: Source) -> str | None:
    """Return `truth`, `run` or `either` for rows of three words or more."""
    # The majority of lines decides: a shorter or longer line is an error to report, not another format.
    usual = Counter(min(len(line.split()), 6) for line in first_lines(source)).most_common(1)[0][0]
    if usual == 3 and trec.are_ranked(first_lines(source)):
        return "either"
    if usual == 4 and are_scored(first_lines(source)):
        return "run"
    return "run" if usual >= 6 else "either" if usual == 5 else "truth" if usual in (3, 4) else None


def are_scored(lines: Iterable[bytes]) -> bool:
    """Return whether lines are `qid pid rank score`, which is a run without a header, not qrels with ranks as ids."""
    rows = [line.split() for line in lines]
    if any(len(cells) != 4 for cells in rows) or not any(b"." in cells[3] for cells in rows):
        return False
    return trec.are_ranked(b" ".join(cells[:3]) for cells in rows)


FORMATS = (
    Format("trec", look, trec.read_qrels, trec.read_run),
    Format("trec-subtopics", None, partial(trec.read_qrels, columns=trec.SUBTOPICS)),
    Format("trec-no-iter", None, partial(trec.read_qrels, columns=trec.WITHOUT_ITER)),
)

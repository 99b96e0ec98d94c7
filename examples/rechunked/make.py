"""Cut the handbook in three ways, and write the files to this folder.

The articles of a section are concatenated into one document. `articles.csv` lists each article's span in its document.
`fixed.jsonl`, `sentences.jsonl` and `pages.jsonl` are three corpora of chunks, with each chunk's span.
"""

import csv
import json
import re
from pathlib import Path

HERE = Path(__file__).parent
FIXED, OVERLAP = 500, 100
SENTENCES = 300
PAGE = 1800


def documents(corpus: Path) -> tuple[dict[str, str], list[tuple[str, str, int, int]]]:
    """Return {document: text}, and (article, document, start, end) for every article."""
    texts: dict[str, str] = {}
    places = []
    for line in corpus.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = re.sub(r"[^a-z0-9]+", "-", row["section"].lower()).strip("-")
        before = texts.get(name, "")
        start = len(before) + (2 if before else 0)
        article = f"{row['title']}\n{row['contents']}"
        texts[name] = before + ("\n\n" if before else "") + article
        places.append((row["doc_id"], name, start, start + len(article)))
    return texts, places


def fixed(text: str) -> list[tuple[int, int]]:
    """Return overlapping spans of the same length, regardless of where words and sentences end."""
    step = FIXED - OVERLAP
    return [(start, min(start + FIXED, len(text))) for start in range(0, max(len(text) - OVERLAP, 1), step)]


def packed(text: str, ends: list[int], most: int) -> list[tuple[int, int]]:
    """Return spans that end at one of `ends`. A span exceeds `most` characters only if it can't be split further."""
    cuts, start, last = [], 0, 0
    for end in ends:
        if end - start > most and last > start:
            cuts.append((start, last))
            start = last
        last = end
    return [*cuts, (start, last)] if last > start else cuts


def sentences(text: str) -> list[tuple[int, int]]:
    """Return spans of whole sentences."""
    return packed(text, [*(match.end() for match in re.finditer(r"[.!?]\s+|\n+", text)), len(text)], SENTENCES)


def pages(text: str) -> list[tuple[int, int]]:
    """Return spans of whole paragraphs."""
    return packed(text, [*(match.end() for match in re.finditer(r"\n\n", text)), len(text)], PAGE)


def main() -> None:
    """Write the files."""
    texts, places = documents(HERE.parent / "handbook" / "corpus.jsonl")
    with (HERE / "articles.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("chunk_id", "doc_id", "start", "end"), *places])
    for name, cut in (("fixed", fixed), ("sentences", sentences), ("pages", pages)):
        with (HERE / f"{name}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for document, text in texts.items():
                for number, (start, end) in enumerate(cut(text), 1):
                    row = {"doc_id": f"{document}-{name}-{number}", "contents": text[start:end]}
                    row |= {"doc": document, "start": start, "end": end}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

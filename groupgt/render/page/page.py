"""Write the report as a single HTML file that opens from disk, loads nothing else, and runs only its own scripts.

All user text is escaped or stored in blocks of compressed JSON. Scripts are allowed only by SHA-256 hash. Scripts only
place, sort, filter and draw. The page contains every number as an exact value, next to its final text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from groupgt.render.page.blocks import WRAPPING, Chunk, block, chunks_of, deflated, fit
from groupgt.render.page.data import Dataset, DatasetOnPage, Overview, Page, Sentence, Times
from groupgt.render.page.vendored import LIBRARIES, licenses
from groupgt.render.tables import fixed, span
from groupgt.render.themes import CONFIG, RANK_ENDS, RANKS, THEMES

FOLDER = Path(__file__).parent
VIEWS = ("overview", "systems", "previous", "comparison", "outcomes", "questions", "question")
SCRIPTS = ("base", "address", "figures", *VIEWS, "frame")
# Comments that take whole lines, and others between asterisks.
STARRED = rb"/\*(?:(?!\*/)(?s:.))*\*/"
COMMENTS = re.compile(rb"^[ \t]*(?://.*|" + STARRED + rb"[ \t]*)\n|" + STARRED + rb" ?", re.MULTILINE)
# Maximum size of a page that fits into an e-mail.
MAX_SIZE = 25_000_000
# Maximum number of systems in the table that works without scripts.
STATIC_SYSTEMS = 20
APART = ("questions", "details", "passages")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def page_bytes(page: Page, max_size: int = MAX_SIZE) -> bytes:
    """Return the complete file. Details beyond `max_size` are omitted, and the page says how many."""
    every = [chunks_of(dataset) for dataset in page["datasets"]]
    tables = dict(_tables(page))
    fixed_parts = [_opening(page["title"]), _main(page), *tables.values(), *_libraries().values(), _scripts()]
    times, overview = block(page["times"]), block(_overview(page, every, []))
    base = sum(len(part) + WRAPPING for part in fixed_parts) + len(times) + len(overview)
    left_out = fit(every, max_size - base)
    if base > max_size:
        left_out.append(f"nothing else, because the page takes up {base:,} bytes even without details")
    if left_out:
        overview = block(_overview(page, every, left_out))
    parts = [_main(page), _block("times", times), _block("page", overview), _scripts()]
    details = (_details(place, chunks) for place, chunks in enumerate(every))
    parts += [_block(name, data) for name, data in chain(tables.items(), *details)]
    return _document(page["title"], parts)


def _document(title: str, parts: Sequence[bytes]) -> bytes:
    libraries = (_block(f"library-{name}", data) for name, data in _libraries().items())
    return b"".join([_opening(title), b"<body>\n", *parts, *libraries, b"</body>\n</html>\n"])


def single_page(dataset: Dataset) -> bytes:
    """Build the page for a single data set without an experiment."""
    return page_bytes(untimed_page(dataset["name"], [dataset]))


def untimed_page(title: str, datasets: list[Dataset]) -> Page:
    """Return the data of a page without an experiment. The page shows no time except when it was generated."""
    made = datetime.now().astimezone().isoformat(timespec="seconds")
    times = Times(made=made, machine="", columns=[], systems={}, gates={}, drawings={}, verdict={})
    return Page(title=title, datasets=datasets, facts=[], across=[], overall=None, gates_title="", times=times)


def figure_page(text: str, table: str, template: Mapping[str, Any]) -> bytes:
    """Build a small page with one figure, its description, its data as an HTML table, and its template."""
    body = (
        f'<main id="main" class="single"><div id="figure" aria-hidden="true"></div><p>{html.escape(text)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="data">{table}</div></main>\n'
    )
    data = {"template": template, "config": CONFIG, "themes": THEMES}
    return _document(text[:100], [body.encode(), _block("figure-data", block(data)), _scripts()])


def _opening(title: str) -> bytes:
    texts = [*(_file(f"scripts/{name}.js") for name in SCRIPTS), *(each.text.encode() for each in LIBRARIES)]
    scripts = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in texts)
    policy = f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
    policy += "base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{_escaped(title)} · groupgt</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>{stylesheet()}</style>\n</head>\n"
    ).encode("utf-8", "replace")


def stylesheet() -> str:
    """Return the CSS shared by all pages."""
    themes = (THEMES[theme].items() for theme in ("light", "dark"))
    light, dark = ("".join(f"--{name}:{color};" for name, color in theme) for theme in themes)
    colors = f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    return colors + _file("page.css").decode()


def script(name: str) -> str:
    """Return one of the page's scripts, such as `base`."""
    return _file(f"scripts/{name}.js").decode()


@cache
def _file(name: str) -> bytes:
    """Return a file of the page without its comments, which are only for developers."""
    return COMMENTS.sub(b"", (FOLDER / name).read_bytes())


@cache
def _scripts() -> bytes:
    return b"".join(b"<script>" + _file(f"scripts/{name}.js") + b"</script>\n" for name in SCRIPTS)


@cache
def _libraries() -> dict[str, bytes]:
    texts = {each.package: each.text for each in LIBRARIES} | {"licenses": licenses()}
    return {name: deflated(text) for name, text in texts.items()}


def _block(name: str, data: bytes) -> bytes:
    return b'<script type="text/plain" id="%s">%s</script>\n' % (name.encode(), data)


def _overview(page: Page, every: list[list[Chunk]], left_out: list[str]) -> Overview:
    """Return the data for all views except the query view."""
    return {
        "title": page["title"],
        "facts": page["facts"],
        "across": page["across"],
        "overall": page["overall"],
        "gates_title": page["gates_title"],
        "left_out": left_out,
        "config": CONFIG,
        "themes": THEMES,
        "ranks": {"names": list(RANKS), "ends": list(RANK_ENDS)},
        "datasets": [_dataset(dataset, chunks) for dataset, chunks in zip(page["datasets"], every)],
    }


def _dataset(dataset: Dataset, chunks: list[Chunk]) -> DatasetOnPage:
    shown: Any = {key: value for key, value in dataset.items() if key not in APART}
    shown["count"] = len(dataset["questions"]["qids"])
    shown["chunks"] = [chunk.places if chunk.kept else [] for chunk in chunks]
    on_page: DatasetOnPage = shown
    return on_page


def _tables(page: Page) -> Iterator[tuple[str, bytes]]:
    """Yield blocks with the queries of each data set and the values of each metric."""
    for place, dataset in enumerate(page["datasets"]):
        queries = dataset["questions"]
        yield f"questions-{place}", block({key: value for key, value in queries.items() if key != "values"})
        named = "labels" if queries["by_labels"] else "values"
        for metric, values in enumerate(queries["values"]):
            yield f"{named}-{place}-{metric}", block(values)


def _details(place: int, chunks: list[Chunk]) -> Iterator[tuple[str, bytes]]:
    for number, chunk in enumerate(chunks):
        for name, data in (("details", chunk.details), ("passages", chunk.matter), ("others", chunk.others)):
            if chunk.kept and data:
                yield f"{name}-{place}-{number}", data


def _main(page: Page) -> bytes:
    """Return the content that is visible without scripts (the decision and the means of the primary metric)."""
    parts = [f"<h1>{_name(page['title'])}</h1>"]
    for dataset in page["datasets"]:
        if len(page["datasets"]) > 1:
            parts.append(f"<h2>{_name(dataset['name'])}</h2>")
        decision = dataset["decision"]
        parts.append(_sentence({"kind": "", "parts": decision["sentence"]}, decision["badge"]))
        parts += [f"<p>{_escaped(line)}</p>" for line in (" · ".join(decision["evidence"]), decision["note"]) if line]
        parts += [_sentence(sentence) for sentence in dataset["notes"]]
        parts.append(_static_table(dataset))
    parts.append("<noscript><p>Other views need JavaScript, which is embedded in this page.</p></noscript>")
    body = "\n".join(parts)
    return f'<div id="app"><main id="main">{body}</main></div>\n'.encode("utf-8", "replace")


def _static_table(dataset: Dataset) -> str:
    metric = dataset["metrics"][dataset["primary"]]
    rows = []
    for system in dataset["systems"][:STATIC_SYSTEMS]:
        mean, interval = system["means"][dataset["primary"]], system["intervals"][dataset["primary"]]
        cells = f"<td class='number'>{fixed(mean)}</td><td class='number'>{span(interval)}</td>"
        rows.append(f"<tr><th scope='row'>{_name(system['name'])}</th>{cells}</tr>")
    head = "".join(f"<th class='number'>{html.escape(text)}</th>" for text in (metric["label"], "interval"))
    return f"<table><thead><tr><th>system</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _sentence(sentence: Sentence, badge: str = "") -> str:
    parts = [f"<b>{_name(part)}</b>" if at % 2 else _escaped(part) for at, part in enumerate(sentence["parts"])]
    return f"<p>{f'<b>{badge}</b> ' if badge else ''}{''.join(parts)}</p>"


def _name(text: str) -> str:
    """Escape a name and isolate it, so that its text direction does not affect the rest of the sentence."""
    return f"<bdi>{_escaped(text)}</bdi>"


def _escaped(text: str) -> str:
    """Escape text and make control characters visible, including those for text direction."""
    return html.escape(CONTROLS.sub(lambda match: f"<U+{ord(match[0]):04X}>", text))

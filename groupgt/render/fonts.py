"""Fonts of pictures: which are installed, and an error for one that is not, because its text would be missing."""

from __future__ import annotations

import html
import os
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from groupgt.errors import ConfigError, near_names
from groupgt.render.tables import shortlist

# Where systems keep fonts: Linux, macOS, Windows.
FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.fonts",
    "~/.local/share/fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "~/Library/Fonts",
    "%WINDIR%/Fonts",
    "%LOCALAPPDATA%/Microsoft/Windows/Fonts",
)
ENDINGS = (".ttf", ".otf", ".ttc", ".otc")
# The number of the table's entries for a font's family.
FAMILY = 1


def check_font(font: str) -> None:
    """Raise `ConfigError`, with similar names, if pictures cannot have this font."""
    import vl_convert

    text = f'<text x="1" y="12" font-family="{html.escape(font)}">abc</text>'
    drawn = vl_convert.svg_to_pdf(f'<svg xmlns="http://www.w3.org/2000/svg" width="50" height="20">{text}</svg>')
    if b"/Font" not in drawn:
        names = families()
        near = near_names(font, names) or f"; installed: {shortlist(names, 12)}"
        raise ConfigError(f"font: expected an installed font, found {font!r}{near}")


@cache
def families() -> tuple[str, ...]:
    """Return the names of all installed fonts, sorted."""
    found: set[str] = set()
    for folder in FOLDERS:
        for path in Path(os.path.expandvars(folder)).expanduser().rglob("*"):
            if path.suffix.lower() in ENDINGS:
                try:
                    found.update(families_in(path.read_bytes()))
                except (OSError, struct.error, UnicodeDecodeError):
                    continue  # not a font after all
    return tuple(sorted(found))


def families_in(data: bytes) -> Iterator[str]:
    """Yield the families in a font file, which is one font or a collection of fonts."""
    starts: tuple[int, ...] = (0,)
    if data[:4] == b"ttcf":
        (count,) = struct.unpack_from(">I", data, 8)
        starts = struct.unpack_from(f">{count}I", data, 12)
    for start in starts:
        (tables,) = struct.unpack_from(">H", data, start + 4)
        for place in range(tables):
            tag, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * place)
            if tag == b"name":
                yield from _names(data, offset)


def _names(data: bytes, table: int) -> Iterator[str]:
    _, count, texts = struct.unpack_from(">HHH", data, table)
    for place in range(count):
        platform, _, _, kind, length, offset = struct.unpack_from(">6H", data, table + 6 + 12 * place)
        # The other platform, an old Macintosh, has encodings of its own.
        if kind == FAMILY and platform in (0, 3):
            start = table + texts + offset
            yield data[start : start + length].decode("utf-16-be")

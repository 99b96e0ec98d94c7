"""Fonts of pictures: those that are installed, found by the names in their files, and an error for any other."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from groupgt.errors import ConfigError
from groupgt.render import fonts
from groupgt.render.encodings import About
from groupgt.render.figures import forest
from tests.snapshots import Snapshot


def font_file(*families: str) -> bytes:
    """A font that holds only a table of names: of the family on Windows, of its style, and of an old Macintosh."""
    texts = [(3, 1, family.encode("utf-16-be")) for family in families]
    texts += [(3, 2, "Bold".encode("utf-16-be")), (1, 1, b"old")]
    records, data = b"", b""
    for platform, kind, text in texts:
        records += struct.pack(">6H", platform, 1, 0, kind, len(text), len(data))
        data += text
    table = struct.pack(">HHH", 0, len(texts), 6 + len(records)) + records + data
    entries = [(b"cmap", 0, 0, 0), (b"name", 0, 12 + 2 * 16, len(table))]
    return (
        struct.pack(">4sHHHH", b"OTTO", 2, 0, 0, 0) + b"".join(struct.pack(">4sIII", *each) for each in entries) + table
    )


def test_families_are_read_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.otf").write_bytes(font_file("Serif One", "Sérif"))
    (tmp_path / "broken.ttf").write_bytes(b"\0\1")
    (tmp_path / "notes.txt").write_text("no font")
    monkeypatch.setattr(fonts, "FOLDERS", (str(tmp_path), str(tmp_path / "none")))
    fonts.families.cache_clear()
    try:
        assert fonts.families() == ("Serif One", "Sérif")
    finally:
        fonts.families.cache_clear()


def test_families_of_a_collection() -> None:
    """Its head says where fonts start; tables are counted from the beginning of the file."""
    inner, start = font_file("Two"), 16
    head = b"ttcf" + struct.pack(">III", 0x10000, 1, start)
    (offset,) = struct.unpack_from(">I", inner, 12 + 16 + 8)
    moved = inner[: 12 + 16 + 8] + struct.pack(">I", offset + start) + inner[12 + 16 + 12 :]
    assert list(fonts.families_in(head + moved)) == ["Two"]


def test_a_font_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    pytest.importorskip("vl_convert", reason="pip install 'groupgt[plots]'")
    monkeypatch.setattr(fonts, "families", lambda: ("Courier", "DejaVu Sans"))
    rows = [{"name": "one", "value": 0.5, "low": 0.4, "high": 0.6}]
    figure = forest(rows, About("ndcg@10", 3, "coverage", "default policy"))
    for ending in ("pdf", "png", "svg"):
        with snapshot.raises(ConfigError):
            figure.styled(font="DejaVu Sanz").save(tmp_path / f"one.{ending}")
    with pytest.raises(ConfigError, match="found 'Qwx'; installed: Courier, DejaVu Sans"):
        figure.styled(font="Qwx").save(tmp_path / "one.pdf")
    assert list(tmp_path.iterdir()) == []
    # A list of fonts needs one of them, and a specification none.
    figure.styled(font="Qwx, sans-serif").save(tmp_path / "one.pdf")
    assert b"/Font" in (tmp_path / "one.pdf").read_bytes()
    figure.styled(font="Qwx").save(tmp_path / "one.json")

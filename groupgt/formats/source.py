"""Bytes of a file, made ready to be understood: decompressed by magic number, checked, decoded, cut into lines."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from groupgt.errors import DataError, GroupgtWarning, near_names

__all__ = ["LONGEST_ID", "Source", "bad_id"]

LONGEST_ID = 1 << 16
GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
# Below this many bytes, reading in Python is done before polars is imported.
SMALL = 8 << 20


@dataclass(frozen=True, eq=False)
class Source:
    """One file; it is opened when its content is first asked for."""

    path: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Source:
        """The file or folder at a path; raises `DataError` where there is none."""
        found = Path(path)
        if not found.exists():
            raise DataError(f"{found}: there is no such file{_neighbours(found)}")
        return cls(found)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @cached_property
    def magic(self) -> bytes:
        """The first bytes as they lie on disk."""
        try:
            with self.path.open("rb") as file:
                return file.read(4)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    @property
    def is_parquet(self) -> bool:
        """Whether it is a parquet file."""
        return self.magic == PARQUET

    @cached_property
    def is_large(self) -> bool:
        """Whether polars pays for its import."""
        compressed = self.magic[:2] == GZIP or self.magic == ZSTD
        return self.path.stat().st_size > (SMALL // 8 if compressed else SMALL)

    @cached_property
    def data(self) -> bytes:
        """The content, decompressed, without a byte order mark; raises `DataError` for UTF-16 and damage."""
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        return self._checked(self._decompressed(raw))

    def head(self, size: int = 1 << 16) -> bytes:
        """The first bytes of the content, without reading the rest where that can be avoided."""
        if "data" in self.__dict__ or not self.is_large:
            return self.data[:size]
        if self.magic[:2] == GZIP:
            import gzip

            try:
                with gzip.open(self.path) as file:
                    return self._checked(file.read(size))
            except (OSError, EOFError):
                return self.data[:size]
        if self.magic == ZSTD:
            return self.data[:size]
        with self.path.open("rb") as plain:
            return self._checked(plain.read(size))

    def _decompressed(self, raw: bytes) -> bytes:
        if raw[:2] == GZIP:
            import gzip
            import zlib

            try:
                return gzip.decompress(raw)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"{self.path}: the gzip data is damaged or cut off: {error}") from None
        if raw[:4] == ZSTD:
            import zstandard

            try:
                with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
                    content = bytes(reader.read())
                if not _zstd_whole(raw):
                    raise zstandard.ZstdError("the last frame is not complete")
                return content
            except zstandard.ZstdError as error:
                raise DataError(f"{self.path}: the zstd data is damaged or cut off: {error}") from None
        return raw

    def _checked(self, data: bytes) -> bytes:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{self.path}:1: expected UTF-8, found UTF-16; save the file as UTF-8")
        return data.removeprefix(b"\xef\xbb\xbf")

    def check_text(self) -> None:
        """Raises `DataError` with the line of the first byte that is not UTF-8, or NUL."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = self.data[error.start]
            raise DataError(
                f"{self.path}:{self.line_at(error.start)}: expected UTF-8, found the byte 0x{byte:02x} "
                f"({error.reason}); save the file as UTF-8"
            ) from None
        at = self.data.find(b"\0")
        if at >= 0:
            raise DataError(f"{self.path}:{self.line_at(at)}: found a NUL character; remove it")

    def line_at(self, offset: int) -> int:
        """The number of the line, from 1, at an offset of the content."""
        return self.data.count(b"\n", 0, offset) + 1

    def lines(self) -> list[bytes]:
        """The lines of a checked text, without their ends."""
        return self._lines

    @cached_property
    def _lines(self) -> list[bytes]:
        self.check_text()
        lines = self.data.split(b"\n")
        if b"\r" in self.data:
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines

    def warn_if_empty(self, what: str) -> None:
        """Warns where there is no line with anything in it."""
        if not self.data.strip():
            import warnings

            warnings.warn(f"{self.path}: the file is empty: 0 {what}", GroupgtWarning, stacklevel=3)


def _zstd_whole(raw: bytes) -> bool:
    """Whether the last frame ends: a stream reader says nothing of a frame that is cut off."""
    import zstandard

    rest = raw
    while rest:
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        decompressor.decompress(rest)
        if not decompressor.eof:
            return False
        rest = decompressor.unused_data
    return True


def _neighbours(path: Path) -> str:
    try:
        return near_names(path.name, [each.name for each in path.parent.iterdir()])
    except OSError:
        return ""


def bad_id(name: str) -> str | None:
    """What is wrong with an id read from a file, or None.

    >>> bad_id("doc-1"), bad_id("a\\ud800")
    (None, 'holds a lone surrogate, which is no character')
    """
    if not name.strip():
        return "is blank"
    if len(name) > LONGEST_ID // 4 and len(name.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        return f"is longer than {LONGEST_ID:,} bytes"
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        return "holds a lone surrogate, which is no character"
    if "\0" in name:
        return "holds a NUL character"
    return None

"""Opens files and pipes, decompresses them (detected by magic number), decodes them, and splits them into lines.

Small files are read before polars is imported, large ones as columns, and huge ones are never entirely in memory.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property, lru_cache
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from groupgt.errors import DataError, display, near_names, warn
from groupgt.records import record
from groupgt.runtime import resident, zstd

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Above this many bytes of content, polars is worth its import.
SMALL = 8 << 20
# Above this many bytes, content is not kept in memory as a whole.
HUGE = 512 << 20
# How many times larger the content of a compressed file is, at least: an assumption.
PACKED = 8
PIECE = 1 << 20
# The most blank lines that are skipped, and the bytes of the beginning of a file, with a first line of any length.
BLANK_LINES = 100
HEAD, LONGEST_HEAD = 1 << 16, 1 << 26
# The bytes of zstd that are decompressed at a time: few, so that the output is some tens of megabytes at most.
ZSTD_PIECE = 1 << 11
T = TypeVar("T")
AnyPath = str | os.PathLike[str]
STANDARD_INPUT = "-"
# The cells of a row or an object, by their keys.
Record = dict[str, Any]
# Removes the carriage return that ends lines in some files.
_without_return = methodcaller("removesuffix", b"\r")


@record
class Source:
    """A file or folder that is opened when its content is first needed; a pipe is read only once.

    `ceiling` is the maximum number of bytes of content to keep in memory (0: no limit). `columns` and `tool_spans` are
    declared by the user, and `piped` is the content of standard input.
    """

    path: Path
    streamed: bool = False
    ceiling: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    tool_spans: Mapping[str, str] = field(default_factory=dict)
    piped: bytes | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, path: AnyPath) -> Source:
        """Return the source at a path, or raise `DataError` if it is missing, or not a file, folder or pipe."""
        if isinstance(path, Source):
            return path
        text = os.fspath(path)
        if not text.strip():
            raise DataError(f"expected a file path, found the empty string {text!r}")
        location = Path(text)
        if text == STANDARD_INPUT:
            return cls(location, piped=_content_of(sys.stdin))
        try:
            mode = location.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise DataError(f"{location}: file not found{neighbors(location)}") from None
        except (OSError, ValueError) as error:
            raise _unreadable(display(text), error) from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
            raise DataError(f"{location}: expected a file, a folder or a pipe, found a device")
        return cls(location)

    def __fspath__(self) -> str:
        return str(self.path)

    def cached(self, read: Callable[[Source], T]) -> T:
        """Return the result of `read`, and call `read` only once."""
        if read not in self._cache:
            self._cache[read] = read(self)
        result: T = self._cache[read]
        return result

    @cached_property
    def is_pipe(self) -> bool:
        """True if the source can be read only once."""
        return self.piped is not None or self.path.is_fifo()

    @cached_property
    def magic(self) -> bytes:
        """The first bytes of the file as stored on disk."""
        if self.path.is_dir():
            return b""
        with self._opened() as file:
            return file.read(4)

    @property
    def is_parquet(self) -> bool:
        """True if the source is a parquet file."""
        return self.magic == PARQUET

    @property
    def is_json(self) -> bool:
        """True if the content begins like JSON, with an object or an array."""
        return not self.is_parquet and self.head().lstrip()[:1] in (b"{", b"[")

    @property
    def is_compressed(self) -> bool:
        """True if the source is compressed with gzip or zstd."""
        return self.magic[:2] == GZIP or self.magic == ZSTD

    @cached_property
    def is_large(self) -> bool:
        """True if the source is read as columns."""
        if self.streamed or self.is_huge:
            return True
        return (len(self.data) if self.is_unpacked else self.path.stat().st_size) > SMALL

    @cached_property
    def is_huge(self) -> bool:
        """True if the content is too large to keep in memory."""
        if self.is_pipe:
            return False
        limit = min(HUGE, self.ceiling // 2) if self.ceiling else HUGE
        size = self.path.stat().st_size
        if not self.is_compressed:
            return size > limit
        if size > limit // PACKED or (content := self._content(limit)) is None:
            return True
        vars(self)["data"] = content
        return False

    @property
    def is_unpacked(self) -> bool:
        """True if the full content is read or decompressed into memory before use."""
        return (self.is_pipe or self.is_compressed) and not self.is_huge

    @cached_property
    def data(self) -> bytes:
        """The full content without a byte order mark. Raises `DataError` if content is UTF-16, damaged or too large."""
        return self._content() or b""

    def _content(self, limit: int | None = None) -> bytes | None:
        """Return the full content, or None if it is larger than the limit."""
        if not (self.is_pipe or self.is_compressed or self.ceiling or limit is not None):
            with self._opened() as file:
                return self._without_mark(file.read())
        pieces, size = [], 0
        for piece in self.pieces():
            size += len(piece)
            if limit is not None and size > limit:
                return None
            self._check_room(size)
            pieces.append(piece)
        return b"".join(pieces)

    def _check_room(self, size: int) -> None:
        if 0 < self.ceiling < size:
            what = f"the content exceeds the memory limit of {bytes_text(self.ceiling)}"
            raise DataError(f"{self.path}: {what}; raise the limit, or save the data as parquet")

    @property
    def for_polars(self) -> Path | bytes:
        """The input for polars: a path, or the content if it is in memory. Polars decompresses huge files itself."""
        return self.data if self.is_unpacked else self.path

    @property
    def in_memory(self) -> bool:
        """True if the full content is in memory."""
        return "data" in self.__dict__

    def head(self) -> bytes:
        """Return the first bytes of the content: at least `HEAD`, and the full first line unless it is too long."""
        if self.in_memory or self.is_unpacked:
            end = self.data.find(b"\n", HEAD, LONGEST_HEAD)
            return self.data[: HEAD if b"\n" in self.data[:HEAD] else end if end >= 0 else LONGEST_HEAD]
        content = b""
        for piece in self.pieces(HEAD):
            content += piece
            if len(content) >= HEAD and (b"\n" in content or len(content) >= LONGEST_HEAD):
                break
        return content

    @cached_property
    def first_line(self) -> bytes:
        """The first line that is not blank, without its line ending."""
        lines = self.head().split(b"\n", BLANK_LINES)
        return next((line.removesuffix(b"\r") for line in lines[:BLANK_LINES] if line.strip()), b"")

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """Yield the content in pieces, decompressed and without a byte order mark, or raise `DataError`."""
        if self.in_memory:
            yield from (self.data[start : start + size] for start in range(0, len(self.data), size))
            return
        content, begin = self._decompressed(size), b""
        while len(begin) < len(BYTE_ORDER_MARK) and (piece := next(content, b"")):
            begin += piece
        yield self._without_mark(begin)
        yield from content

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The start and end offsets of content that is read in parts. Raises `DataError` for UTF-16."""
        if self.in_memory or self.is_unpacked:
            return 0, len(self.data)
        with self._opened() as file:
            begin = file.read(len(BYTE_ORDER_MARK))
        return len(begin) - len(self._without_mark(begin)), self.path.stat().st_size

    def part(self, low: int, high: int) -> bytes | memoryview:
        """Return the content between two offsets, or raise `DataError` if it no longer exists."""
        if self.in_memory:
            return memoryview(self.data)[low:high]
        with self._opened() as file:
            file.seek(low)
            part = file.read(high - low)
        if len(part) < high - low:
            raise DataError(f"{self.path}: the file was truncated while being read")
        return part

    def _without_mark(self, begin: bytes) -> bytes:
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataError(f"{self.path}:1: expected UTF-8, found UTF-16; save the file as UTF-8")
        return begin.removeprefix(BYTE_ORDER_MARK)

    def _decompressed(self, size: int) -> Iterator[bytes]:
        with self._opened() as file:
            if not self.is_compressed:
                yield from iter(lambda: file.read(size), b"")
                return
            import gzip
            import zlib

            kind, unpacked = "zstd", _unpacked_zstd(file)
            if self.magic != ZSTD:
                content = gzip.GzipFile(fileobj=file)
                kind, unpacked = "gzip", iter(lambda: content.read(size), b"")
            try:
                yield from unpacked
            except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
                raise DataError(f"{self.path}: the {kind} data is damaged or cut off: {error}") from None

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """Open the file as stored on disk, or the content of a pipe, which is kept. Report system errors."""
        try:
            with io.BytesIO(self._piped) if self.is_pipe else self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise _unreadable(self.path, error) from None

    @cached_property
    def _piped(self) -> bytes:
        return self.path.read_bytes() if self.piped is None else self.piped

    def lines(self, *, keep: bool = False) -> Iterable[bytes]:
        """Return the lines without line endings. If the caller will `keep` the lines in memory, the ceiling applies."""
        if self.is_huge or (keep and self.ceiling):
            return map(_without_return, self.raw_lines(keep=keep))
        return self._lines

    @cached_property
    def _lines(self) -> list[bytes]:
        self.check_text()
        lines = self.data.split(b"\n")
        return list(map(_without_return, lines)) if b"\r" in self.data else lines

    def located_lines(self) -> Iterator[tuple[str, str]]:
        """Yield each line that is not blank, with its location."""
        for number, line in enumerate(self.lines(keep=True), 1):
            if line.strip():
                yield f"{self.path}:{number}", line.decode()

    def raw_lines(self, *, keep: bool = False) -> Iterator[bytes]:
        """Stream the lines, including carriage returns."""
        number, size = 1, 0
        begin: list[bytes] = []
        for piece in chain(self.pieces(), (b"\n",)):
            if keep and self.ceiling:
                size += len(piece)
                # The Python objects of a line may take ten times its bytes.
                self._check_room(max(size, resident()))
            end = piece.rfind(b"\n")
            if end < 0:
                begin.append(piece)
                self._check_room(sum(map(len, begin)))
                continue
            block = b"".join((*begin, piece[:end]))
            self._check_text(block, number)
            lines = block.split(b"\n")
            number += len(lines)
            yield from lines
            begin = [piece[end + 1 :]]

    def check_text(self) -> None:
        """Raise `DataError` with the line of the first byte that is NUL or not UTF-8."""
        self._check_text(self.data, 1)

    def _check_text(self, data: bytes, first_line: int) -> None:
        try:
            if not data.isascii():
                data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = first_line + data.count(b"\n", 0, error.start)
            found = f"found the byte 0x{data[error.start]:02x} ({error.reason})"
            raise DataError(f"{self.path}:{line}: expected UTF-8, {found}; save the file as UTF-8") from None
        nul = data.find(b"\0")
        if nul >= 0:
            line = first_line + data.count(b"\n", 0, nul)
            raise DataError(f"{self.path}:{line}: found a NUL character; remove it")

    @property
    def is_blank(self) -> bool:
        """True if every line of a file is blank."""
        return not self.path.is_dir() and all(not piece or piece.isspace() for piece in self.pieces())

    def warn_if_empty(self, what: str) -> None:
        """Warn if every line is blank."""
        if self.is_blank:
            warn(f"{self.path}: the file is empty (0 {what})")


def _unpacked_zstd(file: BinaryIO) -> Iterator[bytes]:
    packed = file.read(ZSTD_PIECE)
    while packed:
        frame = zstd.ZstdDecompressor()
        while not frame.eof:
            if not packed:
                raise zstd.ZstdError("the last frame is not complete")
            if content := frame.decompress(packed):
                yield content
            packed = b"" if frame.eof else file.read(ZSTD_PIECE)
        packed = frame.unused_data or file.read(ZSTD_PIECE)


@lru_cache(maxsize=1)
def _content_of(stream: TextIO) -> bytes:
    """Read a stream that a command may open more than once."""
    return stream.buffer.read()


def bytes_text(size: int) -> str:
    """Format a number of bytes for a message."""
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _unreadable(path: object, error: Exception) -> DataError:
    return DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")


def neighbors(path: Path) -> str:
    """List files with similar names, whatever their endings, in the folder of a missing file."""
    try:
        names = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        return ""
    stem = path.name.partition(".")[0]
    return near_names(path.name, [name for name in names if near_names(stem, [name.partition(".")[0]])])

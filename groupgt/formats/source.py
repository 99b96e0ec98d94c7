"""Bytes of a file, made ready to be understood: decompressed by magic number, checked, decoded, cut into lines."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from groupgt.errors import DataError, GroupgtWarning, display, near_names

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
# Below this many bytes, reading in Python is done before polars is imported.
SMALL = 8 << 20
# Above this many, a file is not read as a whole.
HUGE = 512 << 20
CHUNK, LINE = 1 << 20, 1 << 15
NEWLINE, RETURN, BLANK = 10, 13, 32


@dataclass(frozen=True, eq=False)
class Source:
    """One file or folder; it is opened when its content is first asked for, a pipe is read once.

    `streamed` says that it is to be read as columns, however small it is.
    """

    path: Path
    streamed: bool = False

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Source:
        """The file or folder at a path; raises `DataError` where there is none, or what cannot be read to its end."""
        if isinstance(path, Source):
            return path
        text = os.fspath(path)
        if not text.strip():
            raise DataError(f"expected the path of a file, found the empty text {text!r}")
        found = Path(text)
        try:
            mode = found.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise DataError(f"{found}: there is no such file{_neighbours(found)}") from None
        except (OSError, ValueError) as error:
            raise DataError(f"{display(text)}: cannot be read: {_reason(error)}") from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
            raise DataError(f"{found}: expected a file, a folder or a pipe, found a device")
        return cls(found)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @cached_property
    def is_pipe(self) -> bool:
        """Whether it can be read only once."""
        return self.path.is_fifo()

    @cached_property
    def raw(self) -> bytes:
        """All bytes as they lie on disk, or came through the pipe."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {_reason(error)}") from None

    @cached_property
    def magic(self) -> bytes:
        """The first bytes as they lie on disk."""
        if self.is_pipe or self.is_folder:
            return b"" if self.is_folder else self.raw[:4]
        try:
            with self.path.open("rb") as file:
                return file.read(4)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {_reason(error)}") from None

    @property
    def is_parquet(self) -> bool:
        """Whether it is a parquet file."""
        return self.magic == PARQUET

    @property
    def is_compressed(self) -> bool:
        """Whether it is gzip or zstd."""
        return self.magic[:2] == GZIP or self.magic == ZSTD

    @cached_property
    def is_large(self) -> bool:
        """Whether polars pays for its import; where it is imported, for its start."""
        if self.streamed:
            return True
        least = SMALL // 32 if "polars" in sys.modules else SMALL
        if self.is_pipe:
            return len(self.data) > least
        return self.path.stat().st_size > (least // 8 if self.is_compressed else least)

    @cached_property
    def is_huge(self) -> bool:
        """Whether it should not be held as a whole."""
        return not self.is_pipe and self.path.stat().st_size > (HUGE // 8 if self.is_compressed else HUGE)

    @cached_property
    def data(self) -> bytes:
        """The content, decompressed, without a byte order mark; raises `DataError` for UTF-16 and damage."""
        return self._checked(self._decompressed(self.raw))

    @property
    def for_polars(self) -> Path | bytes:
        """What polars may read: the path of a plain file, else the content, which is decompressed and checked here."""
        return self.data if self.is_compressed or self.is_pipe else self.path

    def holds_nul(self) -> bool:
        """Whether a NUL occurs: by a search through the mapped file."""
        if not isinstance(self.for_polars, Path):
            return b"\0" in self.data
        import mmap

        with self.path.open("rb") as file:
            if not self.path.stat().st_size:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                return mapped.find(b"\0") >= 0

    def is_plain_table(self, separator: str) -> bool:
        """Whether columns stand where a separator says: no other white space, control character or empty cell.

        One pass over the bytes, on all processors: some per cent of reading the file. False as well where 32 KiB go by
        without a line end, so that no cell is longer than twice that.
        """
        import numpy as np

        if not isinstance(self.for_polars, Path):
            content = np.frombuffer(self.data, dtype=np.uint8)
        elif not self.path.stat().st_size:
            return True
        else:
            content = np.memmap(self.path, dtype=np.uint8, mode="r")
        ends_with_return = self.head().split(b"\n", 1)[0].endswith(b"\r")

        def plain(start: int) -> bool:
            # One byte more at the front, so that pairs across chunks are seen.
            part = content[max(start - 1, 0) : start + CHUNK]
            lines, cells = part == NEWLINE, part == ord(separator)
            white = (part <= BLANK) if separator == " " else (part < BLANK)
            known = lines | cells
            if ends_with_return:
                known |= part == RETURN
            if not np.array_equal(white, known & white) or (separator != " " and bool((part == BLANK).any())):
                return False
            if (start == 0 and bool(cells[0])) or bool((cells[1:] & known[:-1]).any()):
                return False
            whole = len(lines) // LINE * LINE
            return bool(lines[:whole].reshape(-1, LINE).any(axis=1).all())

        with ThreadPoolExecutor(os.cpu_count()) as workers:
            return all(workers.map(plain, range(0, len(content), CHUNK)))

    def head(self, size: int = 1 << 16) -> bytes:
        """The first bytes of the content, without reading the rest where that can be avoided."""
        if self.is_huge and self.is_compressed:
            return self._checked(self._first(size))
        if "data" in self.__dict__ or self.is_compressed or self.is_pipe or not self.is_large:
            return self.data[:size]
        with self.path.open("rb") as plain:
            return self._checked(plain.read(size))

    def _first(self, size: int) -> bytes:
        """The first bytes of what is compressed."""
        import gzip
        import zlib

        import zstandard

        try:
            with self.path.open("rb") as file:
                if self.magic[:2] == GZIP:
                    return gzip.GzipFile(fileobj=file).read(size)
                with zstandard.ZstdDecompressor().stream_reader(file) as reader:
                    return reader.read(size)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise DataError(f"{self.path}: the compressed data is damaged or cut off: {error}") from None

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

            parts, rest = [], raw
            try:
                # Frame by frame: a stream reader says nothing of a frame that is cut off.
                while rest:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                    parts.append(frame.decompress(rest))
                    if not frame.eof:
                        raise zstandard.ZstdError("the last frame is not complete")
                    rest = frame.unused_data
            except zstandard.ZstdError as error:
                raise DataError(f"{self.path}: the zstd data is damaged or cut off: {error}") from None
            return b"".join(parts)
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


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _neighbours(path: Path) -> str:
    try:
        return near_names(path.name, [each.name for each in path.parent.iterdir()])
    except OSError:
        return ""

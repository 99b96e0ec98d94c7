"""Checks the page checksums of a parquet file where its writer put any; polars reads over them."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from groupgt.errors import DataError

# Field numbers of parquet.thrift.
ROW_GROUPS, ROWS, COLUMNS, META, PATH, SIZE, DATA_PAGE, DICTIONARY_PAGE = 4, 3, 1, 3, 3, 7, 9, 11
PAGE_SIZE, PAGE_CRC = 3, 4


def check_pages(path: Path) -> None:
    """Raises `DataError` where a page does not match its checksum, or the footer makes no sense.

    A file whose first page has no checksum is taken to have none at all: it costs one page header to find out.
    """
    try:
        with path.open("rb") as file:
            file.seek(-8, 2)
            tail = file.read(8)
            if tail[4:] != b"PAR1":
                raise DataError(f"{path}: the parquet footer is missing: the file is damaged or cut off")
            size = int.from_bytes(tail[:4], "little")
            file.seek(-8 - size, 2)
            footer = _Compact(file.read(size)).struct()
            for group in footer.get(ROW_GROUPS, []):
                if not group.get(ROWS, 1):
                    continue
                for column in group[COLUMNS]:
                    meta = column[META]
                    start = min(meta[DATA_PAGE], meta.get(DICTIONARY_PAGE) or meta[DATA_PAGE])
                    file.seek(start)
                    if not _check_chunk(file.read(meta[SIZE]), path, meta[PATH][0].decode(), start):
                        return
    except (OSError, ArithmeticError, AttributeError, LookupError, ValueError, TypeError, RecursionError, MemoryError):
        raise DataError(f"{path}: the parquet file is damaged or cut off") from None


def _check_chunk(data: bytes, path: Path, column: str, start: int) -> bool:
    """Checks the pages of one column chunk; False where they have no checksums."""
    at = 0
    while at < len(data):
        reader = _Compact(data, at)
        header = reader.struct()
        if PAGE_CRC not in header:
            return False
        end = reader.at + header[PAGE_SIZE]
        if zlib.crc32(data[reader.at : end]) != header[PAGE_CRC] & 0xFFFFFFFF:
            raise DataError(
                f"{path}: the page of column {column!r} at byte {start + at:,} does not match its checksum: "
                "the file is damaged; get it again from where it came"
            )
        at = end
    return True


class _Compact:
    """As much of Thrift's compact protocol as parquet's metadata needs."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError("the data ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.signed()
        if kind == 7:
            return self.take(8)
        if kind == 8:
            return self.take(self.unsigned())
        if kind in (9, 10):
            head = self.byte()
            size = self.unsigned() if head >> 4 == 15 else head >> 4
            inner = head & 15
            return [self.byte() == 1 if inner in (1, 2) else self.value(inner) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"unknown type {kind}")

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.signed()
            fields[number] = self.value(head & 15)

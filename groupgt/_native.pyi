"""The compiled module; what its functions take and return is said in `groupgt.native`."""

from typing import Any

source: str

def index(
    qids: list[str], rows: list[Any], seed: int
) -> tuple[list[str], bytes, bytes, bytes | None, bytes, bytes] | None: ...
def probe(
    rankings: dict[Any, Any], scores: dict[Any, Any] | None, qids: list[str], index: bytes, by_id: bool, distinct: bool
) -> tuple[bytes, bytes]: ...
def scan(
    data: bytes | bytearray | memoryview, index: bytes, mode: int, by_id: bool, base: int, hits: bytes
) -> tuple[bytes, bytes, int]: ...

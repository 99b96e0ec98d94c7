"""Every bit of every page header, flipped: an error or the same figures, and never the end of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLIPS = """
import sys
from pathlib import Path
import groupgt
from groupgt.formats import parquet

path = Path(sys.argv[1])
whole = path.read_bytes()
truth, metrics = {"q1": [["d1"], ["d2"]], "q2": [["d3"]]}, ["recall@1", "mrr", "ndcg"]
plain = groupgt.evaluate(truth, path, metrics).means
end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
footer = parquet._Compact(whole[end:-8]).struct()
headers = []
for column in footer[parquet.ROW_GROUPS][0][parquet.COLUMNS]:
    meta = column[parquet.META]
    at = min(offset for offset in (meta[parquet.DATA_OFFSET], meta.get(parquet.DICTIONARY_OFFSET)) if offset)
    last = at + meta[parquet.PACKED]
    while at < last:
        reader = parquet._Compact(whole, at)
        header = reader.struct()
        headers.append((at, reader.at))
        at = reader.at + header[parquet.PAGE_PACKED]
count = refused = 0
flipped = path.with_name("flipped.parquet")
for first, last in headers:
    for at in range(first, last):
        for bit in range(8):
            data = bytearray(whole)
            data[at] ^= 1 << bit
            flipped.write_bytes(data)
            count += 1
            print(at, bit, file=sys.stderr, flush=True)
            try:
                groupgt.evaluate(truth, flipped, metrics)
            except groupgt.GroupgtError:
                refused += 1
print(count, refused, len(headers))
"""


@pytest.mark.faults
@pytest.mark.parametrize("writer", ["polars", "pyarrow 1.0", "pyarrow 2.0"])
def test_every_bit_of_every_page_header(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    columns = {
        "qid": ["q1", "q1", "q1", "q2", "q2"],
        "doc_id": ["d1", "x", "d2", "y", "d3"],
        "score": [3.0, 2.0, 1.0, 2.0, 1.5],
    }
    if writer == "polars":
        import polars

        polars.DataFrame(columns).write_parquet(path)
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns), path, data_page_version=writer.split()[1])
    done = subprocess.run([sys.executable, "-c", FLIPS, str(path)], capture_output=True, text=True, check=False)
    # What was flipped last stands at the end.
    assert done.returncode == 0, done.stderr[-500:]
    count, refused, headers = map(int, done.stdout.split())
    assert headers >= 3
    assert refused > count // 2

"""Two questions, two runs and a corpus, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

TRUTH = """\
{"qid": "q1", "query": "one?", "retrieval_gt": [["a", "b"], ["c"]], "type": "x"}
{"qid": "q2", "query": "two?", "retrieval_gt": [["d"]], "type": "y"}
"""
RUN = "q1 Q0 a 1 4 t\nq1 Q0 x 2 3 t\nq1 Q0 c 3 2 t\nq2 Q0 e 1 2 t\nq2 Q0 d 2 1 t\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "qa.jsonl").write_text(TRUTH)
    (tmp_path / "bm25.trec").write_text(RUN)
    (tmp_path / "other.trec").write_text(RUN.replace("q1 Q0 a", "q1 Q0 y"))
    (tmp_path / "corpus.jsonl").write_text(
        '{"doc_id": "a", "contents": "text of a"}\n{"doc_id": "d", "contents": "text of d"}\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path

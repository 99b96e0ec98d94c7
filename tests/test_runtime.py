"""What groupgt asks of the Python process, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKS = """
import os, sys, warnings
warnings.simplefilter("ignore")
import groupgt
import polars
truth, lists = {"q": [["a"]]}, {"q": ["a"]}
frame = polars.DataFrame({"qid": ["q"], "doc_id": ["a"], "score": [1.0]})
if sys.argv[1] == "worked":
    print(groupgt.evaluate(truth, frame, ["mrr"])["mrr"], flush=True)
child = os.fork()
if not child:
    print(groupgt.evaluate(truth, lists, ["mrr"])["mrr"], flush=True)
    try:
        print(groupgt.evaluate(truth, frame, ["mrr"])["mrr"], flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("state", ["worked", "imported"])
def test_a_fork_after_polars_began_is_told_and_does_not_hang(state: str) -> None:
    told = subprocess.run([sys.executable, "-c", FORKS, state], capture_output=True, text=True, timeout=120, check=True)
    lines = told.stdout.splitlines()
    if state == "worked":
        # Lists need no polars; frames would wait without end.
        assert lines[:2] == ["1.0", "1.0"]
        assert "forked" in lines[2]
        assert "spawn" in lines[2]
    elif sys.platform == "linux":
        assert lines == ["1.0", "1.0"]

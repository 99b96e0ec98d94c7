"""Checks an implementation against the cases: `python docs/conformance/check.py MODULE:FUNCTION [--only TEXT]`.

Needs only Python. The function is called as `function(truth, ranking, metric)`: the groups, the ids, and an entry of
`metrics` with `name`, `convention`, `parameters` and `k`. It returns a number, or None if the value is undefined. If it
raises `NotImplementedError`, the case is skipped. The exit status is 1 if a value differs, or if none was compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def differences(function, only="", tolerance=1e-9):
    """The number of values that were compared and skipped, and a line for each that differs."""
    content = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    compared, skipped, lines = 0, 0, []
    for number, case in enumerate(content["cases"], 1):
        for text, expected in case["values"].items():
            if only not in text:
                continue
            try:
                value = function(case["truth"], case["ranking"], content["metrics"][text])
            except NotImplementedError:
                skipped += 1
                continue
            compared += 1
            if value is None or expected is None:
                same = value is None and expected is None
            else:
                same = math.isclose(value, expected, rel_tol=0, abs_tol=tolerance)
            if not same:
                lines.append(f"case {number}: {text}: expected {expected}, found {value}")
    return compared, skipped, lines


def main():
    """Print every value that differs, and how many were compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODULE:FUNCTION")
    parser.add_argument("--only", default="", metavar="TEXT", help="only metrics whose name contains TEXT")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    arguments = parser.parse_args()
    module, _, name = arguments.function.partition(":")
    sys.path.insert(0, "")
    function = getattr(importlib.import_module(module), name)
    compared, skipped, lines = differences(function, arguments.only, arguments.tolerance)
    lines.append(f"{compared} values compared, {len(lines)} differ, {skipped} skipped")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(1 if len(lines) > 1 or not compared else 0)


if __name__ == "__main__":
    main()

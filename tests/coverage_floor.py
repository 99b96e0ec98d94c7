"""Whether the tests reach enough of the package: `python -m tests.coverage_floor`, after `coverage combine`.

Where figures come from, every line and every branch; of the rest at least `FLOOR` percent. Modules that need what is
not installed here are left out of the count. What is missing is named as file:line.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Percent of the lines and branches of all other modules together.
FLOOR = 90
WHOLE = (
    "groupgt/metrics/*",
    "groupgt/model/policy.py",
    "groupgt/model/validity.py",
    "groupgt/formats/validity.py",
    "groupgt/labellers/*",
)
# What a module does nothing without.
NEEDS = {
    "groupgt/curation/near.py": ("rapidfuzz",),
    "groupgt/engines/arrow.py": ("pyarrow",),
    "groupgt/engines/spark/*": ("pyspark", "java"),
    "groupgt/retrievers/pgvector.py": ("psycopg", "pgserver"),
    "groupgt/retrievers/tfidf.py": ("sklearn",),
}


def is_here(need: str) -> bool:
    """Whether a package is installed, or Java."""
    return shutil.which("java") is not None if need == "java" else find_spec(need) is not None


def matches(file: str, patterns: Any) -> bool:
    """Whether a file is one of these."""
    return any(fnmatch(file, pattern) for pattern in patterns)


def counted(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files that count, by their path below the root, from coverage.py's report as JSON."""
    absent = [pattern for pattern, needs in NEEDS.items() if not all(map(is_here, needs))]
    for file, found in sorted(report["files"].items()):
        path = Path(file).as_posix()
        name = path[path.rindex("groupgt/") :]
        if not matches(name, absent):
            yield name, found


def missing(found: dict[str, Any]) -> list[str]:
    """The lines of a file that were not reached, and the jumps that were not taken."""
    lines = [(line, str(line)) for line in found["missing_lines"]]
    unreached = set(found["missing_lines"])
    jumps = [(a, f"{a}→{'exit' if b <= 0 else b}") for a, b in found["missing_branches"] if a not in unreached]
    return [text for _, text in sorted(lines + jumps)]


def faults(report: dict[str, Any]) -> tuple[list[str], str]:
    """What is below the floor, and what was counted."""
    found, rest, reached, possible = [], [], 0, 0
    for name, file in counted(report):
        summary = file["summary"]
        if matches(name, WHOLE):
            found += [f"{name}:{place}: not reached" for place in missing(file)]
            continue
        own = summary["covered_lines"] + summary["covered_branches"]
        reached, of = reached + own, summary["num_statements"] + summary["num_branches"]
        possible += of
        rest.append((own / of if of else 1.0, name, file))
    share = 100 * reached / possible if possible else 100.0
    if share < FLOOR:
        for own, name, file in sorted(rest, key=lambda row: row[:2]):
            if 100 * own < FLOOR:
                found.append(f"{name}: {100 * own:.1f} %, missing {', '.join(missing(file))}")
    return found, f"{share:.1f} % of the lines and branches of {len(rest)} other modules (at least {FLOOR} %)"


def main() -> int:
    import coverage

    measured = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        # Tests copy the package to temporary folders, which may be deleted by now.
        measured.json_report(outfile=str(Path(folder) / "report.json"), include=[str(ROOT / "groupgt" / "*")])
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    found, rest = faults(report)
    whole = sum(matches(name, WHOLE) for name, _ in counted(report))
    print(*found, sep="\n")
    print(f"coverage: {'not ' if found else ''}all of {whole} modules that figures come from; {rest}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Side-by-side timings of groupgt and its peers: `python benchmarks/run.py`, with any Python from 3.11 on."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

import environment

PARTS = ("lists", "dicts", "runs", "trec", "imports", "compare", "labellers", "ideals", "score")
# By name alone: they make some gigabytes of data.
LARGE = ("parquet", "carriers", "many", "growth")


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default=",".join(PARTS),
        help=f"parts, by commas, out of {','.join((*PARTS, *LARGE))} (default: the first {len(PARTS)})",
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each fast measurement (default: 7)")
    parser.add_argument("--size", type=int, help="queries in place of 10,000, for a quick look")
    options = parser.parse_args(argv)
    options.parts = [part.strip() for part in options.only.split(",") if part.strip()]
    unknown = [part for part in options.parts if part not in (*PARTS, *LARGE)]
    if unknown or options.rounds < 1 or (options.size is not None and options.size < 1):
        parser.error(f"--only knows {', '.join((*PARTS, *LARGE))}; --rounds and --size are at least 1")
    return options


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    if not environment.inside():
        python = environment.prepare(clusters="carriers" in options.parts, trec_eval="trec" in options.parts)
        return subprocess.run([str(python), __file__, *argv], check=False).returncode

    # These need the environment, so they are imported within it only.
    import report

    report.heading()
    agreed = True
    if "lists" in options.parts:
        import lists

        agreed &= lists.measure(options.rounds, options.size)
    if "dicts" in options.parts:
        import dicts

        agreed &= dicts.measure(options.rounds, options.size or 10_000)
    if "runs" in options.parts:
        import runs

        agreed &= runs.measure(options.rounds)
    if "trec" in options.parts:
        import trec

        agreed &= trec.measure(options.rounds, options.size or 10_000)
    if "imports" in options.parts:
        import imports

        imports.measure(options.rounds)
    if "compare" in options.parts:
        import compare

        compare.measure(options.rounds, (options.size or 10_000) * 10)
    if "labellers" in options.parts:
        import labellers

        labellers.measure(options.rounds, options.size or 10_000)
    if "ideals" in options.parts:
        import ideals

        ideals.measure(options.rounds)
    if "score" in options.parts:
        import score

        score.measure(options.rounds)
    if "parquet" in options.parts:
        import parquet

        agreed &= parquet.measure(options.rounds, (options.size or 10_000) * 10)
    if "carriers" in options.parts:
        import carriers

        agreed &= carriers.measure(min(options.rounds, 3), options.size or 10_000)
    if "many" in options.parts:
        import many

        agreed &= many.measure(options.rounds, options.size or 10_000)
    if "growth" in options.parts:
        import growth

        growth.measure(options.rounds, options.size or 10_000)
    if not agreed:
        print("\nA value DIFFERS where the definitions are the same, or something failed: see above.")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How each consumer treats each population of queries; the tests check every entry of this table."""

from __future__ import annotations

from docs.generate.markdown import bullets, cell, plain, table

POPULATIONS = {
    "answerable": "has relevant alternatives, and results in the run",
    "missing": "has relevant alternatives, but no results in the run",
    "unanswerable": "is declared to have no answer (`answerable: false`), with or without results",
    "undefined": "has no relevant alternatives, and is not declared unanswerable",
    "extra": "has results, but is not in the ground truth",
}

COUNTS = "counts"
ZERO = "counts as 0; left out under `missing=skip`"
APART = "counts only in `abstains`, `false_returns`, `harmful` and `clean`"
OUT = "left out"
COUNTED = "counted under this name"
BESIDE = "left out, but counted"
LISTED = "listed"
TESTED = "one test"
DECLARED = "one test, with the metrics that are defined for it"
NONE = "no test"
EXPLAINED = "explained"
REFUSED = "an error that names the query"
OFFERED = "offered"
KEPT = "kept"
TOLD = "lost, with a warning"
NOT_THERE = "not included"

# In the order of POPULATIONS.
MEASURED = (COUNTS, ZERO, APART, OUT, OUT)
OF_GROUPS = (COUNTS, ZERO, OUT, OUT, OUT)
EVERYTHING = (KEPT, KEPT, KEPT, KEPT, NOT_THERE)
JUDGED_ONLY = (KEPT, KEPT, TOLD, TOLD, NOT_THERE)

TREATMENTS: dict[str, tuple[str, str, str, str, str]] = {
    "means": MEASURED,
    "counts below tables": (COUNTED,) * 5,
    "slices": MEASURED,
    "contrasts": MEASURED,
    "slices of contrasts": MEASURED,
    "means corrected by an audit": OF_GROUPS,
    "contrasts corrected by an audit": OF_GROUPS,
    "means over annotators": MEASURED,
    "gates": MEASURED,
    "gates with an audit": OF_GROUPS,
    "power": MEASURED,
    "complete queries and headroom": OF_GROUPS,
    "`misses`": OF_GROUPS,
    "`depth`": (COUNTS, ZERO, BESIDE, BESIDE, OUT),
    "`depth --unit score`": (COUNTS, ZERO, COUNTS, OUT, OUT),
    "`stages`": OF_GROUPS,
    "`outcomes`": (COUNTS, ZERO, BESIDE, BESIDE, OUT),
    "curves and other figures": OF_GROUPS,
    "`check`": (COUNTED,) * 5,
    "`explain`": (EXPLAINED,) * 4 + (REFUSED,),
    "`assert_at_least`": MEASURED,
    "pytest marker": (TESTED, TESTED, DECLARED, NONE, NONE),
    "judge page": (OFFERED,) * 4 + (NOT_THERE,),
    "page: means and slices": MEASURED,
    "page: facts": (COUNTED,) * 5,
    "page: queries": (LISTED,) * 4 + (NOT_THERE,),
    "summary": MEASURED,
    "JUnit": MEASURED,
    "CSV of means": MEASURED,
    "values per query": (LISTED,) * 4 + (NOT_THERE,),
    "`convert --to jsonl`": EVERYTHING,
    "`convert --to parquet`": EVERYTHING,
    "`convert --to csv`": JUDGED_ONLY,
    "`convert --to tsv`": JUDGED_ONLY,
    "`convert --to trec`": JUDGED_ONLY,
    "`convert --to trec-subtopics`": JUDGED_ONLY,
    "`convert --to beir`": JUDGED_ONLY,
    "`convert --to nuggetbank`": (KEPT, KEPT, TOLD, KEPT, NOT_THERE),
    "`convert --to qrels-flat`": JUDGED_ONLY,
}


def section() -> list[str]:
    """Return the populations, and a table that shows how each consumer treats them."""
    rows = [[plain(consumer), *map(cell, treatments)] for consumer, treatments in TREATMENTS.items()]
    return [
        "## Populations",
        bullets(f"{name}: a query that {meaning}." for name, meaning in POPULATIONS.items()),
        table(["", *POPULATIONS], rows),
    ]

"""The exit statuses of commands, and the files that they write."""

from __future__ import annotations

import ast
import inspect
import tempfile
from pathlib import Path
from typing import get_args

import yaml

from docs.generate.markdown import bullets, code, page, table
from groupgt.cli import main as command_line
from groupgt.experiment.starter import write_starter
from groupgt.report.run import run_experiment

EXITS = {
    0: "Success. For `groupgt run`, every gate passed.",
    1: "A gate failed, or `groupgt check` found errors that make numbers wrong (`--exit-zero` turns this off).",
    2: "The input is invalid. Each error shows where it is, what was expected, what was found, and how to fix it.",
    130: "Interrupted from the keyboard.",
}
# The contents of the files of a result folder, by name or by folder.
FILES = {
    "report.html": "The report: a single page that opens from disk.",
    "table.md": "The tables as Markdown.",
    "table.txt": "The tables as printed text.",
    "table.tex": "The tables as LaTeX.",
    "results.json": "All results as JSON. `groupgt schema results` prints the schema.",
    "means.csv": "One row per system and data set, and one column per metric.",
    "per_query.csv": "One row per query, system and data set.",
    "per_query.parquet": "The same values in parquet.",
    "comparison.csv": "One row per comparison with the baseline.",
    "timings.json": "Latencies. Only this file differs between two runs of the same experiment on the same data.",
    "manifest.json": "Digests, versions and counts: everything that determines the results.",
    "runs/": "Each system's results as TREC run files.",
    "truth/": "Each data set's ground truth, also as flat qrels for other tools.",
    "latest": "A file next to the result folders that contains the newest folder's name.",
}


def exits() -> set[int]:
    """Return the exit statuses that the command-line code uses."""
    source = "".join(inspect.getsource(module) for module in (command_line, _experiments()))
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    constants = [call.args[0] for call in calls if ast.unparse(call.func) in ("sys.exit", "context.exit") and call.args]
    return {int(each.value) for each in constants if isinstance(each, ast.Constant) and isinstance(each.value, int)}


def _experiments() -> object:
    from groupgt.cli import experiments

    return experiments


def files() -> list[str]:
    """Return the names of the files that the starter experiment writes, in all formats."""
    from groupgt.experiment.config import Format

    kinds = list(get_args(Format))
    with tempfile.TemporaryDirectory() as folder:
        write_starter(Path(folder))
        path = Path(folder) / "experiment.yaml"
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        held["output"] = {"formats": kinds}
        held["systems"] = {"one": "bm25", "other": {"use": "bm25", "with": {"k1": 0.9}}}
        held["compare"] = {"baseline": "one"}
        held.pop("gate", None)
        path.write_text(yaml.safe_dump(held), encoding="utf-8")
        written = run_experiment(path).folder
        assert written is not None
        found = [each.relative_to(written).as_posix() for each in written.rglob("*") if each.is_file()]
        found += [each.name for each in written.parent.iterdir() if each.is_file()]
    return sorted({name.partition("/")[0] + "/" if "/" in name else name for name in found})


def pages() -> dict[str, str]:
    statuses = table(["status", "meaning"], [[code(status), meaning] for status, meaning in EXITS.items()])
    rows = [[code(name), FILES.get(name, "")] for name in files()]
    return {
        "reference/outcomes.md": page(
            "Exit statuses and files",
            "This page lists the exit statuses of commands, and the files that `groupgt run` writes.",
            "## Exit statuses",
            statuses,
            "## Files of a result folder",
            "`groupgt run` writes either all of `FOLDER/<name>/<time>-<digest>/` or nothing. `output.formats` selects "
            "the files:",
            table(["file", "contents"], rows),
            "## Other files",
            bullets(
                [
                    "`.groupgt/cache`: finished retrievals. `groupgt cache` lists and clears them.",
                    "`--summary FILE`: short Markdown for a job summary or a pull request, or a failed run's error.",
                    "`--junit FILE`: gates as JUnit XML, or a failed run's error.",
                    "`--html FILE`: the report.",
                ]
            ),
        )
    }

"""Convert AutoRAG project folders to experiment files that re-evaluate the stored result tables."""

from __future__ import annotations

import ast
import contextlib
import csv
import math
import os
import re
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import yaml

from groupgt.errors import ConfigError, DataError, Faults, GroupgtWarning
from groupgt.evaluation.reading import Reading
from groupgt.experiment.runner import outcome_of
from groupgt.formats import parquet
from groupgt.formats.fields import NESTED
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.validity import number_of
from groupgt.runtime import pl
from groupgt.store.files import write_text

# AutoRAG sums in a different order, so means may differ by a few bits.
SLACK = 1e-9
METRICS = tuple(f"retrieval_{name}" for name in ("f1", "recall", "precision", "mrr", "map", "ndcg"))
# Ground truth that AutoRAG's policy refuses, and the note to print if it must be allowed.
ALLOWANCES = {
    "empty_groups": ("drop", "AutoRAG skips queries with an empty group or a blank id; groupgt scores the rest"),
    "flat_gt": (
        "or",
        "AutoRAG iterates over flat ground truth character by character; groupgt reads a flat list as one group",
    ),
}


@dataclass(frozen=True, eq=False)
class _Table:
    """A result table with its module, means from summary.csv, recomputed means, scored queries, and list lengths."""

    path: Path
    module: str
    params: dict[str, str]
    best: bool
    stored: dict[str, float]
    computed: dict[str, float]
    counted: list[bool]
    lengths: list[int]


@dataclass(frozen=True, eq=False)
class Project:
    """A project's contents: ground truth, rules beyond AutoRAG's policy, tables by system, and omitted files."""

    folder: Path
    truth: GroundTruth
    rules: dict[str, str]
    tables: dict[str, _Table]
    left: list[str]


def experiment_text(contents: Project, beside: Path) -> str:
    """Generate an experiment file, to be saved as `beside`, that measures every table stored in an AutoRAG project."""
    concerns = _concerns(contents)
    for concern in concerns:
        warnings.warn(concern, GroupgtWarning, stacklevel=2)
    stored = {metric: None for table in contents.tables.values() for metric in (*table.computed, *table.stored)}
    metrics, rules = list(stored or METRICS), "".join(f", {key}: {rule}" for key, rule in contents.rules.items())
    notes = [*(f"Beware: {concern}" for concern in concerns), *(f"Left out: {line}" for line in contents.left)]
    name, corpus = _quoted(_clean(contents.folder.name)), contents.folder / "data" / "corpus.parquet"
    lines = [
        *map(_comment, [f"Results stored in the AutoRAG project {contents.folder.name}, measured again.", *notes]),
        f"version: 1\nname: {name}\nconvention: autorag\n\ndatasets:\n  {name}:\n    format: autorag",
        f"    ground_truth: {_path(corpus.with_stem('qa'), beside)}",
        *([f"    corpus: {_path(corpus, beside)}"] if corpus.is_file() else []),
        "\nsystems:",
    ]
    for system, table in contents.tables.items():
        made = [table.module, *(f"{key} {value}" for key, value in table.params.items())]
        where = f"{table.path.relative_to(contents.folder).as_posix()}: {', '.join(made)}"
        comment = _comment(f"{where}; AutoRAG's choice for this node" if table.best else where)
        lines.append(f"  {comment}\n  {_quoted(system)}:\n    use: results")
        lines.append(f"    with: {{path: {_path(table.path, beside)}, format: autorag}}")
    lines += [
        "\nevaluate:\n  # No cutoff: AutoRAG evaluates the full list that a module returned.",
        f"  metrics: [{', '.join(metrics)}]\n  primary: {metrics[0]}",
        f"  policy: {{preset: autorag{rules}}}\n" if rules else "  policy: autorag\n",
    ]
    return "\n".join(lines)


def stored_means(contents: Project) -> dict[str, dict[str, float]]:
    """Return the means stored by AutoRAG, or raise `DataError` if a table contradicts its summary.csv."""
    faults = Faults()
    means: dict[str, dict[str, float]] = {}
    for system, table in contents.tables.items():
        means[system] = table.computed | table.stored
        for name, mean in table.computed.items():
            if not math.isclose(reported := means[system][name], mean, rel_tol=1e-9, abs_tol=1e-12):
                what = f"expected a mean of {reported}, as in summary.csv, found {mean} in this table"
                faults.add(str(table.path), f"{name}: {what}. The files come from different runs; rerun the trial")
    faults.stop(DataError)
    return means


def survey(project: Path) -> Project:
    """Read all relevant files of a project, or raise `ConfigError` or `DataError` with all errors."""
    folder, faults, left = project.resolve(), Faults(), list[str]()
    file = Path("data", "qa.parquet")
    if not (folder / file).is_file():
        near = next((parent for parent in folder.parents if (parent / file).is_file()), None)
        way = f"its project is {near}" if near else "pass the folder that was AutoRAG's --project_dir"
        raise ConfigError(f"{project}: expected an AutoRAG project, found no {file.as_posix()} in it; {way}")
    truth, rules = GroundTruth.of({}), dict[str, str]()
    with faults.merging(DataError):
        truth, rules = _read_truth(folder / file)
    tables = _tables(folder, truth.qids, left, faults)
    faults.stop(DataError)
    if not tables:
        expected = "expected tables with retrieved ids (TRIAL/NODE LINE/NODE/0.parquet), found none"
        reasons = "; ".join([expected, *left])
        raise ConfigError(f"{project}: {reasons}; run an AutoRAG trial with a retrieval node")
    # Early versions of AutoRAG score a query without results as 0; later ones skip it.
    queries = [query for table in tables for query in zip(table.counted, truth.judgments.defined, table.lengths)]
    if any(counts and is_defined and not length for counts, is_defined, length in queries):
        rules["missing"] = "zero"
    return Project(folder, truth, rules, dict(zip(_names(tables), tables)), left)


def _read_truth(path: Path) -> tuple[GroundTruth, dict[str, str]]:
    """Read ground truth under AutoRAG's policy, and return any rules needed besides that policy."""
    reading = Reading.of(truth_format="autorag", policy="autorag")
    try:
        return reading.truth(path), {}
    except DataError as error:
        rules = {name: rule for name, (rule, _) in ALLOWANCES.items() if any(name in each for each in error.faults)}
    return reading.but(policy={"preset": "autorag", **rules}).truth(path), rules


def _tables(folder: Path, qids: list[str], left: list[str], faults: Faults) -> list[_Table]:
    """Read the tables with retrieved ids, in numeric order, and skip the copy of a node's best table."""
    tables: list[_Table] = []
    paths = [path for path in folder.glob("*/*/*/*.parquet") if path.stem.isdecimal()]
    for path in sorted(paths, key=lambda p: [n.zfill(9) if n.isdecimal() else n for n in p.with_suffix("").parts]):
        where, rows = path.relative_to(folder).as_posix(), _summary(path.with_name("summary.csv"), faults)
        with faults.merging(DataError):
            if path.parent.name == "retrieval" and not rows and any(path.parent.parent.glob("*_retrieval")):
                left.append(f"{where}: a copy of another node's best table")
            elif set(NESTED) & set(parquet.names_of(Source.at(path))):
                tables.append(_table(path, rows.get(path.name, {}), qids))
            else:
                left.append(f"{where}: it contains no retrieved ids")
    return tables


def _summary(path: Path, faults: Faults) -> dict[str, dict[str, str]]:
    """Read a node's summary.csv into rows by file name, or return nothing if a trial stopped before writing it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return {row["filename"]: row for row in csv.DictReader(file, restkey="", restval="")}
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError) as error:
        faults.add(str(path), f"cannot be read as an AutoRAG node summary with a `filename` column: {error}")
        return {}


def _table(path: Path, row: dict[str, str], qids: list[str]) -> _Table:
    # If the ground truth is invalid, nothing can be compared with it.
    lists = Reading.of(run_format="autorag").results(path, qids).rankings if qids else {}
    columns = [name for name in parquet.names_of(Source.at(path)) if name in METRICS]
    try:
        frame = pl.read_parquet(path, columns=columns, glob=False).cast(pl.Float64, strict=False).fill_nan(None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: expected numbers in {', '.join(columns)}, found other data: {error}") from None
    # Nodes after retrieval put their own name before the metric's.
    stored = {name: number_of(row.get(name, row.get(f"{path.parent.name}_{name}", ""))) for name in METRICS}
    return _Table(
        path,
        row.get("module_name") or f"file {path.stem}",
        _params(row.get("module_params", "")),
        row.get("is_best") == "True",
        {name: mean for name, mean in stored.items() if mean is not None},
        {column.name: mean for column in frame if isinstance(mean := column.mean(), float)},
        [any(value is not None for value in values) for values in frame.iter_rows()],
        [len(lists[qid] or ()) for qid in qids],
    )


def _params(text: str) -> dict[str, str]:
    """Parse module parameters without executing them. Dates and other calls are reduced to their arguments."""
    for plain in (text, re.sub(r"\b[\w.]+\(([^()]*)\)", r"'\1'", text)):
        with contextlib.suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return {str(key): str(value) for key, value in dict(ast.literal_eval(plain)).items()}
    return {}


def _names(tables: list[_Table]) -> list[str]:
    """Name each system after its trial, node and module, plus the parameters that vary within that module."""
    names: list[str] = []
    for table in tables:
        trial, line, node = table.path.parts[-4:-1]
        lines = {other.path.parts[-3] for other in tables if other.path.parts[-4:-1:2] == (trial, node)}
        beside = [other for other in tables if other.path.parent == table.path.parent]
        siblings = [other.params for other in beside if other.module == table.module]
        differing = [key for key in table.params if len({params.get(key) for params in siblings}) > 1]
        # Words are clear without a key, numbers are not.
        values = [value if (value := table.params[key])[:1].isalpha() else f"{key} {value}" for key in differing]
        base_name = _clean(" ".join([trial, *([line] if len(lines) > 1 else []), node, table.module, *values]))
        numbered = (f"{base_name} {number}" for number in range(2, len(tables) + 2))
        names.append(next(name for name in (base_name, *numbered) if name not in names))
    return names


def _concerns(contents: Project) -> list[str]:
    """Explain why values cannot match AutoRAG's."""
    concerns = [ALLOWANCES[name][1] for name in contents.rules if name in ALLOWANCES]
    defined, zero = contents.truth.judgments.defined.tolist(), "missing" in contents.rules
    for system, table in contents.tables.items():
        here = [is_defined and (zero or length > 0) for is_defined, length in zip(defined, table.lengths)]
        others = [qid for qid, one, other in zip(contents.truth.qids, table.counted, here) if one != other]
        if others:
            counts = f"AutoRAG averages over {sum(table.counted)} queries, groupgt over {sum(here)}"
            concerns.append(f"{system}: {counts}, so the means cannot agree (they differ in {', '.join(others[:3])})")
    return concerns


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 _.+-]+", "-", text).lstrip(" _.+-")[:90].rstrip() or "autorag"


def _path(path: Path, beside: Path) -> str:
    folder = beside.resolve().parent  # a file on another drive has no relative path
    return _quoted((Path(os.path.relpath(path, folder)) if path.drive == folder.drive else path).as_posix())


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=1 << 20).strip()


def _comment(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return f"# {textwrap.shorten(plain, 400, placeholder=' …')}"


@dataclass(frozen=True)
class Imported:
    """An imported project with its systems, stored means, means that differ, and omitted tables."""

    systems: int
    means: int
    different: list[str]
    left: list[str]


def import_project(project: Path, target: Path) -> Imported:
    """Write an experiment file for a project, run it, and compare its means with those stored by AutoRAG."""
    contents = survey(project)
    write_text(target, experiment_text(contents, target))
    stored = stored_means(contents)
    (evaluations,) = outcome_of(target).evaluations.values()
    different = [
        f"{system}: {metric} is {evaluations[system][metric]:.6f}, but {mean:.6f} was stored"
        for system, means in stored.items()
        for metric, mean in means.items()
        if not math.isclose(evaluations[system][metric], mean, rel_tol=0, abs_tol=SLACK)
    ]
    return Imported(len(stored), sum(map(len, stored.values())), different, contents.left)

"""Every road to a measurement and every medium that shows it, read as facts, each with a value.

A road is a way to measure (Python, the shell, an experiment, a result folder); a medium is what it shows (JSON, CSV,
tables, Markdown, the data of the page). A printed value has so many decimals, and equals what it may be rounded from.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import io
import json
import re
import shutil
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main

# A test that runs tests forgets what they import, and SciPy cannot be imported twice.
try:
    import scipy.stats  # noqa: F401
except ImportError:
    HAS_SCIPY = False
else:
    HAS_SCIPY = True

Row = Mapping[str, Any]
Fact = tuple[str, str, str, str]
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?$")
# Fields of a row of JSON or CSV, by the names of facts.
FIELDS = {
    "mean": "mean",
    "mean_by_labels": "mean by labels",
    "queries": "n",
    "delta": "delta",
    "pairs": "pairs",
    "p_value": "p",
    "wins": "wins",
    "losses": "losses",
}


@dataclass
class World:
    """A small data set with systems, and how it is measured; `a` is the baseline."""

    truth: list[Row]
    systems: dict[str, list[Row]]
    metrics: list[str]
    policy: str = ""
    # The ground truth of a second data set; both are measured with the results of the same systems.
    second: list[Row] = field(default_factory=list)
    annotator: list[Row] = field(default_factory=list)
    audit: list[Row] = field(default_factory=list)
    # A limit that the mean of `b` meets, and whether it has such a mean.
    gate: dict[str, Any] = field(default_factory=lambda: {"metric": "recall@3", "min": 0.05})
    passes: bool = True

    @property
    def datasets(self) -> list[str]:
        """The data sets, whose ground truths have the same names."""
        return ["d", "e"] if self.second else ["d"]

    @property
    def cutoff(self) -> int:
        """The cutoff of the primary metric."""
        return int(self.metrics[0].split("@")[1])

    def write(self, folder: Path) -> None:
        """Write the files that all roads read."""
        parts = {"d": self.truth, "e": self.second, **self.systems, "human": self.audit, "anna": self.annotator}
        for name, rows in parts.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def experiment(self) -> str:
        """Return the experiment file, which is JSON."""
        audit = {"audit": "human.jsonl", "assume_random": True} if self.audit else {}
        policy = {"policy": dict([self.policy.split("=")])} if self.policy else {}
        return json.dumps(
            {
                "version": 1,
                "name": "e",
                "convention": "coverage",
                "datasets": {name: {"ground_truth": f"{name}.jsonl", **audit} for name in self.datasets},
                "systems": {name: {"use": "results", "with": {"path": f"{name}.jsonl"}} for name in self.systems},
                "evaluate": {"metrics": self.metrics, **policy},
                "compare": {"baseline": "a"},
                "gate": [{"system": "b", **self.gate}],
                "output": {"formats": ["csv", "json", "report", "runs"]},
            }
        )

    def words(self, dataset: str) -> list[str]:
        """What every command of the shell gets."""
        files = [f"{dataset}.jsonl", *(f"{name}={name}.jsonl" for name in self.systems)]
        files += ["-m", ",".join(self.metrics), "--convention", "coverage"]
        files += ["--policy", self.policy] if self.policy else []
        files += ["--audit", "human.jsonl", "--assume-random"] if self.audit else []
        return files + (["--annotator", "anna.jsonl"] if self.annotator else [])

    @property
    def options(self) -> dict[str, Any]:
        """What every function of Python gets."""
        options: dict[str, Any] = {"convention": "coverage"}
        options |= {"policy": dict([self.policy.split("=")])} if self.policy else {}
        options |= {"audit": "human.jsonl", "assume_random": True} if self.audit else {}
        return options | ({"annotators": ["anna.jsonl"]} if self.annotator else {})


class Book:
    """All facts of a world by what shows them: a value, and its decimals if it is printed."""

    def __init__(self) -> None:
        self.facts: dict[Fact, dict[str, tuple[float | None, int | None]]] = defaultdict(dict)
        # The data set of the facts that are read.
        self.dataset = "d"

    def put(self, medium: str, system: str, metric: str, name: str, value: float | None) -> None:
        """Note a full number."""
        metric = metric.replace(".coverage", "")
        self.facts[self.dataset, system, metric, name][medium] = (
            None if value is None or value != value else float(value),
            None,
        )

    def text(self, medium: str, system: str, metric: str, name: str, cell: str) -> None:
        """Note a printed cell; a dash is undefined, and anything else but a number says nothing."""
        cell = re.sub(r"[▲▼*† ]", "", cell).replace("−", "-").replace(",", "")
        if cell == "–":
            self.put(medium, system, metric, name, None)
        elif NUMBER.match(cell):
            self.facts[self.dataset, system, metric, name][medium] = (float(cell), len(cell.partition(".")[2]))

    def disagreements(self) -> list[str]:
        """Return every fact of which two media say different things."""
        found = []
        for fact, media in self.facts.items():
            for medium, (value, digits) in media.items():
                for other, (second, decimals) in media.items():
                    if medium < other and not same(value, digits, second, decimals):
                        found.append(f"{fact}: {medium} {value}, {other} {second}")
        return found


def same(one: float | None, digits: int | None, other: float | None, decimals: int | None) -> bool:
    """Return whether two values may be one number, printed or not."""
    if one is None or other is None:
        return one is other
    room = sum(0.0 if each is None else 0.5 * 10.0**-each for each in (digits, decimals))
    return abs(one - other) <= 1e-9 + room


# --- Media.


def read_comparison(book: Book, medium: str, plain: Mapping[str, Any]) -> None:
    """Read a comparison from JSON."""
    for row in plain["rows"]:
        read_row(book, medium, {**row, **(row["against_baseline"] or {})})
    failures = plain["failures"]
    for system, count in failures["solved"].items():
        book.put(medium, system, "", "done", count)
        book.put(medium, system, "", "of", failures["queries_of"][system])


def read_row(book: Book, medium: str, row: Mapping[str, Any]) -> None:
    """Read what one system reaches in one metric."""
    for name, fact in FIELDS.items():
        if row.get(name) not in (None, "") or (name == "mean" and name in row):
            value = row[name]
            book.put(
                medium,
                row.get("system") or row["run"],
                row["metric"],
                fact,
                None if value in (None, "") else float(value),
            )
    if interval := row.get("interval"):
        book.put(medium, row["system"], row["metric"], "low", interval[0])
        book.put(medium, row["system"], row["metric"], "high", interval[1])
    if interval := row.get("delta_interval"):
        book.put(medium, row["system"], row["metric"], "delta low", interval[0])
        book.put(medium, row["system"], row["metric"], "delta high", interval[1])


def read_csv(book: Book, medium: str, text: str) -> None:
    """Read rows of metrics, or values per query."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if "metric" in rows[0]:
        for row in rows:
            book.dataset = row.get("dataset", book.dataset)
            read_row(book, medium, row)
        return
    columns: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        for name, cell in row.items():
            if name not in ("dataset", "run", "qid"):
                columns[row.get("dataset", book.dataset), row["run"], name] += [float(cell)] if cell else []
    for (book.dataset, system, name), values in columns.items():
        metric, by_labels, _ = name.partition(" by labels")
        book.put(medium, system, metric, "mean" + by_labels, sum(values) / len(values) if values else None)
        book.put(medium, system, metric, "n", len(values))


def tables_in(text: str) -> Iterator[list[dict[str, str]]]:
    """Yield the rows of each table, by the dashes below its headers or by its pipes."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        rest = lines[at + 1 :]
        if re.fullmatch(r"-+(  +-+)*", line.strip()) and at:
            starts = [match.start() for match in re.finditer(r"-+", line)]
            body = [rest[n] for n in range(len(rest)) if all(each.strip() for each in rest[: n + 1])]
            cells = [[row[a:b].strip() for a, b in zip(starts, [*starts[1:], None])] for row in [lines[at - 1], *body]]
        elif re.fullmatch(r"\|[-:|]+\|", line) and at:
            body = [rest[n] for n in range(len(rest)) if all(each.startswith("|") for each in rest[: n + 1])]
            cells = [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in [lines[at - 1], *body]]
        else:
            continue
        yield [dict(zip(cells[0], row)) for row in cells[1:]]


def read_text(book: Book, medium: str, text: str, cutoff: int) -> None:
    """Read the tables of the terminal or of Markdown, which may be those of several data sets."""
    first, *others = re.split(r"^dataset (\S+)$", text, flags=re.MULTILINE)
    read_tables(book, medium, first, cutoff)
    for book.dataset, part in zip(others[::2], others[1::2]):
        read_tables(book, medium, part, cutoff)


def read_tables(book: Book, medium: str, text: str, cutoff: int) -> None:
    """Read the tables of one data set."""
    for rows in tables_in(text):
        first = next(iter(rows[0]))
        for row in rows:
            system = row[first]
            if f"complete @{cutoff}" in row:
                done, _, of = row["queries"].partition("/")
                book.text(medium, system, "", "done", done)
                book.text(medium, system, "", "of", of)
                book.text(medium, system, "", "gained", row["gained over baseline"])
                book.text(medium, system, "", "lost", row["lost to baseline"])
            elif first == "trials of":
                read_interval(book, medium, system, row["metric"], row)
            elif "wins/ties/losses" in row:
                read_detail(book, medium, system, first, row)
            elif first == "System" and "Complete" in row:
                done, _, of = row["Complete"].partition("/")
                book.text(medium, system, "", "done", done)
                book.text(medium, system, "", "of", of)
                lost, _, gained = row["Lost / gained"].partition(" / ")
                book.text(medium, system, "", "lost", lost)
                book.text(medium, system, "", "gained", gained)
            elif first in ("run", "system"):
                for metric in [each for each in row if "@" in each]:
                    book.text(medium, system, metric, "mean", row[metric])


def read_interval(book: Book, medium: str, system: str, metric: str, row: Mapping[str, str]) -> None:
    """Read a mean, and the intervals that a row has."""
    book.text(medium, system, metric, "mean", row["mean"])
    for header, (low, high) in {"95% CI": ("low", "high"), "95% CI of delta": ("delta low", "delta high")}.items():
        ends = row.get(header, "").split(" to ")
        if len(ends) == 2:
            book.text(medium, system, metric, low, ends[0])
            book.text(medium, system, metric, high, ends[1])


def read_detail(book: Book, medium: str, system: str, metric: str, row: Mapping[str, str]) -> None:
    """Read a row of all that is known of a difference."""
    book.text(medium, system, metric, "n", row["queries"])
    read_interval(book, medium, system, metric, row)
    if row["delta"] != "baseline":
        book.text(medium, system, metric, "delta", row["delta"])
        wins, _, losses = row["wins/ties/losses"].split("/")
        book.text(medium, system, metric, "wins", wins)
        book.text(medium, system, metric, "losses", losses)


def blocks_of(page: bytes) -> dict[str, Any]:
    """Return the blocks of data in a page, by id."""
    found = re.findall(r'<script type="text/plain" id="([^"]+)">\s*(\S+?)\s*</script>', page.decode())
    packed = {name: text for name, text in found if not name.startswith("library")}
    return {name: json.loads(zlib.decompress(base64.b64decode(text))) for name, text in packed.items()}


def read_page(book: Book, medium: str, page: bytes) -> None:
    """Read the data of a page."""
    blocks = blocks_of(page)
    datasets = blocks["page"]["datasets"]
    for number, dataset in enumerate(datasets):
        book.dataset = dataset["name"] if len(datasets) > 1 else book.dataset
        read_dataset(book, medium, dataset, blocks[f"questions-{number}"]["complete"])


def read_dataset(book: Book, medium: str, dataset: Mapping[str, Any], complete: list[list[float]]) -> None:
    """Read what a page says of a data set, and the shares of trials that complete each query."""
    names, metrics = [each["name"] for each in dataset["systems"]], [each["name"] for each in dataset["metrics"]]
    for system in dataset["systems"]:
        for at, metric in enumerate(metrics):
            book.put(medium, system["name"], metric, "mean", system["means"][at])
            book.put(medium, system["name"], metric, "n", system["queries"][at])
            if ends := system["intervals"][at]:
                book.put(medium, system["name"], metric, "low", ends[0])
                book.put(medium, system["name"], metric, "high", ends[1])
    for row in dataset["standings"]["rows"]:
        done, _, of = row["cells"]["complete"].partition("/")
        lost, _, gained = row["cells"]["lost"].partition(" / ")
        for name, cell in {"done": done, "of": of, "lost": lost, "gained": gained}.items():
            book.text(f"{medium} standings", row["name"], "", name, cell)
    for first, second, metric, part, delta, ends, (wins, _, losses), *_ in dataset["contrasts"]["rows"]:
        if second == dataset["baseline"] and part == -1:
            facts = {"delta": delta, "wins": wins, "losses": losses}
            facts |= {"delta low": ends[0], "delta high": ends[1]} if ends else {}
            for name, value in facts.items():
                book.put(f"{medium} contrasts", names[first], metrics[metric], name, value)
    for at, name in enumerate(names):
        book.put(f"{medium} queries", name, "", "done", sum(each[at] for each in complete))


# --- Roads.


def shell(*words: str) -> tuple[int, str]:
    """Return the status and the output of a command."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        try:
            main(list(words))
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def by_python(book: Book, world: World) -> None:
    """Measure and compare in Python."""
    runs = {name: f"{name}.jsonl" for name in world.systems}
    truth = f"{book.dataset}.jsonl"
    found = groupgt.compare(truth, runs, world.metrics, baseline="a", **world.options)
    read_comparison(book, "python", json.loads(json.dumps(found.to_dict())))
    read_text(book, "python text", found.text(), world.cutoff)
    read_text(book, "python summary", found.summary(), world.cutoff)
    found.to_html("python.html")
    read_page(book, "python page", Path("python.html").read_bytes())
    if world.annotator:
        return  # only comparisons take annotators
    for system, evaluation in groupgt.evaluate_runs(truth, runs, world.metrics, **world.options).items():
        for metric, mean in evaluation.means.items():
            book.put("python evaluate", system, metric, "mean", mean)


def by_shell(book: Book, world: World) -> None:
    """Compare and evaluate in the shell, in every form."""
    for style, read in READERS.items():
        _, out = shell("compare", *world.words(book.dataset), "--baseline", "a", *style.split())
        read(book, f"compare {style}", out, world)
    if world.annotator:
        return
    by_power(book, world, "power", *world.words(book.dataset), "--baseline", "a")
    _, out = shell("evaluate", *world.words(book.dataset), "--format", "json")
    for run in json.loads(out)["runs"]:
        for metric, row in run["metrics"].items():
            read_row(book, "evaluate json", {"run": run["run"], "metric": metric, **row} | {"queries": None})


def by_power(book: Book, world: World, medium: str, *words: str) -> None:
    """Read the differences and pairs that power is computed from, where SciPy is installed."""
    if world.audit or not HAS_SCIPY:
        return  # with an audit, it tells the widths of intervals
    for row in json.loads(shell("power", *words, "--format", "json")[1])["rows"]:
        read_row(book, f"{medium} json", {**row, "pairs": row["queries"], "queries": None})
    (rows,) = tables_in(shell("power", *words)[1])
    for row in rows:
        book.text(medium, row["run"], row["metric"], "pairs", row["queries"])
        book.text(medium, row["run"], row["metric"], "delta", row["delta"])


def by_experiment(book: Book, world: World) -> None:
    """Run the experiment, once more against what that left, and tell what it left in its folder."""
    if world.annotator:
        return
    Path("e.yaml").write_text(world.experiment(), encoding="utf-8")
    first = run(book, world, "run")
    run(book, world, "run --against", "--against", str(first))
    _, out = shell("report", str(first), "--format", "json")
    for book.dataset, plain in json.loads(out).items():
        read_comparison(book, "report json", plain)
    _, out = shell("report", str(first), "--details", "--html", "report.html")
    read_text(book, "report details", out, world.cutoff)
    read_page(book, "report page", Path("report.html").read_bytes())
    if not world.second:
        _, out = shell("compare", str(first), "--format", "json")
        read_comparison(book, "compare FOLDER", json.loads(out))
        by_power(book, world, "power FOLDER", str(first))


def run(book: Book, world: World, road: str, *options: str) -> Path:
    """Run the experiment, read what it shows and all that it writes, and return its folder."""
    parent = road.replace(" ", "")
    status, out = shell("run", "e.yaml", "-o", parent, "--details", *options)
    assert status == (0 if world.passes else 1)
    read_text(book, f"{road} details", out, world.cutoff)
    (folder,) = Path(parent, "e").glob("2*")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for gate, book.dataset in zip(results["gates"], world.datasets, strict=True):
        assert (gate["dataset"], gate["passed"]) == (book.dataset, world.passes)
        assert (gate["value"] is None) == (not world.passes)
        book.put(f"{road} gate", "b", world.gate["metric"], "mean", gate["value"])
        read_comparison(book, f"{road} results.json", results["datasets"][book.dataset]["comparison"])
    for name in ("means.csv", "comparison.csv", "per_query.csv"):
        read_csv(book, f"{road} {name}", (folder / name).read_text(encoding="utf-8"))
    read_page(book, f"{road} report.html", (folder / "report.html").read_bytes())
    return folder


def by_pytest(book: Book, world: World, pytester: pytest.Pytester) -> None:
    """Evaluate the systems in a test, and read what the plug-in shows and writes."""
    if world.annotator:
        return
    pytester.makepyfile(
        f"def test_systems(groupgt_evaluate):\n"
        f"    for name in {list(world.systems)}:\n"
        f"        run = f'{{name}}.jsonl'\n"
        f"        groupgt_evaluate('{book.dataset}.jsonl', run, {world.metrics}, name=name, **{world.options})\n"
    )
    out = "\n".join(pytester.runpytest_inprocess("-p", "no:randomly", "--groupgt-report", "pages").outlines)
    read_text(book, "pytest", out, world.cutoff)
    (page,) = Path("pages").glob("*.html")
    read_page(book, "pytest page", page.read_bytes())
    shutil.rmtree("pages")


READERS: dict[str, Callable[[Book, str, str, World], None]] = {
    "--format json": lambda book, medium, out, world: read_comparison(book, medium, json.loads(out)),
    "--format csv": lambda book, medium, out, world: read_csv(book, medium, out),
    "--details": lambda book, medium, out, world: read_text(book, medium, out, world.cutoff),
    "--format github": lambda book, medium, out, world: read_text(book, medium, out, world.cutoff),
}
ROADS = (by_python, by_shell)  # on one data set

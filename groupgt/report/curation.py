"""Report on checking, rechunking and extending ground truth, and on agreement between judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupgt.curation.agree import Agreement
from groupgt.curation.check import Check, Finding
from groupgt.curation.rechunk import Rechunked, ways_to_keep
from groupgt.render.document import Block, Detail, Foot, Item, Verdict
from groupgt.render.exports import CaseKind, junit_text
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, stacked
from groupgt.report.sentences import sentence_of

FINDING = ["finding", "count", "example"]
# Sizes that the verdict names, which valid ground truth has too.
SIZES = {"queries": "query", "groups": "group", "alternatives": "alternative"}
USUAL = ("queries", "groups", "alternatives", "relevant documents")
RESULTS, WITH_RESULTS = "results for these queries", "queries with results"
# Maximum number of listed groups whose chunks contain too little of a passage.
WEAKEST = 10
# Table headings for counts in runs.
HEADINGS = {
    WITH_RESULTS: "queries",
    RESULTS: "results",
    "queries without ground truth (extra)": "extra queries",
    "queries with a repeated relevant result": "relevant repeats",
    "queries with a hit among equal scores": "ties that matter",
    "queries with no hits": "queries with no hit",
    "lines that begin with # (comments)": "comments",
}


class CheckTeller(Teller[Check]):
    """Report problems found in the ground truth and in each run."""

    def verdict(self) -> str:
        """Return the sizes checked, any failures, and the number of queries without ground truth."""
        fails, problems = self.result.fails, self.result.problems
        named = "; ".join(f"{what}: {count:,}" for what, count in fails.items())
        others = counted(len(problems) - len(fails), "other finding") if fails else counted(len(problems), "finding")
        look = f" {others} to look at." if len(problems) > len(fails) else ""
        checked = self._checked()
        if fails:
            sentence = f"✗ Failed: {named}.{look}"
        else:
            sentence = f"✓ Passed: {checked}.{look}" if look else f"✓ No problems in {checked}."
        if undefined := self.result.undefined:
            verb = "has" if undefined == 1 else "have"
            sentence += f" {counted(undefined, 'query', 'queries')} {verb} no ground truth."
        return sentence

    def _checked(self) -> str:
        """Return the sizes of the checked data, for use in a sentence."""
        truth, *runs = self.result.findings.values()
        sizes = {each.what: each.count for each in truth}
        parts = [counted(sizes[many], one) for many, one in SIZES.items()]
        parts += [counted(len(runs), "run")] if runs else []
        return f"{', '.join(parts[:-1])} and {parts[-1]}"

    def blocks(self) -> list[Item]:
        """Return the verdict, the problems (failures first), other findings and, as a detail, every check."""
        (_, of_truth), *runs = self.result.findings.items()
        problems = [
            (each, _line(each, name))
            for name, findings in self.result.findings.items()
            for each in findings
            if each.suspicious and each.count
        ]
        # Those that fail come first.
        lines = [sentence_of("note", line) for _, line in sorted(problems, key=lambda pair: not pair[0].fails)]
        blocks: list[Item] = [self.verdict(), Verdict(lines)]
        if found := [_finding_row(each) for each in of_truth if _is_told(each) and each.what not in USUAL]:
            blocks.append(Table(["also found in the ground truth", "count", "example"], found))
        if runs:
            told = [each for _, findings in runs for each in findings if _is_told(each)]
            usual = (WITH_RESULTS, of_truth[0].count)
            kinds = dict.fromkeys(each.what for each in told if (each.what, each.count) != usual)
            headers = ["run", *(HEADINGS.get(what, what) for what in kinds)]
            of_runs: list[list[Any]] = []
            for name, findings in runs:
                cells = {each.what: _in_run(each) for each in findings}
                of_runs.append([name, *(cells.get(what, "–") for what in kinds)])
            blocks.append(Table(headers, of_runs))
        for name, findings in self.result.findings.items():
            blocks += [Detail(name), Detail(Table(FINDING, list(map(_finding_row, findings)), keep=2))]
        each_run = f" + {len(runs):,} × {len(runs[0][1]):,}" if runs else ""
        return [*blocks, Foot("", f"all {len(of_truth):,}{each_run} checks, including those that found nothing")]

    def csv_rows(self) -> Grid:
        """Return headers and one row per finding."""
        files = self.result.findings.items()
        return ["file", *FINDING], [[name, *_finding_row(each)] for name, findings in files for each in findings]

    def to_dict(self) -> Any:
        """Return the verdict and the findings by file name as plain Python objects."""
        return {"verdict": self.verdict(), "fails": self.result.fails, "findings": self.result.findings}


class DataChecksTeller(Teller[Any]):
    """Report problems in the files of an experiment's data sets."""

    def blocks(self) -> list[Item]:
        """Return the blocks of each data set below its name."""
        checks = self.result.checks.items()
        return [block for name, check in checks for block in (f"dataset {name}", *CheckTeller(check).blocks())]

    def csv_rows(self) -> Grid:
        """Return headers and one row per finding, with its data set."""
        return stacked((name, check.csv_rows()) for name, check in self.result.checks.items())

    def to_dict(self) -> Any:
        """Return the failures, and each data set's verdict and findings, as plain Python objects."""
        datasets = {name: check.to_dict() for name, check in self.result.checks.items()}
        return {"fails": self.result.fails, "datasets": datasets}


def check_junit(suite: str, checks: Mapping[str, Check]) -> str:
    """Format checks as JUnit XML. Each case is one check of a file, named after the file's data set, if any."""
    cases: list[tuple[str, str, CaseKind, str]] = []
    for dataset, check in checks.items():
        for name, findings in check.findings.items():
            family = f"{dataset}.{name}" if dataset else name
            for each in (each for each in findings if each.suspicious):
                kind: CaseKind = "failure" if each.fails else "system-out"
                cases.append((family, each.what, kind, _line(each, name) if each.count else ""))
    return junit_text(suite, cases)


def _line(finding: Finding, name: str) -> str:
    example = f" ({finding.example})" if finding.example else ""
    return f"{finding.what}: {finding.count:,} in {name}{example}"


def _is_told(finding: Finding) -> bool:
    return bool(finding.count) and not finding.suspicious


def _in_run(finding: Finding) -> str | int:
    return f"{finding.example.partition(' a query')[0]} each" if finding.what == RESULTS else finding.count


def _finding_row(finding: Finding) -> list[Any]:
    return [finding.what, finding.count, finding.example]


class RechunkedTeller(Teller[Rechunked]):
    """Report how many alternatives were mapped to new chunks and which were lost."""

    def blocks(self) -> list[Block]:
        """Return the counts, weakly mapped groups, lost alternatives, and dropped queries."""
        carried = self.result
        blocks: list[Block] = [([f"by {carried.method}", "count"], self.csv_rows()[1])]
        if carried.weak:
            headers = ["query", "group", "passage", "chunk that contains most of it", "share"]
            weakest = [[row.qid, row.group, row.old, row.new, row.share] for row in carried.weak[:WEAKEST]]
            blocks.append((headers, weakest))
            if len(carried.weak) > WEAKEST:
                blocks.append(f"and {len(carried.weak) - WEAKEST:,} more; --format json lists all")
        if carried.lost:
            headers = ["query", "group", "lost alternative", "best new chunk", "share", "consequence"]
            rows: list[list[Any]] = []
            for row in carried.lost:
                loses_group = row.group in carried.dropped.get(row.qid, ())
                consequence = "the query is dropped" if loses_group else "the group keeps other alternatives"
                rows.append([row.qid, row.group, row.old, row.new or "nothing", row.share, consequence])
            blocks.append((headers, rows))
        if carried.dropped:
            total = len(carried.truth) + len(carried.dropped)
            what = f"{len(carried.dropped):,} of {counted(total, 'query')} lost a group and"
            verb = "was" if len(carried.dropped) == 1 else "were"
            blocks.append(f"{what} {verb} dropped. To keep these queries, {ways_to_keep(carried.method)}")
        return blocks

    def csv_rows(self) -> Grid:
        """Return headers and one row per count."""
        return ["what", "count"], [[what, count] for what, count in self.result.counts().items()]

    def frame_rows(self) -> Grid:
        """Return headers and one row per alternative and new chunk that replaces it."""
        return self.result.carried_rows()

    def to_dict(self) -> Any:
        """Return counts, lost alternatives and dropped queries as plain Python objects."""
        carried = self.result
        counts = {"method": carried.method, "counts": carried.counts()}
        return {**counts, "weak": carried.weak, "lost": carried.lost, "left_out": carried.dropped}


class AgreementTeller(Teller[Agreement]):
    """Report how well two labellers or annotators agree, and on which groups they differ."""

    fields = (
        *("first", "second", "of", "queries", "labellers", "items", "both", "only_first", "only_second", "neither"),
        *("kappa", "alpha", "observed", "expected", "positive", "group_kappa", "groups", "pairs"),
    )

    def blocks(self) -> list[Block]:
        """Return the two sides' names, the statistics, and the `worst` groups, on which the sides disagree most."""
        agreement = self.result
        lines = [f"first: {agreement.first}", f"second: {agreement.second}"]
        if agreement.labellers not in (("id", "id"), (agreement.first, agreement.second)):
            lines.append(f"labeller {' and '.join(dict.fromkeys(agreement.labellers))}")
        figures: list[list[Any]] = [
            ["Cohen's kappa", agreement.kappa],
            ["Krippendorff's alpha", agreement.alpha],
            ["observed agreement", agreement.observed],
            ["expected by chance", agreement.expected],
            ["agreement on hits", agreement.positive],
            [f"items ({agreement.of})", agreement.items],
            ["both", agreement.both],
            ["only the first", agreement.only_first],
            ["only the second", agreement.only_second],
            ["neither", agreement.neither],
        ]
        if agreement.pairs:
            of = counted(len(agreement.pairs), "group")
            figures += [["Cohen's kappa on groups", agreement.group_kappa], [f"matched of {of}", agreement.matched]]
        about = "\n".join([*lines, counted(agreement.queries, "query")])
        blocks: list[Block] = [about, (["agreement", "value"], figures)]
        headers, rows = agreement.group_rows()
        # Matched groups say more than those of each side.
        if not agreement.pairs and (differing := [row for row in rows if row[-2] or row[-1]][: agreement.worst]):
            blocks.append((["query", *headers[1:-3], "both", "only the first", "only the second"], differing))
        if apart := [pair for pair in agreement.pairs if pair.only_first or pair.only_second][: agreement.worst]:
            names = ["query", "the first's group", "the second's", "both", "only the first", "only the second"]
            rows = [
                [pair.qid, pair.first or "none", pair.second or "none", pair.both, pair.only_first, pair.only_second]
                for pair in apart
            ]
            blocks.append((names, rows))
        return blocks

    def csv_rows(self) -> Grid:
        """Return headers and one row of statistics."""
        apart = ("groups", "labellers", "pairs")
        figures = {name: value for name, value in self.result.to_dict().items() if name not in apart}
        return list(figures), [list(figures.values())]

"""Reports on checking, rechunking and extending ground truth, and on agreement between judgments."""

from __future__ import annotations

from typing import Any

from groupgt.curation.agree import Agreement
from groupgt.curation.check import Check, Finding
from groupgt.curation.rechunk import Rechunked, ways_to_keep
from groupgt.render.document import Block
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted

FINDING = ["finding", "count", "example"]


class CheckTeller(Teller[Check]):
    """Reports problems found in the ground truth and in each run."""

    def verdict(self) -> str:
        """Return the number of problems by kind, those first that fail, and how many queries have no ground truth."""
        fails = self.result.fails
        others = {what: count for what, count in self.result.problems.items() if what not in fails}
        failed, found = (", ".join(f"{what}: {count:,}" for what, count in each.items()) for each in (fails, others))
        sentence = f"Failed ({failed})." if failed else "No problems found."
        if found:
            sentence = f"{sentence} To look at: {found}." if failed else f"Passed. To look at: {found}."
        if undefined := self.result.undefined:
            verb = "has" if undefined == 1 else "have"
            sentence += f" {counted(undefined, 'query', 'queries')} {verb} no ground truth."
        return sentence

    def blocks(self) -> list[Block]:
        """Return the verdict, and a table for each file."""
        blocks: list[Block] = [self.verdict()]
        for name, findings in self.result.findings.items():
            blocks += [name, Table(FINDING, [_finding_row(finding) for finding in findings], keep=2)]
        return blocks

    def csv_rows(self) -> Grid:
        """Return headers and one row per finding."""
        files = self.result.findings.items()
        return ["file", *FINDING], [[name, *_finding_row(each)] for name, findings in files for each in findings]

    def to_dict(self) -> Any:
        """Return the verdict and the findings by file name as plain Python."""
        return {"verdict": self.verdict(), "fails": self.result.fails, "findings": self.result.findings}


def _finding_row(finding: Finding) -> list[Any]:
    return [finding.what, finding.count, finding.example]


class RechunkedTeller(Teller[Rechunked]):
    """Reports how many alternatives were mapped to new chunks and which were lost."""

    def blocks(self) -> list[Block]:
        """Return the counts, the lost alternatives, and the queries dropped with them."""
        carried = self.result
        blocks: list[Block] = [([f"by {carried.method}", "count"], self.csv_rows()[1])]
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
            what = f"{len(carried.dropped):,} of {counted(total, 'query')} would lose a group and"
            verb = "is" if len(carried.dropped) == 1 else "are"
            blocks.append(f"{what} {verb} dropped. To keep them, {ways_to_keep(carried.method)}")
        return blocks

    def csv_rows(self) -> Grid:
        """Return headers and one row per count."""
        return ["what", "count"], [[what, count] for what, count in self.result.counts().items()]

    def frame_rows(self) -> Grid:
        """Return headers and one row per alternative and new chunk that replaces it."""
        return self.result.carried_rows()

    def to_dict(self) -> Any:
        """Return counts, lost alternatives and dropped queries as plain Python."""
        carried = self.result
        counts = {"method": carried.method, "counts": carried.counts()}
        return {**counts, "lost": carried.lost, "left_out": carried.dropped}


class AgreementTeller(Teller[Agreement]):
    """Reports how well two labellers or annotators agree, and on which groups they differ."""

    fields = (
        *("first", "second", "of", "queries", "labellers", "items", "both", "only_first", "only_second", "neither"),
        *("kappa", "alpha", "observed", "expected", "positive", "group_kappa", "groups", "pairs"),
    )

    def blocks(self) -> list[Block]:
        """Return the names of both sides, the statistics, and the `worst` groups, where they disagree most."""
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
        blocks: list[Block] = [
            "\n".join([*lines, counted(agreement.queries, "query")]),
            (["agreement", "value"], figures),
        ]
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

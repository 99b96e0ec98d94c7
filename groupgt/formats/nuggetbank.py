"""Reads and writes autojudge-base nugget banks (version 3), which list facts in good answers with their sources.

- OR, or no aggregator: any answer is enough, so the references of all answers are alternatives in one group;
- AND, SUM: every answer counts, so each answer is a group;
- sub-nuggets are treated like answers; a part of an OR that needs several groups is converted to sets of documents
  that are needed together, one set for each combination of alternatives;
- NOT is an error: groups cannot require that a document not be retrieved.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain, product
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, display, listed, near_names
from groupgt.formats.jsonl import write_objects
from groupgt.formats.records import OUR_KEYS, Queries, folder_of, keys_of, parts_of
from groupgt.formats.source import Record, Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import id_text

BANKS = ("nugget_bank", "claim_bank")
VERSIONS = (None, "v3", "RAGTIME26")
ENDINGS = (".json", ".json.gz", ".jsonl", ".jsonl.gz")
ALL, ANY = ("AND", "SUM"), (None, "OR", "Default")
# The most sets that a part of an OR may become.
MAX_SETS = 100


def look(source: Source) -> str | None:
    """Return `truth` for a nugget bank."""
    keys = keys_of(source)
    if not keys.keys() & set(BANKS) or keys.keys() & OUR_KEYS:
        return None
    named = any(keys.get(key) for key in ("query_id", "title_query", "format_version"))
    return "truth" if named or b'"topic_id"' in source.head() else None


is_folder = folder_of(look, ENDINGS)


def read_ground_truth(source: Source, policy: Policy, *, spans: bool = False) -> GroundTruth:
    """Read groups of documents, or of document `spans` from references with offsets."""
    return _Banks(source, spans=spans).truth(policy)


class _Banks(Queries):
    """The nugget banks in one file or in all files of a folder."""

    def __init__(self, source: Source, *, spans: bool) -> None:
        super().__init__()
        self.spans = spans
        self.references = 0
        for bank in self.records(*parts_of(source, ENDINGS)):
            self.read(bank)
        if self.rows and not self.references and not self.faults:
            what = "no nugget references a document, so rankings cannot be evaluated"
            raise DataError(f"{source.path}: {what}; add references to the answers, questions or claims")

    def read(self, bank: Record) -> None:
        if bank.get("format_version") not in VERSIONS:
            self.fault(f"expected the format_version v3, found {display(bank['format_version'])}")
        if all(bank.get(key) is None for key in BANKS):
            near = next((words for key in BANKS if (words := near_names(key, bank))), "")
            what = f"expected nuggets as {listed(BANKS)}, found the keys {', '.join(bank)}"
            self.fault(f"{what}{near}")
        groups: list[Record] = []
        try:
            for key in BANKS:
                for nugget in self.values_at(bank, key):
                    groups += self.groups_of(nugget, None)
        except RecursionError:
            self.fault("the nesting of sub_nuggets is too deep")
        for number, group in enumerate(groups, 1):
            if group["name"] == str(number):
                del group["name"]
        metadata = bank.get("metadata")
        about = metadata if isinstance(metadata, Mapping) else {}
        title = bank.get("title_query")
        # The keys of the query, in the order in which autojudge-base looks for them.
        qid = bank.get("query_id")
        if qid is None and isinstance(title, str) and title:
            qid = hashlib.md5(title.encode(), usedforsecurity=False).hexdigest()
        self.add(qid if qid is not None else about.get("topic_id", about.get("query_id")), groups, title)

    def groups_of(self, nugget: Record, importance: Any) -> list[Record]:
        text = nugget.get("question", nugget.get("claim"))
        if not isinstance(text, str):
            self.fault(f"expected a string as the question or claim of a nugget, found {display(text)}")
            return []
        importance = nugget.get("importance", importance)
        support = self.documents_of(nugget)
        parts = [
            [_group(f"{text}: {answer.get('answer')}", self.documents_of(answer), answer.get("importance", importance))]
            for answer in self.values_at(nugget, "answers")
        ]
        parts += [self.groups_of(sub, importance) for sub in self.list_at(nugget, "sub_nuggets", optional=True)]
        aggregator = nugget.get("aggregator_type")
        if not parts:
            return [_group(text, support, importance)]
        if aggregator in ALL:
            # Support for the whole nugget supports each of its parts.
            groups = list(chain.from_iterable(parts))
            for group in groups:
                group["alternatives"] = _distinct(group["alternatives"] + support)
            return groups
        sets = [math.prod(len(group["alternatives"]) for group in part) for part in parts if len(part) > 1]
        if aggregator in ANY and max(sets, default=0) <= MAX_SETS:
            any_of = [alternative for part in parts for alternative in _alternatives(part)]
            return [_group(text, _distinct(any_of + support), importance)]
        if aggregator in ANY:
            what = f"any of its parts is enough, but one part can be covered in {max(sets):,} ways (limit: {MAX_SETS})"
        elif aggregator == "NOT":
            what = "it requires that something not be retrieved, which groups cannot express"
        else:
            what = f"expected AND, OR, SUM or NOT as its aggregator_type, found {display(aggregator)}"
        self.fault(f"the nugget {display(text)}: {what}")
        return []

    def documents_of(self, holder: Record) -> list[Any]:
        alternatives: list[Any] = []
        for reference in self.list_at(holder, "references", object, optional=True):
            named = reference if isinstance(reference, Mapping) else {"doc_id": reference}
            name, offsets = id_text(named.get("doc_id")), named.get("offsets")
            if name is None:
                self.fault(f"expected a reference with a doc_id, found {display(reference)}")
            elif not self.spans:
                alternatives.append(name)
            elif isinstance(offsets, Mapping):
                start, end = offsets.get("start_offset"), offsets.get("end_offset")
                alternatives.append({"doc": name, "start": start, "end": end})
            else:
                self.fault(f"the reference to {name!r} has no offsets; read documents instead (format nuggetbank)")
        self.references += len(alternatives)
        return _distinct(alternatives)

    def values_at(self, record: Record, key: str) -> list[Any]:
        """Return the objects at a key that contains either a list or a mapping from texts to objects."""
        cells = record.get(key)
        record = {**record, key: list(cells.values())} if isinstance(cells, Mapping) else record
        return self.list_at(record, key, optional=True)


def _alternatives(part: list[Record]) -> list[Any]:
    """Return the alternatives of a part that has one group, or sets of one alternative from each group."""
    if len(part) == 1:
        return list(part[0]["alternatives"])
    sets: list[Any] = []
    for choice in product(*(group["alternatives"] for group in part)):
        parts = (item["all"] if isinstance(item, Mapping) and "all" in item else [item] for item in choice)
        members = _distinct(list(chain.from_iterable(parts)))
        sets.append(members[0] if len(members) == 1 else {"all": members})
    return sets


def _group(name: str, alternatives: list[Any], importance: Any) -> Record:
    group = {"alternatives": alternatives, "name": name}
    return group if importance is None else {**group, "importance": importance}


def _distinct(alternatives: list[Any]) -> list[Any]:
    return list({json.dumps(alternative): alternative for alternative in alternatives}.values())


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write one bank per line. Each group becomes a question with references, named after the group or its number."""
    banks = (
        {"query_id": qid}
        | ({"title_query": title} if title else {})
        | {"format_version": "v3", "nugget_bank": {nugget["question"]: nugget for nugget in _nuggets(qid, groups)}}
        for (qid, groups), title in zip(truth.items(), truth.texts or [None] * len(truth))
    )
    write_objects(path, banks)


def _nuggets(qid: str, groups: list[Any]) -> Iterator[Record]:
    described = [group if isinstance(group, dict) else {"alternatives": group} for group in groups]
    names = [str(group.get("name", number)) for number, group in enumerate(described, 1)]
    if len(set(names)) < len(names):
        names = [str(number) for number in range(1, len(names) + 1)]
    for name, group in zip(names, described):
        yield {
            "question": name,
            "question_id": hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(),
            "query_id": qid,
            "aggregator_type": "OR",
            "references": [{"doc_id": document} for document in group["alternatives"]],
            **({"importance": group["importance"]} if "importance" in group else {}),
        }

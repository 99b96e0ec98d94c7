"""Maps column names to roles for each kind of file in every format, and writes the messages about missing roles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, product
from typing import Any, Literal

from groupgt.errors import ConfigError, listed, near_names
from groupgt.formats.columns import column_of, columns_in, declaring, is_path
from groupgt.model.validity import are_texts, is_number

Kind = Literal["truth", "run", "corpus", "queries", "answers"]
# The columns that users declare: role → name.
Declared = Mapping[str, str]
NO_COLUMNS: Declared = {}

_QIDS = ("qid", "query_id", "query-id", "queryid", "q_id", "question_id", "topic_id", "topic", "example_id")
_DOCS = ("doc_id", "docno", "docid", "document_id", "corpus-id", "corpus_id", "pid", "did", "passage_id", "chunk_id")
_QUERIES = ("query", "question", "user_input", "query_text", "question_text")
# `expected_doc_ids`, `relevant_chunks` and the like. What holds answers is no ground truth of retrieval.
_STEMS = ("relevant", "expected", "gold", "golden", "positive", "gt")
_NOUNS = ("doc", "docid", "document", "passage", "chunk", "source", "page", "context")
_GOLD = tuple(f"{stem}_{noun}{ending}" for stem, noun, ending in product(_STEMS, _NOUNS, ("_ids", "s", "_id"))) + tuple(
    f"{stem}{ending}" for stem, ending in product(_STEMS, ("_ids", "", "s", "_id"))
)
AUTORAG_LISTS = ("retrieved_ids", "retrieved_ids_lexical", "retrieved_ids_semantic")
# The names of each role, the first that a file has counts; the name of the role comes first.
NAMES: dict[Kind, dict[str, tuple[str, ...]]] = {
    "truth": {
        "qid": (*_QIDS, "id", "_id"),
        "query": _QUERIES,
        "retrieval_gt": ("retrieval_gt", *_GOLD),
        "group": ("group", "subtopic", "group_id", "subtopic_id", "aspect"),
        "doc_id": (*_DOCS, "doc"),
        "grade": (
            *("grade", "relevance", "rel", "label", "relevancy", "relevance_grade", "rating"),
            *("judgment", "judgement", "grades"),
        ),
        "weight": ("weight",),
        "answerable": ("answerable", "is_answerable"),
        "excluded_ids": ("excluded_ids",),
        "harmful_ids": ("harmful_ids",),
    },
    "run": {
        "qid": _QIDS,
        "query": _QUERIES,
        "doc_id": (*_DOCS, "doc", "id", "_id"),
        "score": ("score", "similarity", "sim", "relevance_score", "retrieval_score"),
        "rank": ("rank",),
        "retrieved_ids": (
            *AUTORAG_LISTS,
            *(f"retrieved_{noun}{ending}" for noun, ending in product(_NOUNS[:-1], ("_ids", "s"))),
            *("retrieved", "results", "ranking", "doc_ids"),
        ),
        "retrieve_scores": ("retrieve_scores", "retrieved_scores", "retrieval_scores", "scores"),
        "text": ("contents", "text"),
        "trial": ("trial",),
        "build": ("build",),
    },
    "corpus": {
        "doc_id": ("chunk_id", "doc_id", "_id", "id", *_DOCS[1:-1], "url"),
        "text": ("contents", "text", "content", "body", "passage", "passage_text", "page_content", "chunk", "document"),
    },
    "queries": {"qid": (*_QIDS, "_id", "id"), "query": ("query", "text", *_QUERIES[1:], "title")},
    # The last ones are metrics of ragas.
    "answers": {
        "qid": (*_QIDS, "id", "_id"),
        "query": _QUERIES,
        "correct": (
            *("correct", "is_correct", "correctness", "answer_correct", "answer_correctness"),
            *("factual_correctness", "factual_correctness(mode=f1)", "nv_accuracy"),
        ),
        "trial": ("trial", "build"),
    },
}
# In nested records: where the rows are, and the elements whose documents are needed together.
IN_RECORDS = ("rows", "all")
# The roles that users declare, by the kind of file.
ROLES: dict[Kind, tuple[str, ...]] = {kind: (*NAMES[kind], *IN_RECORDS) for kind in ("run", "answers")}
ROLES["truth"] = (*NAMES["truth"], "text", *IN_RECORDS)
# Roles whose column has another name in results.
_FIRST = {"text": "contents"}
# Beside these, `score` is the grade of a judgment (BEIR).
_JUDGED = {"corpus-id", "corpus_id"}
# What a name that is no role probably holds.
_ANSWERS, _TEXTS = "an answer", "retrieved text"
MEANINGS = {
    **dict.fromkeys(("answer", "answers", "expected_output", "expected_answer", "expected_answers"), _ANSWERS),
    **dict.fromkeys(("reference", "references", "ground_truth", "ground_truths", "generation_gt"), _ANSWERS),
    "distance": "distances: for these, add --scores ascending (scores: in experiments, scores= in Python) and "
    + declaring("run", score="distance"),
    **dict.fromkeys(("retrieval_context", "retrieved_contexts", "contexts", "context"), _TEXTS),
}
# Words in the names of columns that hold no ids, and the roles that need ids or numbers.
_NO_ID = (
    r"(^|[\W_])(answers?|outputs?|responses?|completions?|titles?|texts?|contents?|sentences?|summary|reasons?"
    r"|explanations?|types?|is|has|abstention|abstain)([\W_]|$)"
)
LISTS = ("retrieval_gt", "retrieved_ids", "excluded_ids", "harmful_ids")
_IDS, _NUMBERS = {"qid", "doc_id", "group", *LISTS}, {"score", "rank", "grade", "weight"}
# Names that may be of a role, but also of something else: they are suggested, not taken.
_NEAR: dict[str, tuple[str, ...]] = {
    "qid": ("q", "query_no", "number", "num", "tid", "topic_no", "questionid", "task_id", "sample_id", "case_id"),
    "doc_id": ("chunk", "passage", "document", "passage_no", "document_no", "source", "url", "file", "page"),
    "retrieval_gt": ("ground_truth_ids", "ground_truth_docs", "targets", "target", "evidence", "support"),
    "retrieved_ids": ("ids", "docs", "documents", "hits", "output", "search_results"),
    "score": ("probability", "confidence", "value", "relevance", "rel"),
    "group": ("fact", "nugget", "slot", "cluster", "aspect_id"),
    "grade": ("score", "gain", "value"),
    "text": ("title",),
    "correct": ("score", "accuracy", "label", "grade", "rating", "judgment", "verdict", "passed", "value"),
}
# What ids are called in objects.
_INNER = {*chain.from_iterable(NAMES["run"][role] + _NEAR[role] for role in ("doc_id", "retrieved_ids")), *_GOLD}
_RESULTS = (*NAMES["run"]["retrieved_ids"], "hits", "search_results")
COMPARED_NAMES, SHOWN_NAMES = 1000, 100


def _declared_in(names: Collection[str], declared: Declared) -> dict[str, str]:
    return {role: column.name for role, column in columns_in(names, declared).items()}


def roles_in(names: Collection[str], kind: Kind, declared: Declared = NO_COLUMNS) -> dict[str, str]:
    """Return the column for each role in a file: the declared column if it exists, or else a column found by name."""
    declared = _declared_in(names, declared)
    roles = {role: name for role, name in declared.items() if role in NAMES[kind]}
    taken = set(declared.values())
    folded = {name.strip(" ").lower(): name for name in reversed(list(names)) if name not in taken}
    for role, known in NAMES[kind].items():
        exact = next((name for name in known if name in names and name not in taken), None)
        near = exact or next((folded[name] for name in known if name in folded), None)
        if role not in roles and near is not None:
            roles[role] = near
    if kind == "truth" and "grade" not in roles and "score" in names and roles.get("doc_id") in _JUDGED:
        roles["grade"] = "score"
    if kind == "truth" and "query" not in roles and roles.get("qid", "").strip(" ").lower() in _QUERIES:
        roles["query"] = roles["qid"]  # the texts of queries are their ids
    return {role: roles[role] for role in NAMES[kind] if role in roles}


def canonical(names: Sequence[str], declared: Declared = NO_COLUMNS) -> tuple[str, ...]:
    """Rename the columns of a results table to their roles, in the same order. Other columns keep their names."""
    columns = roles_in(names, "run", declared).items()
    roles = {name: name if name in AUTORAG_LISTS else _FIRST.get(role, role) for role, name in columns}
    if roles.keys() == set(roles.values()):
        return tuple(names)
    taken = set(roles.values())
    return tuple(roles.get(name, f"{name}_" if name in taken else name) for name in names)


def id_in(result: Mapping[Any, Any]) -> Any:
    """Return the id of a result, or None. If a result is a span, its document does not count as its id."""
    names = ("id", *NAMES["run"]["doc_id"]) if result.get("start") is None else ("id",)
    return next((result[name] for name in names if result.get(name) is not None), None)


def query_column(names: Collection[str]) -> str:
    """Return the column that identifies queries, which contains their ids or else their texts."""
    return "query" if "qid" not in names and "query" in names else "qid"


def is_kind(names: Collection[str], kind: Kind, declared: Declared = NO_COLUMNS) -> bool:
    """Return whether columns contain complete ground truth or results in at least one form."""
    roles = roles_in(names, kind, declared).keys()
    if not roles & {"qid", "query"}:
        return False
    if kind == "truth":
        return "retrieval_gt" in roles or "doc_id" in roles
    return "retrieved_ids" in roles or ("doc_id" in roles and bool(roles & {"score", "rank"}))


def kind_of(names: Collection[str], declared: Declared = NO_COLUMNS) -> str | None:
    """Return `truth`, `run` or `either`, based on columns that only one kind of file has, or None if neither fits."""
    truth, run = roles_in(names, "truth", declared).keys(), roles_in(names, "run", declared).keys()
    is_declared = not _declared_in(names, declared).keys().isdisjoint(("grade", "score"))
    if is_declared and is_kind(names, "truth", declared) and is_kind(names, "run", declared):
        return "either"
    if truth & {"retrieval_gt", "group", "grade", "answerable"} and is_kind(names, "truth", declared):
        # AutoRAG writes its results beside the ground truth.
        return "either" if run & {"retrieved_ids"} else "truth"
    if run & {"score", "rank", "retrieved_ids", "retrieve_scores"} and truth.isdisjoint({"retrieval_gt", "group"}):
        return "run"
    return "either" if is_kind(names, "truth", declared) or is_kind(names, "run", declared) else None


def of_other_kind(names: Collection[str], *, is_truth: bool) -> str:
    """Suggest how to declare a column that usually belongs to the other kind of file, or return an empty string."""
    if is_truth and "score" in names and "doc_id" in roles_in(names, "truth"):
        return f"if score contains grades, add {declaring('truth', grade='score')}"
    grade = roles_in(names, "truth").get("grade")
    if not is_truth and grade is not None and "doc_id" in roles_in(names, "run"):
        return f"if {grade} contains scores, add {declaring('run', score=grade)}"
    return ""


def check_declared(declared: Declared | None, *kinds: Kind) -> Declared:
    """Return the declared columns, or raise `ConfigError` for a role that these kinds of files do not have."""
    known = dict.fromkeys(chain.from_iterable(map(ROLES.__getitem__, kinds)))
    for role in declared or ():
        if role not in known:
            raise ConfigError(f"columns: expected {listed(known)}, found {role!r}{near_names(role, known)}")
    return declared or NO_COLUMNS


def has_paths(names: Collection[str], declared: Declared) -> bool:
    """Return whether any declared column is a path, splits text that is no list, or gives the location of the rows."""
    own = {role: text for role, text in declared.items() if text not in names}
    splits = any(column_of(own[role]).separator for role in own.keys() - {*LISTS, "retrieve_scores"})
    return "rows" in declared or splits or any(map(is_path, own.values()))


def shown_names(names: Iterable[str]) -> str:
    """Return the first names, joined."""
    first = list(islice(map(str, names), SHOWN_NAMES + 1))
    return ", ".join(first[:SHOWN_NAMES]) + ", …" * (len(first) > SHOWN_NAMES) if first else "no columns"


def may_hold(role: str, name: str, cell: Any = None) -> bool:
    """Return whether a column may fill a role, judging by its name and one of its cells."""
    if role in _IDS | _NUMBERS and str(cell).lower() in ("true", "false"):
        return False
    if role in _NUMBERS:
        return cell is None or is_number(str(cell))
    if role not in _IDS:
        return True
    cells = cell if isinstance(cell, list) else [cell]
    is_list = isinstance(cell, list) and role in LISTS
    inner = list(chain.from_iterable(each if isinstance(each, list) else [each] for each in cells))
    if (isinstance(cell, list) and not is_list) or any(isinstance(each, (float, dict)) for each in inner):
        return False
    texts = [each for each in inner if isinstance(each, str)]
    return not ((texts and are_texts(texts)) or re.search(_NO_ID, name.lower()))


def hint(names: Collection[str] | Mapping[str, Any], missing: Iterable[str], kind: Kind = "truth") -> str:
    """Explain what columns (with a cell of each, if given) may contain, and how to name the missing ones."""
    wanted = list(missing)
    cells = names if isinstance(names, Mapping) else {}
    used = {name for role, name in roles_in(names, kind).items() if role not in wanted}
    rest = [name for name in names if name not in used]
    pairs: list[tuple[str, str]] = []
    for role in wanted:
        own = {_folded(name) for name in (role, *NAMES[kind].get(role, ()))}
        possible = [name for name in rest if may_hold(role, name, cells.get(name)) and name.lower() not in MEANINGS]
        matches = [name for name in possible if _folded(name) in own]
        matches += [name for name in possible if name.strip(" ").lower() in _NEAR.get(role, ())]
        if not matches and role == "retrieval_gt":
            matches = [name for name in possible if name.lower().startswith(_STEMS)]
            matches.sort(key=lambda name: not isinstance(cells.get(name), list))
        pairs += [(matches[0], role)] if matches and matches[0] not in dict(pairs) else []
    meant = [(name, MEANINGS[name.lower()]) for name in rest if name.lower() in MEANINGS]
    words = ""
    if pairs:
        renamed = ", ".join(f"{name} to {role}" for name, role in pairs)
        words = f"; rename {renamed}, or add {declaring(kind, **{role: name for name, role in pairs})}"
    is_unnamed = not {"retrieval_gt", "retrieved_ids", "doc_id"}.isdisjoint({*wanted} - {role for _, role in pairs})
    if is_unnamed and (way := path_to_ids(cells, kind)):
        return words + way
    if len(pairs) < len(wanted):
        words += "".join(f"; {name} contains {_meaning(meaning, kind)}" for name, meaning in meant[:2])
    if words:
        return words
    near = ((role, [name for name in rest if may_hold(role, name, cells.get(name))]) for role in wanted)
    hints = ((role, near_names(role, islice(possible, COMPARED_NAMES))) for role, possible in near)
    return next((words.replace("did you mean", f"is {role} called") for role, words in hints if words), "")


# Names of numbers beside the id of an alternative.
_GRADES = re.compile(r"grade|relevan|^rel$|rating|label|judg", re.IGNORECASE)


def path_to_ids(cells: Mapping[str, Any], kind: Kind) -> str:
    """Suggest the path to ids within objects in a list, and to the groups of ground truth, or return an empty text."""
    for name, cell in cells.items() if kind in ("truth", "run") else ():
        first = cell[0] if isinstance(cell, list) and cell else None
        # Results are not ground truth, and an object with a boolean may be one to leave out.
        is_other = kind == "truth" and name.lower() in (*MEANINGS, *_RESULTS)
        if is_other or not may_hold("doc_id", name) or not isinstance(first, dict) or bool in map(type, first.values()):
            continue
        # A list of ids tells more than the id of its object.
        for key, value in sorted(first.items(), key=lambda item: not isinstance(item[1], list)):
            several = isinstance(value, list)
            if key.lower() in _INNER and may_hold("retrieved_ids" if several else "doc_id", key, value):
                place = f'"{name}"[]' if is_path(name) else f"{name}[]"
                columns = {"doc_id": f"{place}.{key}{'[]' * several}"}
                if kind == "truth":
                    numbers = [each for each in first if isinstance(first[each], (int, float)) and each != key]
                    grade = next(filter(_GRADES.search, numbers), None)
                    columns |= {"group": place} if several else {"grade": f"{place}.{grade}"} if grade else {}
                return f"; {name} lists objects: name the ids with {declaring(kind, **columns)}"
    return ""


@lru_cache(maxsize=512)
def has_near(name: str, keys: Collection[str]) -> bool:
    """Return whether any key closely resembles a name. Results are cached because records in a file share keys."""
    return bool(near_names(name, keys))


def _folded(name: str) -> str:
    """Return a name in lower case, without blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", name).lower()


def _meaning(meaning: str, kind: Kind) -> str:
    """Explain what a column contains instead of what this kind of file needs."""
    if meaning not in (_ANSWERS, _TEXTS):
        return meaning
    if kind == "truth":
        return f"{meaning}, not {'ground truth' if meaning == _TEXTS else 'the ids of relevant documents'}"
    return f"{meaning}, not the ids of results"


def missing_columns(
    names: Collection[str] | Mapping[str, Any], missing: Sequence[str], expected: str, kind: Kind = "truth"
) -> str:
    """Describe the missing columns, the existing columns, and which of these the user may have meant."""
    what = f"the {missing[0]!r} column is" if len(missing) == 1 else f"the columns {', '.join(missing)} are"
    words = hint(names, missing, kind)
    if not words and any(map(is_number, names)):
        words = f"; is the header line missing? Expected one such as {expected.partition(' (')[0]}"
    if not words and "retrieval_gt" in missing:
        words = "; if a column with another name lists the relevant documents, add --columns retrieval_gt=NAME"
    return f"{what} missing: expected {expected}, found {shown_names(names)}{words}"

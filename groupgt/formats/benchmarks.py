"""Readers for public benchmarks as published, including output files from third-party programs.

- freshstack: `freshstack/queries-oct-2024`;
- bright, bright-long, bright-pro: gold documents, as passages or as full pages, or grouped by weighted aspects;
- multihop-rag, multihop-rag-documents: neither the data set nor saved results have ids, so query text serves as id;
- nuggetizer: only the output of `assign` for retrieved passages contains document ids; nuggets from `create` are text;
- crux: ratings (`id`, `docid`) and judgments (`example_id`, `pid`), also used to evaluate LANCER, with one number in
  `rating` per sub-question;
- longmemeval: sessions with the answer, and the retrieval log; questions whose id ends with `_abs` have no answer;
- locomo: turns are unique within a conversation, so groupgt puts the conversation's id before them;
- double-bench: pages of a document, `doc_path/page`;
- ragelo: TREC subtopic qrels, with a placeholder for each criterion that no document addresses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from groupgt.errors import DataError, display, listed, warn
from groupgt.formats import nuggetbank, recipes, trec
from groupgt.formats.beir import split_of
from groupgt.formats.fields import first_in, ids_at
from groupgt.formats.format import Format
from groupgt.formats.records import Queries, folder_of, graded, has_keys, keys_of, look_for, parts_of, records, singles
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import Record, Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ANSWERABLE
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import finite_number, id_text
from groupgt.model.values import normal_text, unnamed

# Makes groups from a record, or one group from a part of it; errors are added to the faults of the queries.
Groups = Callable[[Queries, Record], Any]
# Aspects of BRIGHT-Pro are named after their query.
ASPECT = re.compile(r"-(?:a|aspect-)\d+$")
ENDINGS = (".json", ".jsonl", ".parquet")
# The keys of MultiHop-RAG's evidence in the data set and in saved results.
EVIDENCE = ("evidence_list", "gold_list")
GRADES = {"support": 2, "partial_support": 1, "not_support": 0}
# What nuggetizer writes if its model gave no usable answer: the passage remains unjudged.
FAILED = "failed"
# The keys of query and passage in CRUX files, and the endings of the files of a folder.
CRUX_KEYS = (("id", "docid"), ("example_id", "pid"))
CRUX_ENDINGS = (".jsonl", ".jsonl.gz")
# The category of LoCoMo's questions that the conversation does not answer, and what separates joined turns.
ADVERSARIAL, TURNS = 5, re.compile(r"[;,\s]+")
_ITEMS = "retrieval_results.ranked_items[]"
RANKED_ITEMS = {"qid": "question_id", "query": "question?"}
RANKED_ITEMS |= {"retrieved_ids": f"{_ITEMS}.corpus_id", "text": f"{_ITEMS}.text?"}
CONTEXTS = {"qid": "task_id", "query": "input?[-1]?.text?", "retrieved_ids": "contexts[].document_id"}
CONTEXTS |= {"retrieve_scores": "contexts[].score?", "text": "contexts[].text?"}
RAGELO_PLACEHOLDER = "__ragelo_unaddressed__"


def _read(
    source: Source,
    policy: Policy,
    groups: Groups,
    text: tuple[str, ...] = ("query",),
    qid: str = "id",
    columns: tuple[str, ...] = (),
    excludes: bool = False,
) -> GroundTruth:
    """Read one query per record from these keys. Without `qid`, a query is identified by its text."""
    queries = Queries()
    for record in queries.records(source):
        # Passages that lack part of an answer do not make a question answerable (MuSiQue).
        made = [] if record.get(ANSWERABLE) is False else groups(queries, record)
        texts = [cell for key in text if isinstance(cell := record.get(key), str) and cell]
        kept = {name: record[name] for name in (*columns, ANSWERABLE) if name in record}
        excluded = _excluded(queries, record) if excludes else []
        joined = " ".join(texts)
        name = record.get(qid, record.get("id")) if qid else normal_text(joined)
        queries.add(name, made, joined, kept, excluded)
    return queries.truth(policy)


def _excluded(queries: Queries, record: Record) -> list[str]:
    return [] if record.get("excluded_ids") is None else queries.ids_at(record, "excluded_ids")


def _each(key: str, group: Groups) -> Groups:
    return lambda queries, record: [group(queries, cell) for cell in queries.list_at(record, key)]


def _nugget(queries: Queries, nugget: Record) -> Record:
    """Make a group from a FreshStack nugget. An unsupported nugget becomes an empty group (policy `empty_groups`)."""
    # As in FreshStack: a document in both lists is not relevant.
    grades = dict.fromkeys(queries.ids_at(nugget, "relevant_corpus_ids"), 1)
    grades |= dict.fromkeys(queries.ids_at(nugget, "non_relevant_corpus_ids"), 0)
    return {"alternatives": graded(grades), "name": nugget.get("text")}


def _gold(key: str) -> Groups:
    return lambda queries, record: singles(queries.ids_at(record, key))


def read_bright_pro(source: Source, policy: Policy) -> GroundTruth:
    """Make a weighted group from each aspect and its supporting documents."""
    queries = Queries()
    aspects: dict[str, list[Record]] = {}
    first: dict[str, str] = {}
    for record in queries.records(source):
        name = id_text(record.get("id"))
        if name is None or not ASPECT.search(name):
            what = "expected an aspect id (the id of its question, then -a1 or -aspect-1)"
            queries.fault(f"{what}, found {display(record.get('id'))}")
            continue
        if not queries.once(name, f"the aspect {name!r} is described"):
            continue
        qid = ASPECT.sub("", name)
        first.setdefault(qid, queries.where)
        alternatives = list(dict.fromkeys(queries.ids_at(record, "supporting_docs")))
        group = {"alternatives": alternatives, "weight": record.get("weight"), "name": record.get("content") or name}
        aspects.setdefault(qid, []).append(group)
    folder = source.path.parent.parent / "examples"
    named = (folder / f"{split_of(source.path)}{ending}" for ending in ENDINGS)
    examples = next((path for path in (folder / source.path.name, *named) if path.is_file()), None)
    rows = () if examples is None else records(Source(examples), queries.faults)
    texts = {id_text(record.get("id")): record for _, record in rows}
    for qid, groups in aspects.items():
        record = texts.get(qid, {})
        queries.where = first[qid]
        queries.add(qid, groups, record.get("query"), excluded=_excluded(queries, record))
    return queries.truth(policy)


def _evidence(queries: Queries, record: Record, key: str) -> list[Any]:
    """Make a group from each piece of evidence. A group contains a URL, or a fact that passages must contain."""
    name = first_in(EVIDENCE, record) or EVIDENCE[0]
    texts = [queries.text_at(evidence, key) for evidence in queries.list_at(record, name)]
    distinct = dict.fromkeys(text for text in texts if text is not None)
    return [[{"text": text} if key == "fact" else text] for text in distinct]


def look_multihop(source: Source) -> str | None:
    """Return `truth` for the MultiHop-RAG data set, or `either` for saved results, which contain the evidence too."""
    return "either" if has_keys(source, "query", "retrieval_list") else look_for("query", "evidence_list")(source)


def read_multihop_run(source: Source) -> Run:
    """Read the passage text in `retrieval_list`, best first. The results have no ids."""
    queries = Queries()
    builder = RunBuilder(queries.faults)
    for record in queries.records(source):
        results = queries.list_at(record, "retrieval_list")
        texts = [text for result in results if (text := queries.text_at(result, "text")) is not None]
        qid = normal_text(queries.text_at(record, "query") or "")
        if qid in builder.ids:
            queries.fault(f"query {display(qid)}: duplicate query")
        builder.add_ranking(qid, unnamed(len(texts)), fields={"text": texts})
    return builder.run(source, by_text=True, has_ids=False)


def _answer(queries: Queries, answer: Record) -> Record:
    """Make a group from a QAMPARI answer. Any passage that contains the answer or an alias covers the group."""
    text = queries.text_at(answer, "answer_text")
    return {**_any_of([text or "", *queries.list_at(answer, "aliases", str)]), "name": text}


def _page(queries: Queries, answer: Record) -> Record:
    """Make a group from a QAMPARI answer. Any page (identified by URL) that proves the answer covers the group."""
    proofs = [proof for proof in queries.list_at(answer, "proof") if queries.has(proof, "found_in_url")]
    urls = {"found_in_url": [url for proof in proofs if (url := proof["found_in_url"])]}
    alternatives = list(dict.fromkeys(queries.list_at(urls, "found_in_url", str)))
    return {"alternatives": alternatives, "name": answer.get("answer_text")}


def _any_of(texts: list[str]) -> Record:
    return {"alternatives": [{"text": text} for text in dict.fromkeys(texts) if text.strip()]}


def read_ambigqa(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each answer in the first annotation. The `annotations` column counts all annotations."""
    queries = Queries()
    several = 0
    for record in queries.records(source):
        annotations = queries.list_at(record, "annotations")
        several += len(annotations) > 1
        groups = []
        for annotation in annotations[:1]:
            kind = annotation.get("type")
            if kind == "singleAnswer":
                groups.append(_any_of(queries.list_at(annotation, "answer", str)))
            elif kind == "multipleQAs":
                for pair in queries.list_at(annotation, "qaPairs"):
                    groups.append({**_any_of(queries.list_at(pair, "answer", str)), "name": pair.get("question")})
            else:
                what = "expected singleAnswer or multipleQAs as the type of an annotation"
                queries.fault(f"{what}, found {display(kind)}")
        queries.add(record.get("id"), groups, record.get("question"), {"annotations": len(annotations)})
    truth = queries.truth(policy)
    if several:
        many = f"{several:,} question{'s' * (several > 1)} with several annotations, each a complete set of answers"
        warn(f"{source.path}: {many}; groupgt reads only the first (skip these questions with --where annotations=1)")
    return truth


def _created(queries: Queries, nugget: Record) -> Record:
    """Represent a nugget without documents by its text, for labellers that compare text."""
    text = nugget.get("text")
    return {"alternatives": [{"text": text}], "name": text, "importance": nugget.get("importance")}


def read_nuggetizer(source: Source, policy: Policy) -> GroundTruth:
    """Make a `vital` or `okay` group from each nugget. `support` is grade 2, `partial_support` 1, `not_support` 0."""
    keys = keys_of(source).keys()
    if "docid" in keys:
        return _assigned(source, policy)
    if keys & {"answer_text", "run_id"}:
        what = "these assignments judge answers, not documents; assign nuggets to the retrieved passages"
        raise DataError(f"{source.path}: {what} with `nuggetizer assign --input-kind retrieval`")
    return _read(source, policy, _each("nuggets", _created), qid="qid")


def _assigned(source: Source, policy: Policy) -> GroundTruth:
    queries = Queries()
    # The group of each nugget, by query.
    judged: dict[str, dict[str, Record]] = {}
    first: dict[str, tuple[str, Any]] = {}
    for record in queries.records(source):
        if (ids := ids_at(record, ("qid", "docid"), queries.where, queries.faults)) is None:
            continue
        qid, document = ids
        if not queries.once((qid, document), f"query {qid!r}: {document!r} is assigned"):
            continue
        first.setdefault(qid, (queries.where, record.get("text", record.get("query"))))
        nuggets = judged.setdefault(qid, {})
        times: Counter[Any] = Counter()
        for number, nugget in enumerate(queries.list_at(record, "nuggets"), 1):
            text, assignment = nugget.get("text"), nugget.get("assignment")
            times[str(text)] += 1
            # Nuggets of equal text are different nuggets.
            text = f"{text} ({times[text]})" if isinstance(text, str) and times[text] > 1 else text
            if not isinstance(text, str):
                queries.fault(f"expected a string as the text of a nugget, found {display(text)}")
            elif assignment in (*GRADES, FAILED):
                queries.is_important(qid, text, importance := nugget.get("importance"), number)
                group = nuggets.setdefault(text, {"grades": {}, "name": text, "importance": None})
                if group["importance"] is None:
                    group["importance"] = importance
                what = f"query {qid!r}: the assignment of {document!r} to the nugget {display(text)} is"
                if assignment != FAILED and queries.agrees((qid, document, text), assignment, number, what):
                    group["grades"][document] = GRADES[assignment]
            else:
                names = listed((*GRADES, FAILED))
                queries.fault(f"expected {names} as the assignment, found {display(assignment)}")
    for qid, nuggets in judged.items():
        groups = [{"alternatives": graded(group.pop("grades")), **group} for group in nuggets.values()]
        queries.where, query = first[qid]
        queries.add(qid, groups, query)
    return queries.truth(policy)


def look_crux(source: Source) -> str | None:
    """Return `truth` for a file of CRUX ratings."""
    return "truth" if any(has_keys(source, *keys, "rating") for keys in CRUX_KEYS) else None


def read_crux(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each sub-question. The grade of a passage is its rating."""
    queries = Queries()
    first: dict[str, str] = {}
    rated: dict[str, dict[str, list[Any]]] = {}
    for record in queries.records(*parts_of(source, CRUX_ENDINGS)):
        if (ids := ids_at(record, CRUX_KEYS["pid" in record], queries.where, queries.faults)) is None:
            continue
        qid, document = ids
        ratings = queries.list_at(record, "rating", object)
        if not isinstance(record.get("rating"), list):
            continue
        passages = rated.setdefault(qid, {})
        expected = len(next(iter(passages.values()), ratings))
        if not queries.once((qid, document), f"query {qid!r}: {document!r} is rated"):
            continue
        if len(ratings) != expected:
            what = f"expected {expected} ratings, one for each sub-question, as at {first[qid]}, found {len(ratings)}"
            queries.fault(f"query {qid!r}: {what}")
        elif invalid := [cell for cell in ratings if finite_number(cell) is None]:
            queries.fault(f"query {qid!r}: expected numbers in rating, found {display(invalid[0])}")
        else:
            first.setdefault(qid, queries.where)
            passages[document] = ratings
    for qid, passages in rated.items():
        if passages:
            queries.where = first[qid]
            queries.add(qid, [graded(dict(zip(passages, grades))) for grades in zip(*passages.values())])
    return queries.truth(policy)


def _supporting(queries: Queries, record: Record) -> list[Any]:
    """Make a group from each supporting title. HotpotQA and 2WikiMultihopQA list facts as [title, sentence]."""
    facts = record.get("supporting_facts")
    if isinstance(facts, dict):  # as the Hugging Face Hub has them
        return singles(queries.list_at(facts, "title", str))
    pairs = queries.list_at(record, "supporting_facts", list)
    return singles(str(pair[0]) for pair in pairs if pair and isinstance(pair[0], str))


def _paragraphs(queries: Queries, record: Record) -> list[Any]:
    """Make a group from the title of each supporting paragraph in MuSiQue."""
    paragraphs = [cell for cell in queries.list_at(record, "paragraphs") if cell.get("is_supporting") is True]
    return singles(title for cell in paragraphs if (title := queries.text_at(cell, "title")) is not None)


def read_longmemeval(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each session that has the answer. No session answers the `…_abs` questions."""
    queries = Queries()
    for record in queries.records(source):
        is_answered = not str(record.get("question_id")).endswith("_abs")
        groups = singles(queries.ids_at(record, "answer_session_ids")) if is_answered else []
        kept = {key: record[key] for key in ("question_type", "question_date", "haystack_session_ids") if key in record}
        queries.add(record.get("question_id"), groups, record.get("question"), kept | {ANSWERABLE: is_answered})
    return queries.truth(policy)


def read_locomo(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each turn of a conversation that is evidence for the answer."""
    queries = Queries()
    for record in queries.records(source):
        sample, place = queries.text_at(record, "sample_id"), queries.where
        for number, question in enumerate(queries.list_at(record, "qa")):
            queries.where = f"{place}: qa {number}"
            turns = chain.from_iterable(map(TURNS.split, queries.list_at(question, "evidence", str)))
            groups = singles(f"{sample}:{turn}" for turn in turns if turn)
            kind = question.get("category")
            text = queries.text_at(question, "question")
            kept = {"category": kind, ANSWERABLE: kind != ADVERSARIAL}
            queries.add(f"{sample}:{number}", groups if kept[ANSWERABLE] else [], text, kept)
    return queries.truth(policy)


def _parts(queries: Queries, record: Record) -> list[Any]:
    """Make a group from each page that answers a part of a FanOutQA question."""
    pages: list[str] = []
    for part in queries.list_at(record, "decomposition"):
        if isinstance(evidence := part.get("evidence"), dict):
            pages += queries.ids_at({"pageid": [evidence.get("pageid")]}, "pageid")
        pages += chain.from_iterable(_parts(queries, part))
    return singles(pages)


def _numbered_pages(queries: Queries, record: Record) -> list[Any]:
    """Make a group from each page of a Double-Bench document."""
    folder = queries.text_at(record, "doc_path")
    return singles(f"{folder}/{page}" for page in queries.ids_at(record, "reference_page"))


def _look_longmemeval(source: Source) -> str | None:
    if has_keys(source, "question_id", "retrieval_results"):
        return "either" if has_keys(source, "question_id", "answer_session_ids") else "run"
    return look_for("question_id", "question_type", "haystack_session_ids")(source)


def read_ragelo(source: Source, policy: Policy) -> GroundTruth:
    """Make a group from each criterion. A lone placeholder becomes an empty group (policy `empty_groups`)."""
    queries: dict[str, dict[str, list[Any]]] = {}
    rows = trec.judged(source, trec.SUBTOPICS)
    rows.truth(policy, "subtopics")  # reports every fault
    for qid, criterion, document, grade in zip(rows.qids, rows.groups or (), rows.documents, rows.grades.tolist()):
        group = queries.setdefault(qid, {}).setdefault(criterion, [])
        if not document.startswith(RAGELO_PLACEHOLDER):
            group.append({"id": document, "grade": grade})
    groups = [[{"alternatives": ids, "name": name} for name, ids in each.items()] for each in queries.values()]
    return GroundTruth.from_rows(list(queries), groups, policy, place=lambda _: str(source.path))


QAMPARI_KEYS = ("question_text", "answer_list")
_multihop = partial(_read, qid="", columns=("question_type", "answer"))
_qampari = partial(_read, text=("question_text",), qid="qid")
_bright = partial(_read, excludes=True)
_question = partial(_read, text=("question",))
# Each is recognized by keys that no other format has.
FORMATS = (
    Format(
        "freshstack",
        look_for("query_id", "query_text", "nuggets"),
        partial(_read, groups=_each("nuggets", _nugget), text=("query_title", "query_text"), qid="query_id"),
    ),
    Format("nuggetizer", look_for("qid", "nuggets"), read_nuggetizer),
    Format("multihop-rag", look_multihop, partial(_multihop, groups=partial(_evidence, key="fact")), read_multihop_run),
    Format("multihop-rag-documents", None, partial(_multihop, groups=partial(_evidence, key="url"))),
    Format("qampari", look_for("qid", *QAMPARI_KEYS), partial(_qampari, groups=_each("answer_list", _answer))),
    Format("qampari-documents", None, partial(_qampari, groups=_each("answer_list", _page))),
    Format("nuggetbank", nuggetbank.look, nuggetbank.read_ground_truth, folder=nuggetbank.is_folder),
    Format("nuggetbank-spans", None, partial(nuggetbank.read_ground_truth, spans=True), folder=nuggetbank.is_folder),
    Format("bright", look_for("query", "id", "gold_ids"), partial(_bright, groups=_gold("gold_ids")), shape="flat"),
    Format("bright-long", None, partial(_bright, groups=_gold("gold_ids_long")), shape="flat"),
    Format("bright-pro", look_for("id", "weight", "supporting_docs"), read_bright_pro),
    Format(
        "hotpotqa",
        look_for("question", "supporting_facts"),
        partial(_question, groups=_supporting, qid="_id", columns=("type", "level", "answer")),
    ),
    Format(
        "musique", look_for("id", "question", "paragraphs"), partial(_question, groups=_paragraphs, columns=("answer",))
    ),
    Format("crux", look_crux, read_crux, folder=folder_of(look_crux, CRUX_ENDINGS)),
    Format("longmemeval", _look_longmemeval, read_longmemeval, partial(recipes.read_run, recipe=RANKED_ITEMS)),
    Format("locomo", look_for("sample_id", "conversation", "qa"), read_locomo),
    Format("fanoutqa", look_for("id", "question", "decomposition"), partial(_question, groups=_parts)),
    Format(
        "double-bench",
        look_for("uid", "question", "reference_page", "doc_path"),
        partial(_question, groups=_numbered_pages, qid="uid", columns=("language", "doc_type", "query_type")),
    ),
    Format(
        "mtrag",
        lambda source: "run" if has_keys(source, "task_id", "contexts") else None,
        None,
        partial(recipes.read_run, recipe=CONTEXTS),
    ),
    Format("ragelo", None, read_ragelo),
    Format("ambigqa", look_for("id", "question", "annotations"), read_ambigqa),
)

"""Warns about results that seem to belong to other data (unknown ids, no shared queries or documents, near matches)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.errors import DataError, display, first_of, warn
from groupgt.evaluation.request import Request
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools
from groupgt.model.run import Run
from groupgt.model.validity import are_texts
from groupgt.records import record
from groupgt.render.tables import counted
from groupgt.runtime import urls

# Maximum number of results considered.
LOOKED_AT = 200_000
# Maximum number of queries whose unmatched ids are compared with their results, and of these results.
MOST_QUERIES, FEW_RESULTS = 1000, 10_000
TEXTS_WAY = "; use ids, or compare text with --labeller text (labeller=)"
# Fewer queries than this may all fail by chance; this many are unlikely to.
SEVERAL = 10


@record
class Seen:
    """The overlap between a run's results (from all trials) and the ground truth.

    `present` and `has_hit` mark queries, shape (Q,), and `is_hit` marks alternatives, shape (A,). `extra_names` lists
    some of the run's queries that the ground truth lacks.
    """

    present: Bools
    has_hit: Bools
    is_hit: Bools
    no_match: bool
    extra_names: tuple[str, ...]

    @classmethod
    def of(cls, trials: Sequence[Labelled], truth: GroundTruth) -> Seen:
        """Combine the labelled trials of a run. The order of trials makes no difference."""
        hits = [each.uncondensed or each.hits for each in trials]
        has_hit, is_hit = np.zeros(len(truth), dtype=np.bool_), np.zeros(len(truth.ids), dtype=np.bool_)
        for each in hits:
            has_hit[each.query], is_hit[each.alternative] = True, True
        names = dict.fromkeys(chain.from_iterable(each.extra_names for each in trials))
        return cls(
            present=np.any([each.present for each in trials], axis=0),
            has_hit=has_hit,
            is_hit=is_hit,
            no_match=any(each.no_match for each in trials) and not has_hit.any(),
            extra_names=tuple(names if len(trials) == 1 else sorted(names)),
        )


def warn_of_mismatch(truth: GroundTruth, run: Run, request: Request, seen: Seen) -> None:
    """Warn if results and ground truth may not belong together, and raise `DataError` if they certainly do not."""
    if request.labeller.name != "id":
        warn_of_unreachable(truth, request.labeller)
    if fault := fault_of_queries(truth, run, seen) or fault_of_lists(truth, run, request):
        raise DataError(fault)
    if request.labeller.name == "id" or not warn_of_unknown(run, request.labeller):
        warn_of_no_match(truth, run, request, seen)


def fault_of_lists(truth: GroundTruth, run: Run, request: Request) -> str:
    """Describe text that certainly contains several ids where a list belongs, and warn about text that may do so."""
    if not (truth.unsplit or any(each.unsplit for each in run.each)):
        return ""
    from groupgt.evaluation.joined_ids import fault_of_joined, ids_of, unsplit_in, warn_of_joined

    of_results = unsplit_in(run)
    passages = request.passages
    of_truth, of_run = {*_documents(run.by_original_ids), *passages}, {*ids_of(truth), *passages}
    fault = fault_of_joined(truth.unsplit, of_truth) or fault_of_joined(of_results, of_run)
    if not fault:
        truth.judgments.once("unsplit", lambda: warn_of_joined(truth.unsplit, of_truth))
        warn_of_joined(of_results, of_run)
    return fault


def warn_of_unknown(run: Run, labeller: Labeller) -> bool:
    """Warn about results that a labeller cannot match, or raise `DataError` if some certainly should match."""
    if labeller.name == "id":
        return False
    documents = _documents(run.by_original_ids)
    unknown = labeller.unknown_ids(documents)
    all_unknown = len(unknown) == len(documents)
    if not unknown or not (all_unknown or labeller.unknown_is_fault):
        return False
    some = ", ".join(map(display, unknown[:3])) + (" …" if len(unknown) > 3 else "")
    who = f"{_title(run)}the labeller {labeller}"
    if all_unknown and labeller.unknown_is_fault:
        raise DataError(f"{who} has no entry for any result: {some}. Does its table belong to this run?")
    some_unknown = f"does not recognize {len(unknown):,} of {len(documents):,} results"
    what = "matches no results, so ids stay unchanged" if all_unknown else some_unknown
    warn(f"{who} {what}: {some}", "unknown ids")
    return True


def warn_of_unreachable(truth: GroundTruth, labeller: Labeller) -> None:
    """Warn about alternatives that no result can ever hit, once per ground truth and labeller."""

    def warn_once() -> int:
        unreachable, way = labeller.unreachable(truth)
        relevant = [place for place in unreachable.tolist() if truth.is_relevant[place]]
        if relevant:
            place = relevant[0]
            example = f"{display(truth.ids[place])} of query {truth.qids[int(truth.query_of[place])]!r}"
            what = f"{len(relevant):,} of {int(truth.is_relevant.sum()):,} alternatives cannot be hit by any result"
            warn(f"labeller {labeller}: {what}, such as {example}; {way}", "absent ids")
        return len(relevant)

    truth.judgments.once(("unreachable", labeller), warn_once)


# Labellers that compare ids.
OF_IDS = ("id", "parents")


def warn_of_no_match(truth: GroundTruth, run: Run, request: Request, seen: Seen) -> list[tuple[str, str]]:
    """Warn about ids that nearly match, and about results that match nothing at all. Return the pairs of near ids."""
    labeller = request.labeller
    if not seen.present.any():
        return []
    missing = np.flatnonzero(truth.judgments.defined & ~seen.present).tolist()
    queries = _near_queries(truth, run, seen, missing) if seen.extra_names and missing else []
    documents, note = list[tuple[str, str]](), ""
    if labeller.name == "id" or (labeller.name in OF_IDS and seen.no_match):
        documents, note = _near_documents(truth, run, request, seen)
    near = _shown("document", documents) + note
    if seen.no_match and truth.ids:
        near = _no_match(truth, run, labeller, seen, near)
    elif labeller.name in OF_IDS and not near:
        near = _few_matches(truth, run, seen)
    for finding in filter(None, (_shown("query", queries), near)):
        warn(f"{_title(run)}{finding}", "no hits")
    return [*queries, *documents]


def _no_match(truth: GroundTruth, run: Run, labeller: Labeller, seen: Seen, near: str) -> str:
    """Describe results that match nothing, or return an empty string if, with so few queries, this may be chance."""
    if labeller.name in OF_IDS:
        finding, question = "no result is in the ground truth", "is the run from the same corpus?"
        if near:
            return f"{finding}, but {near}"
        for whose, names in (("ground truth", truth.ids[:LOOKED_AT]), ("results", _documents(run))):
            if are_texts(names):
                what = f"the {whose} may contain text instead of ids, such as {display(names[0])}"
                return f"{finding}: {what}{TEXTS_WAY}"
    else:
        finding, question = f"the labeller {labeller} finds no hits", "is the run from the same documents?"
    enough = np.count_nonzero(truth.judgments.defined & seen.present) >= SEVERAL
    return f"{finding}: {question}" if enough else ""


def _few_matches(truth: GroundTruth, run: Run, seen: Seen) -> str:
    """Describe results that match so rarely that they may come from another chunking, or return an empty string.

    Either hardly any query has a hit, or most relevant ids are never returned and the results have ids of another form.
    """
    answered = int(np.count_nonzero(truth.judgments.defined & seen.present))
    with_hits = int(np.count_nonzero(seen.has_hit))
    if run.is_remote or answered < SEVERAL or 2 * with_hits > answered:
        return ""
    question = "is the run from the same corpus and chunking?"
    results, judged = dict.fromkeys(_documents(run)), set(truth.ids)
    relevant = {truth.ids[place] for place in np.flatnonzero(truth.is_relevant & seen.present[truth.query_of])}
    missed, others = (sorted(names) for names in (relevant - results.keys(), results.keys() - judged))
    if missed and others and 2 * len(missed) > len(relevant):
        forms, own = Counter(map(_form, others)), set(map(_form, missed))
        have_forms = SEVERAL * len(own) <= len(missed) or SEVERAL * len(forms) <= len(others)
        if have_forms and SEVERAL * sum(map(forms.__getitem__, own)) <= len(others):
            what = f"{len(missed):,} of {len(relevant):,} relevant ids are not in the results, whose ids look different"
            pair = f"{display(missed[0])} in the ground truth, {display(others[0])} in the results"
            return f"{what}: {pair}; {question}"
    if SEVERAL * with_hits < answered:
        verb = "has" if with_hits == 1 else "have"
        return f"only {with_hits:,} of {answered:,} queries {verb} a result that is in the ground truth: {question}"
    return ""


def _form(name: str) -> str:
    """Return an id with each number replaced by 0. Ids from the same chunking have few different forms."""
    return _DIGITS.sub("0", name)


def fault_of_queries(truth: GroundTruth, run: Run, seen: Seen) -> str:
    """Describe a run that shares no query with the ground truth, although it should, or return an empty string."""
    if seen.present.any() or truth.unanswerable.all():
        return ""
    qids = _sample(run, LOOKED_AT)
    if not qids or not truth.index.keys().isdisjoint(qids):
        return ""
    near = _shown("query", _near_queries(truth, run, seen, range(len(truth))))
    first = next(chain(seen.extra_names, qids))
    what = "no query of the run is in the ground truth"
    if first in truth.left_out:
        what = "no query of the run is among the selected queries"
    example = f"the run has {display(first)}, the ground truth has {display(truth.qids[0])}"
    return f"{_title(run)}{what}{f', but {near}' if near else f': {example}'}"


def _near_queries(truth: GroundTruth, run: Run, seen: Seen, missing: Iterable[int]) -> list[tuple[str, str]]:
    """Pair queries in the run and in the ground truth whose ids nearly match."""
    qids = dict.fromkeys((*seen.extra_names, *_sample(run, LOOKED_AT)))
    others = {_key(qid): qid for qid in qids if qid not in truth.index}
    return [(qid, others[key]) for qid in map(truth.qids.__getitem__, missing) if (key := _key(qid)) in others]


def _near_documents(truth: GroundTruth, run: Run, request: Request, seen: Seen) -> tuple[list[tuple[str, str]], str]:
    """Pair relevant, harmful and excluded ids that match no result with results of their query that nearly match."""
    named = (truth.is_relevant | truth.is_harmful) & seen.present[truth.query_of]
    alternatives = np.flatnonzero(named & ~seen.is_hit)
    excluded = [(query, name) for query, ids in enumerate(truth.excluded or ()) for name in ids if seen.present[query]]
    queries = np.append(truth.query_of[alternatives], np.array([query for query, _ in excluded], dtype=np.int64))
    if run.is_remote or not len(queries):
        return [], ""
    order = np.argsort(queries, kind="stable")
    queries = queries[order]
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    distinct = queries[starts]
    bounds = [*starts.tolist(), len(queries)][: MOST_QUERIES + 1]
    first = order[: bounds[-1]].tolist()
    size = len(alternatives)
    names = [truth.ids[alternatives[at]] if at < size else excluded[at - size][1] for at in first]
    unmatched = {truth.qids[query]: names[low:high] for query, (low, high) in zip(distinct.tolist(), pairwise(bounds))}
    sample = _sample(run, FEW_RESULTS, unmatched)
    looked_at = [qid for qid, results in sample.items() if results and qid in unmatched]
    pairs = [pair for qid in looked_at for pair in _near_results(unmatched[qid], sample[qid])]
    if not pairs:
        return [], ""
    # A result that is judged itself, an id that is also a result, and two passages of a corpus differ indeed.
    judged, results = set(truth.ids), set(_documents(run))
    passages = request.passages
    pairs = [pair for pair in pairs if pair[0] not in results and pair[1] not in judged]
    pairs = [pair for pair in pairs if not (pair[0] in passages and pair[1] in passages)]
    note = f"; only {len(looked_at):,} of {len(distinct):,} queries with an unmatched id were compared"
    return pairs, note if len(looked_at) < len(distinct) else ""


def _near_results(names: Sequence[str], results: Sequence[str]) -> list[tuple[str, str]]:
    """Pair ids with the results that nearly match them."""
    keys = dict(zip(_keys(names), names))
    # A result that nearly matches an id contains its key, which is quickly refuted for all results at once.
    text = "\n".join(results)
    text = _plain(urls.unquote(text) if "%" in text else text)
    if not any(map(text.__contains__, keys)):
        return []
    found: dict[str, str] = {}
    for result in results:
        key = _key(result)
        name = keys.get(key) or keys.get(_key(_SUFFIX.sub("", key)))
        if name is not None:
            found.setdefault(name, result)
    return list(found.items())


def absent_ids(truth: GroundTruth, request: Request) -> list[str]:
    """Return the ground truth ids that the corpus lacks; none if results are not matched by id, or without a corpus."""
    passages = request.passages
    if not passages or request.labeller.name != "id":
        return []
    judged = (name for name, form in zip(truth.ids, truth.forms or repeat(None)) if form is None)
    every = dict.fromkeys(chain(judged, *(truth.excluded or ())))
    return [name for name in every if name not in passages]


def similar_id(name: str, passages: Mapping[str, str]) -> str | None:
    """Return the corpus id that matches this one except for white space, case or Unicode form, if any."""
    return {fold(other): other for other in passages}.get(fold(name))


def warn_of_corpus(truth: GroundTruth, request: Request, title: str = "") -> None:
    """Warn once about judged passages that are blank or not in the corpus; absent=error raises `DataError`."""
    absent, passages = absent_ids(truth, request), request.passages
    if request.policy.absent == "error" and request.labeller.name == "id" and not passages:
        what = f"{title}the absent=error policy compares ids with a corpus, but no corpus was given"
        raise DataError(f"{what}; add a corpus (--corpus, or `corpus` in Python and experiments), or use absent=warn")
    some = first_of(list(map(display, absent)), 3)
    if absent and request.policy.absent != "ignore":
        count = counted(len(absent), "ground truth id is", "ground truth ids are")
        which = "it" if len(absent) == 1 else "they"
        what = f"{title}{count} not in the corpus, so {which} can never be retrieved: {some}"
        if (similar := similar_id(absent[0], passages)) is not None:
            what += f"; the corpus has {display(similar)}"
        if request.policy.absent == "error":
            raise DataError(f"{what} (absent=error); correct the ids, or allow them with absent=warn")
        truth.judgments.once(("absent", some, len(absent)), lambda: warn(what, "absent ids"))
    if blank := dict.fromkeys(name for name in truth.ids if name in passages and not passages[name].strip()):
        some = first_of([display(name) for name in blank], 3)
        count = counted(len(blank), "judged passage has", "judged passages have")
        what = f"{title}{count} no contents: {some}"
        truth.judgments.once(("blank", some, len(blank)), lambda: warn(what, "blank passages"))


def _sample(run: Run, limit: int, queries: Collection[str] = ()) -> Mapping[str, Sequence[str]]:
    """Return the ids of some results by query, combined from all trials. The order of trials does not matter."""
    if not run.trials:
        return carrier_of(run).sample(limit, queries)
    samples = [carrier_of(each).sample(limit, queries) for each in run.trials]
    qids = sorted({*chain.from_iterable(samples)})
    return {qid: sorted({*chain.from_iterable(each.get(qid, ()) for each in samples)}) for qid in qids}


def _documents(run: Run) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(_sample(run, LOOKED_AT).values())))


def fold(name: str) -> str:
    """Normalize an id by ignoring surrounding blanks, case, Unicode form, leading zeros and `.0`."""
    text = _plain(name).strip()
    number = _NUMBER.fullmatch(text) if text[:1].isdigit() else None
    return number[1] if number else text


def _plain(text: str) -> str:
    """Normalize the case, Unicode form and backslashes in text."""
    text = text.replace("\\", "/") if "\\" in text else text
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


_DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"0*([0-9]+)(\.0*)?")
# Endings of files, which some tools omit from ids, and the number of a chunk behind the id of its document.
_ENDING = re.compile(r"\.(csv|docx?|epub|html?|jsonl?|md|mdx|odt|pdf|pptx?|rst|rtf|tex|tsv|txt|xlsx?|xml|ya?ml)$")
_SUFFIX = re.compile(r"[#:_/|@. -]{1,2}((chunk|passage|part|page|section)[:_. -]?)?[0-9]+$")


@lru_cache(maxsize=1 << 16)
def _key(name: str) -> str:
    """Normalize an id as `fold` does, and ignore surrounding slashes, escapes such as `%20` and file extensions."""
    text = fold(urls.unquote(name) if "%" in name else name)
    if text[:1] in "./" or text[-1:] == "/":
        text = text.removeprefix("./").strip("/")
    return fold(_ENDING.sub("", text)) if "." in text else text


# Ids of letters, digits, `_` and `-` that are no numbers, one in a line: their keys differ only in case.
_USUAL_IDS = re.compile(r"(?:[0-9]*[A-Za-z_-][A-Za-z0-9_-]*\n)+")


def _keys(names: Sequence[str]) -> Iterable[str]:
    """Return the key of each id. Ids are processed all at once if none has unusual characters."""
    text = "\n".join([*names, ""])
    return text.lower().split("\n")[:-1] if _USUAL_IDS.fullmatch(text) else map(_key, names)


def _title(run: Run) -> str:
    return f"{run.name}: " if run.name else ""


def _shown(what: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Describe pairs of ids that nearly match, and show the first pair; return an empty string if there is none."""
    if not pairs:
        return ""
    # Two Unicode forms of one letter look the same, so escapes are shown instead.
    show = repr if all(unicodedata.is_normalized("NFC", name) for name in pairs[0]) else ascii
    ours, theirs = map(show, pairs[0])
    count = counted(len(pairs), "pair")
    return f"{what} ids nearly match: {ours} in the ground truth, {theirs} in the results ({count})"

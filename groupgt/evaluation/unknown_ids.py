"""Ids of results that are unknown, or that nearly match where none matches exactly."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from itertools import islice

from groupgt.engines.lists import ranking_of
from groupgt.errors import DataError, Faults, GroupgtWarning
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Remote, Run
from groupgt.model.validity import shown

LOOKED_AT = 200_000
# Of results on a cluster.
GLANCED_AT = 1000
# Fewer questions may all have failed; so many hardly.
SEVERAL = 10


def warn_of_near_ids(truth: GroundTruth, run: Run, labeller: Labeller, questions: int) -> None:
    """Warns when no result hits anything: with a pair that differs only in blanks, case, form or decimals, if any.

    Without such a pair it warns only where `questions` with results are so many that not all can just have failed.
    """
    qids, documents = _names(run)
    title = f"{run.name}: " if run.name else ""
    shared = set(qids) & set(truth.qids)
    if truth.qids and qids and not shared:
        finding = f"{title}no query of the results has ground truth"
        if not _warn("query ids", truth.qids, qids, finding):
            warnings.warn(f"{finding}: are these results of the same questions?", GroupgtWarning, stacklevel=4)
    elif labeller.name not in ("id", "parents") and truth.ids and documents:
        if questions >= SEVERAL:
            finding = f"{title}no result hits anything, by the labeller {labeller}"
            warnings.warn(f"{finding}: are these results of the same documents?", GroupgtWarning, stacklevel=4)
    elif truth.ids and documents:
        finding = f"{title}no result is in the ground truth"
        if not _warn("document ids", truth.ids, documents, finding) and questions >= SEVERAL:
            warnings.warn(f"{finding}: are these results of the same corpus?", GroupgtWarning, stacklevel=4)


def check_known(run: Run, labeller: Labeller) -> bool:
    """Warns of results a labeller can say nothing about; raises `DataError` where that is all of them, and a fault.

    Returns whether something was said.
    """
    if labeller.name == "id":
        return False
    documents = _names(run.by_own_ids)[1]
    strangers = labeller.strange(documents)
    every = len(strangers) == len(documents)
    if not strangers or not (every or labeller.certain):
        return False
    title = f"{run.name}: " if run.name else ""
    some = ", ".join(map(shown, strangers[:3])) + (" …" if len(strangers) > 3 else "")
    if every and labeller.certain:
        raise DataError(f"{title}none of the results is known to the labeller {labeller}: {some}; is its table theirs?")
    if every:
        what = f"the labeller {labeller} matches none of the results, and each stands for itself: {some}"
    else:
        what = f"{len(strangers):,} of {len(documents):,} results are not known to the labeller {labeller}: {some}"
    warnings.warn(f"{title}{what}", GroupgtWarning, stacklevel=4)
    return True


def _names(run: Run) -> tuple[list[str], list[str]]:
    run = run.resolved
    if not run.in_memory:
        if isinstance(run.contents, Remote):
            from groupgt.engines.spark.plan import fetch

            rows = fetch(run.contents, None, GLANCED_AT)
        else:
            rows = run.as_columns.frame.select("qid", "doc").head(LOOKED_AT).collect()
        return rows["qid"].unique(maintain_order=True).to_list(), rows["doc"].unique(maintain_order=True).to_list()
    faults = Faults()
    policy = Policy()
    documents: dict[str, None] = {}
    for ranking in run.rankings.values():
        plain = type(ranking) is list and set(map(type, ranking)) == {str}
        ids = ranking if plain else ranking_of(ranking, policy, faults, "")[0]
        documents.update(dict.fromkeys(ids))
        if len(documents) > LOOKED_AT:
            break
    return [str(qid) for qid in run.rankings], list(documents)


def _warn(what: str, ours: Iterable[str], theirs: Iterable[str], finding: str) -> bool:
    folded = {fold(name): name for name in islice(ours, LOOKED_AT)}
    for name in islice(theirs, LOOKED_AT):
        near = folded.get(fold(name))
        if near is not None and near != name:
            # Two forms of one letter look alike: then their escapes are shown.
            show = ascii if unicodedata.normalize("NFC", near) == unicodedata.normalize("NFC", name) else repr
            text = f"{finding}, but {what} nearly match: {show(near)} in the ground truth, {show(name)} in the results"
            warnings.warn(text, GroupgtWarning, stacklevel=5)
            return True
    return False


def fold(name: str) -> str:
    """What is left of an id when blanks, case, Unicode form, leading zeros and `.0` are not looked at."""
    text = unicodedata.normalize("NFC", name).strip().casefold()
    number = re.fullmatch(r"0*([0-9]+)(\.0*)?", text)
    return number[1] if number else text

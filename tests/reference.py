"""A slow reference for every metric: each definition written out for one query, with plain loops.

The tests hold the package to these functions, so this module shares no code with it and never tries to be fast.
Notation: ``m`` groups, a ranking of ``n`` results, ``top`` its first ``min(k, n)``, ``R`` relevant documents; ranks
count from 1. Sums over r <= k are looped, so a huge k is for the package and not for this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

MOST_STATES = 4096
MOST_WORK = 5_000_000


@dataclass(frozen=True)
class Group:
    """One group: its relevant alternatives (id -> grade > 0) and its weight."""

    members: dict[str, float]
    weight: float


@dataclass(frozen=True)
class Query:
    """One query, ready to be scored.

    ``grades`` holds the highest grade of every document named anywhere in the ground truth, also those <= 0.
    In ``results`` and ``top`` a penalized repeat stands as None: a place that hits nothing.
    """

    groups: list[Group]
    grades: dict[str, float]
    results: list[str | None]
    top: list[str | None]
    k: int | None
    params: dict[str, Any]
    level: float | None = None
    # Whether each result of the top is harmful, repeats too; None where the query names no harmful document.
    harmful: list[bool] | None = None
    # The highest grade of any query.
    highest: float = 1

    @property
    def depth(self) -> int:
        """The k of a formula that mentions k: the cutoff as given, even beyond n; n where there is none."""
        return len(self.results) if self.k is None else self.k

    @property
    def relevant(self) -> dict[str, float]:
        """The R relevant documents over all groups, each with its highest grade."""
        return {document: grade for document, grade in self.grades.items() if self.is_relevant(document)}

    @property
    def graded(self) -> dict[str, float]:
        """The documents of a grade above 0, whatever the level."""
        return {document: grade for document, grade in self.grades.items() if grade > 0}

    def is_relevant(self, document: str) -> bool:
        """Whether a document named in the ground truth is relevant."""
        grade = self.grades[document]
        return grade > 0 if self.level is None else grade >= self.level

    def groups_of(self, document: str | None) -> list[int]:
        """The numbers of the groups this result hits."""
        return [j for j, group in enumerate(self.groups) if document in group.members]


Metric = Callable[[Query], float | None]


# ---- reading the input ------------------------------------------------------------------------------------------


def read_group(group: Any) -> tuple[list[tuple[str, float]], float]:
    """The (id, grade) pairs and the weight of one group, in either of its shapes."""
    weight = 1.0
    alternatives = group
    if isinstance(group, Mapping):
        weight = float(group.get("weight", 1.0))
        alternatives = group["alternatives"] if "alternatives" in group else group["ids"]
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"a weight must be finite and above 0, not {weight}")
    pairs = []
    for alternative in alternatives:
        if isinstance(alternative, Mapping):
            pairs.append((alternative["id"], float(alternative.get("grade", 1.0))))
        else:
            pairs.append((alternative, 1.0))
    return pairs, weight


def read_truth(
    groups: Sequence[Any], level: float | None = None, *, unmeetable: bool = False
) -> tuple[list[Group], dict[str, float]]:
    """The groups that have a relevant alternative, and the highest grade of every document named in any group.

    With ``unmeetable`` the others are kept beside them, without members, where at least one can be met.
    """
    kept: list[Group] = []
    grades: dict[str, float] = {}
    for group in groups:
        pairs, weight = read_group(group)
        members: dict[str, float] = {}
        for document, grade in pairs:
            grades[document] = max(grade, grades.get(document, grade))
            if grade > 0 if level is None else grade >= level:
                members[document] = max(grade, members.get(document, grade))
        if members or unmeetable:
            kept.append(Group(members, weight))
    if not any(group.members for group in kept):
        kept = []
    return kept, grades


def apply_duplicates(ranking: Sequence[str], policy: str) -> list[str | None]:
    """The ranking after the duplicate policy."""
    results: list[str | None] = []
    seen: set[str] = set()
    for document in ranking:
        if document not in seen or policy == "keep":
            results.append(document)
        elif policy == "penalize":
            results.append(None)
        seen.add(document)
    return results


def before_later_calls(found: Sequence[tuple[str, int]], call: int, policy: str) -> list[str]:
    """The results, each with the search call that found it, before the first of a later call; repeats dropped first."""
    prefix: list[str] = []
    seen: set[str] = set()
    for document, number in found:
        if policy == "drop" and document in seen:
            continue
        if number > call:
            break
        prefix.append(document)
        seen.add(document)
    return prefix


def divide(numerator: float, denominator: float) -> float:
    """A quotient in which 0 / 0 is 0."""
    if numerator == 0 and denominator == 0:
        return 0.0
    return numerator / denominator


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b)."""
    return divide(2 * a * b, a + b)


# ---- shared by the conventions ----------------------------------------------------------------------------------


def count_groups_met(q: Query) -> int:
    """How many groups have a hit in top."""
    met = 0
    for group in q.groups:
        if any(document in group.members for document in q.top):
            met += 1
    return met


def relevant_found(q: Query) -> set[str]:
    """The distinct relevant documents in top."""
    return {document for document in q.top if document is not None and document in q.relevant}


def results_with_news(q: Query) -> list[tuple[int, str, list[int]]]:
    """(rank, document, groups met here for the first time) for every result of top that meets a new group."""
    met: set[int] = set()
    news = []
    for rank, document in enumerate(q.top, start=1):
        new = [j for j in q.groups_of(document) if j not in met]
        if document is not None and new:
            news.append((rank, document, new))
            met.update(new)
    return news


def hit_rate(q: Query) -> float:
    """1 if any group is met."""
    return 1.0 if count_groups_met(q) > 0 else 0.0


def complete_groups(q: Query) -> float:
    """1 if every group is met."""
    return 1.0 if count_groups_met(q) == len(q.groups) else 0.0


# ---- convention autorag -----------------------------------------------------------------------------------------


def precision_autorag(q: Query) -> float:
    """Distinct relevant results in top / len(top)."""
    return divide(len(relevant_found(q)), len(q.top))


def recall_autorag(q: Query) -> float:
    """Groups met / m."""
    return count_groups_met(q) / len(q.groups)


def f1_autorag(q: Query) -> float:
    """Harmonic mean of the two above."""
    return harmonic_mean(precision_autorag(q), recall_autorag(q))


def mrr_autorag(q: Query) -> float:
    """Mean over groups of 1 / rank of the first hit, 0 for a group that is not met."""
    total = 0.0
    for group in q.groups:
        for rank, document in enumerate(q.top, start=1):
            if document in group.members:
                total += 1 / rank
                break
    return total / len(q.groups)


def map_autorag(q: Query) -> float:
    """Mean over groups of the mean, over the group's hits that were found, of the group's precision there."""
    total = 0.0
    for group in q.groups:
        hits = 0
        precisions = 0.0
        for rank, document in enumerate(q.top, start=1):
            if document in group.members:
                hits += 1
                precisions += hits / rank
        total += divide(precisions, hits)
    return total / len(q.groups)


def ndcg_autorag(q: Query) -> float:
    """Binary DCG over min(sum of group sizes, len(top)) ones; an id in two groups counts twice in the ideal."""
    dcg = 0.0
    for rank, document in enumerate(q.top, start=1):
        if q.groups_of(document):
            dcg += 1 / math.log2(rank + 1)
    alternatives = sum(len(group.members) for group in q.groups)
    ideal = 0.0
    for rank in range(1, min(alternatives, len(q.top)) + 1):
        ideal += 1 / math.log2(rank + 1)
    return divide(dcg, ideal)


# ---- convention trec --------------------------------------------------------------------------------------------


def precision_trec(q: Query) -> float:
    """Relevant in top / k."""
    return divide(len(relevant_found(q)), q.depth)


def recall_trec(q: Query) -> float:
    """Distinct relevant found / R."""
    return len(relevant_found(q)) / len(q.relevant)


def f1_trec(q: Query) -> float:
    """Harmonic mean of the two above."""
    return harmonic_mean(precision_trec(q), recall_trec(q))


def complete_trec(q: Query) -> float:
    """1 if all R relevant documents are found."""
    return 1.0 if len(relevant_found(q)) == len(q.relevant) else 0.0


def mrr_trec(q: Query) -> float:
    """1 / rank of the first relevant result."""
    for rank, document in enumerate(q.top, start=1):
        if document in q.relevant:
            return 1 / rank
    return 0.0


def map_trec(q: Query) -> float:
    """Sum of precision@r over the relevant r in top / R."""
    found = 0
    total = 0.0
    for rank, document in enumerate(q.top, start=1):
        if document in q.relevant:
            found += 1
            total += found / rank
    return total / len(q.relevant)


def gain_of(grade: float, form: str) -> float:
    """The gain of a grade: the grade itself, or 2^grade - 1."""
    return grade if form == "linear" else 2.0**grade - 1


def dcg(q: Query) -> float:
    """Gains of the relevant results in top, each divided by log2(rank + 1)."""
    total = 0.0
    for rank, document in enumerate(q.top, start=1):
        if document is not None and document in q.graded:
            total += gain_of(q.graded[document], q.params["gain"]) / math.log2(rank + 1)
    return total


def ndcg_trec(q: Query) -> float:
    """DCG / the DCG of the grades above 0 sorted downwards, cut at k where there is a k."""
    ideal = 0.0
    for rank, grade in enumerate(sorted(q.graded.values(), reverse=True)[: q.k], start=1):
        ideal += gain_of(grade, q.params["gain"]) / math.log2(rank + 1)
    return divide(dcg(q), ideal)


# ---- convention coverage ----------------------------------------------------------------------------------------


def precision_coverage(q: Query) -> float:
    """Results that meet a group not met before / len(top)."""
    return divide(len(results_with_news(q)), len(q.top))


def recall_coverage(q: Query) -> float:
    """Weight of the groups met / total weight."""
    met = 0.0
    for group in q.groups:
        if any(document in group.members for document in q.top):
            met += group.weight
    return met / sum(group.weight for group in q.groups)


def f1_coverage(q: Query) -> float:
    """Harmonic mean of the two above."""
    return harmonic_mean(precision_coverage(q), recall_coverage(q))


def map_coverage(q: Query) -> float:
    """Weighted mean over groups of N(r_g) / r_g: N counts the results up to r that met some new group."""
    news = results_with_news(q)
    total = 0.0
    for j, group in enumerate(q.groups):
        for count, (rank, _, new) in enumerate(news, start=1):
            if j in new:
                total += group.weight * (count / rank)
    return total / sum(group.weight for group in q.groups)


@dataclass(frozen=True)
class Coverage:
    """A sum over ranks: 1 / discount(rank) x sum over groups of weight x (gain above the best gain so far there)."""

    gains: list[dict[str, float]]
    weights: list[float]
    discount: Callable[[int], float]

    def step(self, best: tuple[float, ...], document: str | None) -> tuple[tuple[float, ...], float]:
        """The best gains after this result, and what the result adds."""
        after = list(best)
        added = 0.0
        for j, gains in enumerate(self.gains):
            if document is not None and gains.get(document, 0.0) > best[j]:
                added += self.weights[j] * (gains[document] - best[j])
                after[j] = gains[document]
        return tuple(after), added

    def start(self) -> tuple[float, ...]:
        """The best gains before the first result."""
        return (0.0,) * len(self.gains)

    def total(self, documents: Sequence[str | None]) -> float:
        """The sum for one ranking."""
        best = self.start()
        total = 0.0
        for rank, document in enumerate(documents, start=1):
            best, added = self.step(best, document)
            total += added / self.discount(rank)
        return total

    def documents(self) -> list[str]:
        """Every relevant document, in the order of ids."""
        return sorted({document for gains in self.gains for document in gains})

    def states(self) -> int:
        """How many tuples of best gains there can be."""
        return math.prod(1 + len({gain for gain in gains.values() if gain > 0}) for gains in self.gains)

    def shares(self) -> bool:
        """Whether a document stands in more than one group."""
        return sum(len(gains) for gains in self.gains) > len(self.documents())

    def search(self, k: int | None) -> float:
        """The largest sum of any ranking of at most k results, by trying every document at every rank.

        Two beginnings of one length that reach the same best gains have the same future, so the larger one stands for
        both. A document that adds nothing only pushes the others down, so none is placed.
        """
        largest = 0.0
        rank = 0
        reached = {self.start(): 0.0}
        while reached and (k is None or rank < k):
            rank += 1
            longer: dict[tuple[float, ...], float] = {}
            for best, total in reached.items():
                for document in self.documents():
                    after, added = self.step(best, document)
                    if added > 0:
                        longer[after] = max(longer.get(after, 0.0), total + added / self.discount(rank))
            largest = max([largest, *longer.values()])
            reached = longer
        return largest

    def closed_form(self, k: int | None) -> float:
        """Groups that share no document: the best alternative of each, the largest weighted gain first."""
        best_of_group = []
        for gains, weight in zip(self.gains, self.weights, strict=True):
            if not gains:
                continue
            document = max(gains, key=lambda alternative: (gains[alternative], alternative))
            best_of_group.append((weight * gains[document], document))
        return self.total([document for _, document in sorted(best_of_group, reverse=True)][:k])

    def greedy(self, k: int | None) -> float:
        """Always the document that adds most, of equals the smallest id; equality is taken exactly, not in floats."""
        best = self.start()
        order: list[str] = []
        while k is None or len(order) < k:
            chosen = ""
            most = Fraction(0)
            for document in self.documents():
                added = Fraction(0)
                for j, gains in enumerate(self.gains):
                    if gains.get(document, 0.0) > best[j]:
                        added += Fraction(self.weights[j]) * (Fraction(gains[document]) - Fraction(best[j]))
                if added > most:
                    chosen, most = document, added
            if most == 0:
                break
            best, _ = self.step(best, chosen)
            order.append(chosen)
        return self.total(order)

    def share_of_ideal(self, top: Sequence[str | None], k: int | None) -> float:
        """The sum of top / the sum of an ideal ranking cut at k.

        Where the search would take too long and no document is shared, the closed form is as exact.
        """
        if self.states() > MOST_STATES and self.shares():
            return min(1.0, divide(self.total(top), self.greedy(k)))
        quick = self.states() <= MOST_STATES and self.states() * len(self.documents()) ** 2 <= MOST_WORK
        if self.shares() or quick:
            return divide(self.total(top), self.search(k))
        return divide(self.total(top), self.closed_form(k))


def mrr_coverage(q: Query) -> float:
    """Sum over groups of weight / first-hit rank, over the largest such sum of any ranking."""
    gains = [dict.fromkeys(group.members, 1.0) for group in q.groups]
    weights = [group.weight for group in q.groups]
    return Coverage(gains, weights, lambda rank: rank).share_of_ideal(q.top, q.k)


def ndcg_coverage(q: Query) -> float:
    """Sum over results of what they add to the best gain of each group, log2 discount, over the best ranking's."""
    gains = []
    for group in q.groups:
        gains.append({document: gain_of(grade, q.params["gain"]) for document, grade in group.members.items()})
    weights = [group.weight for group in q.groups]
    return Coverage(gains, weights, lambda rank: math.log2(rank + 1)).share_of_ideal(q.top, q.k)


# ---- outside the conventions: ranks and grades ------------------------------------------------------------------


def hits(q: Query) -> float:
    """Number of distinct relevant results in top."""
    return float(len(relevant_found(q)))


def r_precision(q: Query) -> float:
    """Relevant in the first R results of top / R."""
    size = len(q.relevant)
    found = 0
    for document in q.top[:size]:
        if document in q.relevant:
            found += 1
    return found / size


def err(q: Query) -> float:
    """Sum over r of (1/r) R_r prod_{s<r} (1 - R_s), with R = (2^grade - 1) / 2^max_grade."""
    max_grade = q.params["max_grade"]
    if max(q.relevant.values()) > max_grade:
        raise ValueError(f"the grade {max(q.relevant.values())} is above max_grade {max_grade}")
    total = 0.0
    still_looking = 1.0
    for rank, document in enumerate(q.top, start=1):
        if document is not None and document in q.relevant:
            satisfied = (2.0 ** q.relevant[document] - 1) / 2.0**max_grade
            total += still_looking * satisfied / rank
            still_looking *= 1 - satisfied
    return total


def rbp(q: Query) -> float:
    """(1 - p) times the sum over relevant r of p^(r-1); if graded, each counts its share of the highest grade."""
    p = q.params["p"]
    total = 0.0
    for rank, document in enumerate(q.top, start=1):
        if document in q.relevant:
            total += p ** (rank - 1) * (q.relevant[document] / q.highest if q.params["graded"] == "True" else 1)
    return float((1 - p) * total)


def novelty_ndcg(q: Query) -> float:
    """A result that meets a new group gains 2^g - 1 once, g its highest grade among the groups newly met.

    The ideal is the best grade of each group, sorted downwards, never cut.
    """
    total = 0.0
    for rank, document, new in results_with_news(q):
        grade = max(q.groups[j].members[document] for j in new)
        total += (2.0**grade - 1) / math.log2(rank + 1)
    ideal = 0.0
    best_grades = sorted((max(group.members.values()) for group in q.groups if group.members), reverse=True)
    for rank, grade in enumerate(best_grades, start=1):
        ideal += (2.0**grade - 1) / math.log2(rank + 1)
    return divide(total, ideal)


def mrecall(q: Query) -> float:
    """1 if k groups are met in top, or all of them where there are fewer or no k."""
    met = [group for group in q.groups if any(document in group.members for document in q.top)]
    wanted = len(q.groups)
    if q.k is not None and q.k < wanted:
        wanted = q.k
    return 1.0 if len(met) >= wanted else 0.0


def completion_rr(q: Query) -> float:
    """1 / the rank at which the last group is met, 0 if one never is."""
    for rank in range(1, len(q.top) + 1):
        if all(any(document in group.members for document in q.top[:rank]) for group in q.groups):
            return 1 / rank
    return 0.0


def token_overlap(q: Query) -> float | None:
    """The share of results that are relevant: every document's text is one word that no other document has."""
    relevant = [document for document in q.top if document is not None and document in q.relevant]
    return len(relevant) / len(q.top) if q.top else 0.0


def redundancy(q: Query) -> float | None:
    """Share of top that is relevant and meets nothing new; None for an empty ranking."""
    if not q.top:
        return None
    return (len(relevant_found(q)) - len(results_with_news(q))) / len(q.top)


def iprec(q: Query) -> float:
    """The largest precision at a rank by which enough relevant documents are found.

    For trec_eval 9 floor(recall R + 0.9) are enough, for trec_eval 10 recall R rounded, and halves up.
    """
    exact = q.params["recall"] * len(q.relevant)
    if q.params["version"] == "9":
        needed = math.floor(exact + 0.9)
    else:
        needed = int(Decimal(exact).quantize(Decimal(1), ROUND_HALF_UP))
    best = 0.0
    found = 0
    for rank, document in enumerate(q.top, start=1):
        found += document in q.relevant
        if found >= needed:
            best = max(best, found / rank)
    return best


def num_ret(q: Query) -> float:
    """Number of results."""
    return float(len(q.results))


def num_rel(q: Query) -> float:
    """R."""
    return float(len(q.relevant))


def rbp_residual(q: Query) -> float | None:
    """What unjudged results and those beyond top would add to rbp; None for an empty ranking."""
    if not q.top:
        return None
    p = q.params["p"]
    total = p ** len(q.top)
    for rank, document in enumerate(q.top, start=1):
        if document is None or q.grades.get(document, -1.0) < 0:
            total += (1 - p) * p ** (rank - 1)
    return float(total)


def unj(q: Query) -> float | None:
    """Share of k without a grade >= 0; None for an empty ranking."""
    unjudged = sum(document is None or q.grades.get(document, -1.0) < 0 for document in q.top)
    return unjudged / q.depth if q.top else None


def rbp_resid(q: Query) -> float | None:
    """rbp_residual as trec_eval has it: 0 where every result is judged."""
    return 0.0 if q.top and not unj(q) else rbp_residual(q)


def judged(q: Query) -> float:
    """Share of top with a grade >= 0, or with any grade."""
    count = 0
    for document in q.top:
        if document is not None and document in q.grades:
            count += q.grades[document] >= 0 or q.params["negative"] == "True"
    return divide(count, len(q.top))


def bpref(q: Query) -> float:
    """(1/R) sum over retrieved relevant of 1 - min(judged non-relevant above, R) / min(N, R); 1 if none is above."""
    size = len(q.relevant)
    rejected = {document for document, grade in q.grades.items() if grade >= 0 and not q.is_relevant(document)}
    above = 0
    total = 0.0
    for document in q.top:
        if document is None or document not in q.grades:
            continue
        if document in rejected:
            above += 1
        elif document in q.relevant:
            total += 1.0 if above == 0 else 1 - min(above, size) / min(len(rejected), size)
    return total / size


def infap(q: Query) -> float:
    """(1/R) sum over retrieved relevant at rank r of 1/r + (r-1)/r times the expected precision above it."""
    found, rejected, pooled = 0, 0, 0
    total = 0.0
    for rank, document in enumerate(q.top, 1):
        if document is None or document not in q.grades:
            continue
        if document in q.relevant:
            if rank == 1:
                total += 1
            else:
                in_pool = pooled / (rank - 1)
                total += 1 / rank + (rank - 1) / rank * in_pool * (found + 1e-5) / (found + rejected + 2e-5)
            found += 1
        elif q.grades[document] >= 0:
            rejected += 1
        pooled += 1
    return total / len(q.relevant)


def compat(q: Query) -> float:
    """Rank-biased overlap with the ideal ranking that is nearest to the results."""
    p = q.params["p"]
    ranks = {document: rank for rank, document in enumerate(q.top) if document is not None}
    ideal = sorted(q.relevant, key=lambda document: (-q.grades[document], ranks.get(document, len(q.top))))
    depth = max(len(q.top), len(ideal))

    def overlap(one: Sequence[str | None], other: Sequence[str | None]) -> float:
        total = 0.0
        for size in range(1, depth + 1):
            both = (set(one[:size]) & set(other[:size])) - {None}
            total += p ** (size - 1) * len(both) / size
        return total

    normalizer = overlap(ideal, ideal) if q.params["normalize"] == "True" else sum(p**step for step in range(depth))
    return divide(overlap(q.top, ideal), normalizer)


# ---- outside the conventions: diversity -------------------------------------------------------------------------


def novelty_gains(q: Query, documents: Sequence[str | None], *, weighted: bool = False) -> list[float]:
    """For each rank, the sum over the groups hit there of (1 - alpha)^(hits of the group before), times the weight."""
    before = [0] * len(q.groups)
    gains = []
    for document in documents:
        gain = 0.0
        for j in q.groups_of(document):
            gain += (q.groups[j].weight if weighted else 1) * (1 - q.params["alpha"]) ** before[j]
            before[j] += 1
        gains.append(gain)
    return gains


def greedy_ideal(q: Query, *, weighted: bool = False) -> list[str]:
    """All relevant documents: always the largest gain, of equals the greatest id; equality is taken exactly."""
    keep = 1 - Fraction(q.params["alpha"])
    weights = [Fraction(group.weight) if weighted else Fraction(1) for group in q.groups]
    left = set(q.relevant)
    before = [0] * len(q.groups)
    order = []
    while left:
        gains = {document: sum(weights[j] * keep ** before[j] for j in q.groups_of(document)) for document in left}
        chosen = max(left, key=lambda document: (gains[document], document))
        for j in q.groups_of(chosen):
            before[j] += 1
        left.remove(chosen)
        order.append(chosen)
    return order


def by_log2(gains: Sequence[float]) -> float:
    """Sum of gains, each divided by log2(rank + 1)."""
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        total += gain / math.log2(rank + 1)
    return total


def by_rank(gains: Sequence[float]) -> float:
    """Sum of gains, each divided by its rank."""
    total = 0.0
    for rank, gain in enumerate(gains, start=1):
        total += gain / rank
    return total


def every_group_gains(q: Query, groups: float) -> list[float]:
    """For each r <= k what a document of every group would gain: m (1 - alpha)^(r-1), as far as it is above 0."""
    gains: list[float] = []
    while len(gains) < q.depth:
        gain = groups * (1 - q.params["alpha"]) ** len(gains)
        if gain == 0:
            break
        gains.append(gain)
    return gains


def alpha_ndcg(q: Query) -> float:
    """Novelty gains, log2 discount, over those of the greedy ideal cut at k where there is a k."""
    ideal = novelty_gains(q, greedy_ideal(q, weighted=True)[: q.k], weighted=True)
    return divide(by_log2(novelty_gains(q, q.top, weighted=True)), by_log2(ideal))


def alpha_dcg(q: Query) -> float:
    """The same numerator over the sum for r <= k of W (1 - alpha)^(r-1) / log2(r + 1), where W is the total weight."""
    weight = sum(group.weight for group in q.groups)
    return divide(by_log2(novelty_gains(q, q.top, weighted=True)), by_log2(every_group_gains(q, weight)))


def err_ia(q: Query) -> float:
    """Novelty gains / rank, over the sum for r <= k of m (1 - alpha)^(r-1) / r."""
    return divide(by_rank(novelty_gains(q, q.top)), by_rank(every_group_gains(q, len(q.groups))))


def nerr_ia(q: Query) -> float:
    """The same numerator over that of the greedy ideal of alpha_ndcg, cut at k where there is a k."""
    return divide(by_rank(novelty_gains(q, q.top)), by_rank(novelty_gains(q, greedy_ideal(q)[: q.k])))


def nrbp_sum(q: Query, documents: Sequence[str | None]) -> float:
    """Novelty gains, each times beta^(r-1)."""
    total = 0.0
    for rank, gain in enumerate(novelty_gains(q, documents), start=1):
        total += gain * q.params["beta"] ** (rank - 1)
    return total


def nrbp(q: Query) -> float:
    """[1 - (1 - alpha) beta] / m times that sum."""
    scale = (1 - (1 - q.params["alpha"]) * q.params["beta"]) / len(q.groups)
    return float(scale * nrbp_sum(q, q.top))


def nnrbp(q: Query) -> float:
    """That sum over the same of the whole greedy ideal."""
    return divide(nrbp_sum(q, q.top), nrbp_sum(q, greedy_ideal(q)))


def map_ia(q: Query) -> float:
    """(1/m) sum over groups of (1/|G|) sum over its hits of C(r) / r, C the hits of the group up to r."""
    total = 0.0
    for group in q.groups:
        count = 0
        precisions = 0.0
        for rank, document in enumerate(q.top, start=1):
            if document in group.members:
                count += 1
                precisions += count / rank
        total += divide(precisions, len(group.members))
    return total / len(q.groups)


def p_ia(q: Query) -> float:
    """Hits over all groups / (k m)."""
    count = 0
    for document in q.top:
        count += len(q.groups_of(document))
    return divide(count, q.depth * len(q.groups))


# ---- the catalogue ----------------------------------------------------------------------------------------------


def harmful(q: Query) -> float | None:
    """Share of top that is harmful; none where the query names no harmful document, or nothing was returned."""
    return sum(q.harmful) / len(q.harmful) if q.harmful else None


def clean(q: Query) -> float | None:
    """1 if nothing in top is harmful."""
    return None if q.harmful is None else float(not any(q.harmful))


CONVENTIONS: dict[str, dict[str, Metric]] = {
    "autorag": {
        "precision": precision_autorag,
        "recall": recall_autorag,
        "f1": f1_autorag,
        "hit_rate": hit_rate,
        "complete": complete_groups,
        "mrr": mrr_autorag,
        "map": map_autorag,
        "ndcg": ndcg_autorag,
    },
    "trec": {
        "precision": precision_trec,
        "recall": recall_trec,
        "f1": f1_trec,
        "hit_rate": hit_rate,
        "complete": complete_trec,
        "mrr": mrr_trec,
        "map": map_trec,
        "ndcg": ndcg_trec,
    },
    "coverage": {
        "precision": precision_coverage,
        "recall": recall_coverage,
        "f1": f1_coverage,
        "hit_rate": hit_rate,
        "complete": complete_groups,
        "mrr": mrr_coverage,
        "map": map_coverage,
        "ndcg": ndcg_coverage,
    },
}

WITHOUT_CONVENTION: dict[str, Metric] = {
    "hits": hits,
    "r_precision": r_precision,
    "dcg": dcg,
    "err": err,
    "rbp": rbp,
    "alpha_ndcg": alpha_ndcg,
    "alpha_dcg": alpha_dcg,
    "err_ia": err_ia,
    "nerr_ia": nerr_ia,
    "nrbp": nrbp,
    "nnrbp": nnrbp,
    "map_ia": map_ia,
    "p_ia": p_ia,
    "novelty_ndcg": novelty_ndcg,
    "completion_rr": completion_rr,
    "mrecall": mrecall,
    "redundancy": redundancy,
    "token_precision": token_overlap,
    "token_recall": token_overlap,
    "token_f1": token_overlap,
    "judged": judged,
    "iprec": iprec,
    "num_ret": num_ret,
    "num_rel": num_rel,
    "rbp_residual": rbp_residual,
    "rbp_resid": rbp_resid,
    "unj": unj,
    "bpref": bpref,
    "infap": infap,
    "compat": compat,
    "abstains": lambda q: None,  # of queries without an answer alone
    "false_returns": lambda q: None,
    "harmful": harmful,
    "clean": clean,
}


def read_params(name: str, convention: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a metric with their defaults filled in; unknown ones and values out of range are errors."""
    params: dict[str, Any] = {}
    if name == "dcg" or (name == "ndcg" and convention != "autorag"):
        params["gain"] = "linear"
    if name == "err":
        params["max_grade"] = 4
    if name in ("rbp", "rbp_residual"):
        params["p"] = 0.8
    if name == "rbp":
        params["graded"] = "False"
    if name == "rbp_resid":
        params["p"] = 0.9
    if name == "compat":
        params.update(p=0.95, normalize="True")
    if name == "iprec":
        params.update(recall=0, version="9")
    if name == "judged":
        params["negative"] = "False"
    if name in ("alpha_ndcg", "alpha_dcg", "err_ia", "nerr_ia", "nrbp", "nnrbp"):
        params["alpha"] = 0.5
    if name in ("nrbp", "nnrbp"):
        params["beta"] = 0.5
    for key, value in given.items():
        if key not in params:
            raise ValueError(f"{name} has no parameter {key!r}")
        params[key] = value
    if params.get("gain", "linear") not in ("linear", "exp"):
        raise ValueError("gain must be linear or exp")
    if not 0 < params.get("max_grade", 4) < math.inf:
        raise ValueError("max_grade must be finite and above 0")
    if not 0 < params.get("p", 0.8) < 1:
        raise ValueError("p must lie between 0 and 1")
    if not 0 <= params.get("alpha", 0.5) <= 1:
        raise ValueError("alpha must lie in [0, 1]")
    if not 0 < params.get("beta", 0.5) < 1:
        raise ValueError("beta must lie between 0 and 1")
    return params


def find_metric(name: str, convention: str | None) -> Metric:
    """The function of a metric."""
    if name in WITHOUT_CONVENTION:
        if convention is not None:
            raise ValueError(f"{name} has no conventions")
        return WITHOUT_CONVENTION[name]
    metrics = CONVENTIONS.get(convention or "autorag", {})
    if name not in metrics:
        raise ValueError(f"unknown metric {name!r} or convention {convention!r}")
    return metrics[name]


def reference(
    groups: Sequence[Any],
    ranking: Sequence[str],
    name: str,
    convention: str | None = None,
    params: Mapping[str, Any] | None = None,
    k: int | None = None,
    duplicates: str = "penalize",
    *,
    level: float | None = None,
    unmeetable: bool = False,
    zero: bool = False,
    harmful: Collection[str] = (),
    highest: float | None = None,
) -> float | None:
    """The value of one metric for one query, or None where it is undefined.

    Relevant is a grade above 0, or from ``level`` on; ``unmeetable`` groups without a relevant alternative count; with
    ``zero`` a query whose documents are all irrelevant is not undefined. ``highest`` is the highest grade of all
    queries, where there are others.

    A group is a list of ids or ``{"alternatives": [id or {"id": …, "grade": …}], "weight": …}``, free of blank ids.
    ``convention`` belongs to the metrics of the first table alone and is ``autorag`` where left out.
    ``duplicates`` is ``penalize``, ``drop``, or ``keep`` (``autorag`` metrics of the first table alone).
    """
    metric = find_metric(name, convention)
    in_force = None if name in WITHOUT_CONVENTION else convention or "autorag"
    filled = read_params(name, in_force, params or {})
    if k is not None and k < 1:
        raise ValueError("k must be at least 1")
    if k is not None and name in ("bpref", "infap", "compat", "iprec", "num_ret", "num_rel"):
        raise ValueError(f"{name} has no cutoff")
    if duplicates not in ("penalize", "drop", "keep"):
        raise ValueError(f"unknown duplicate policy {duplicates!r}")
    if duplicates == "keep" and in_force != "autorag":
        raise ValueError("duplicates can be kept under autorag alone")
    kept, grades = read_truth(groups, level, unmeetable=unmeetable)
    if not kept and not (zero and grades):
        return None
    results = apply_duplicates(ranking, duplicates)
    names = list(dict.fromkeys(ranking)) if duplicates == "drop" else ranking
    flags = [document in harmful for document in names[:k]] if harmful else None
    most = max(grades.values(), default=1) if highest is None else highest
    query = Query(kept, grades, results, results[:k], k, filled, level, flags, most)
    # Without a group all that is wanted is 0 of 0; these look at what else was judged, and at the length of the list.
    further = {"judged", "redundancy", "dcg", "num_ret", "rbp_residual", "rbp_resid", "unj", "harmful", "clean"}
    looks_further = name in further or (name, in_force) == ("ndcg", "trec")
    return metric(query) if kept or looks_further else 0.0

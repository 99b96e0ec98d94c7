"""Diversity metrics from ndeval. Groups are subtopics. Each hit of a group earns (1 − α) times the previous gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Parameter, one_meaning, ratio
from groupgt.metrics.ideals import Discount, IdealGains, descending
from groupgt.metrics.ranks import average_over_groups, explain_average
from groupgt.metrics.terms import log_share, number, over, plus, rank_share, times
from groupgt.model.hits import Floats, Hits, Ints, Judgments
from groupgt.model.values import total

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Sheet

# Queries with more documents than this are processed one by one.
SMALL_DOCUMENTS = 512
# A gain below this fraction of the first cannot change a sum that begins with it: a double has 53 bits.
LEAST = 2.0**-60
# Bounds of at least this fraction of the highest are made exact together.
NEAR = 1 - 1e-9


ALPHA = Parameter("alpha", 0.5, "a number from 0 to 1", lambda value: 0 <= value <= 1)
BETA = Parameter("beta", 0.5, "a number above 0 and below 1", lambda value: 0 < value < 1)


def _novelty(hits: Hits, cut: Cut, alpha: float, discount: Discount, weight: Floats | None = None) -> Floats:
    """Return Σ_r discount(r) Σ_{g hit} (1−α)^(hits of g before r), with terms multiplied by any weight, shape (Q,)."""
    rows, nth = views.group_hits(hits)
    within = rows.rank <= cut.top[rows.query]
    query, rank = rows.query[within], rows.rank[within]
    gain = ideals.power(1 - alpha, nth[within] - 1)
    if weight is not None:
        gain = weight[rows.group[within]] * gain
    starts = views.changes(query, rank)
    # First the gain of each result, then the discounted sum, in the same way as for the ideal.
    gains = total(np.cumsum(starts) - 1, gain, int(starts.sum()))
    return total(query[starts], gains * discount(rank[starts]), hits.size)


def _ideal(
    hits: Hits, cut: Cut, alpha: float, discount: Discount, depth: Ints | None, *, weighted: bool = False
) -> Floats:
    judgments = hits.judgments
    ideal = greedy_ideal(judgments, alpha, weighted=weighted)
    key = ("greedy ideal", alpha, weighted, discount, None if depth is None else cut.key)
    return judgments.once(key, lambda: ideal.discounted(judgments, discount, depth))


def _share_of_ideal(hits: Hits, cut: Cut, alpha: float, discount: Discount, depth: Ints | None) -> Floats:
    return ratio(_novelty(hits, cut, alpha, discount), _ideal(hits, cut, alpha, discount, depth))


def alpha_ndcg(hits: Hits, cut: Cut, alpha: float = 0.5) -> Floats:
    judgments = hits.judgments
    reached = _novelty(hits, cut, alpha, ideals.log2, judgments.weight)
    share = ratio(reached, _ideal(hits, cut, alpha, ideals.log2, cut.ideal, weighted=True))
    # If weights are nearly equal, rounding may put a ranking slightly above the ideal.
    share[judgments.weighted & (share > 1) & (share <= 1 + 1e-14)] = 1.0
    return share


def alpha_dcg(hits: Hits, cut: Cut, alpha: float = 0.5) -> Floats:
    judgments = hits.judgments
    most = judgments.total_weight * ideals.geometric_sum(1 - alpha, ideals.log2, cut.k)
    share = ratio(_novelty(hits, cut, alpha, ideals.log2, judgments.weight), most)
    return np.where(judgments.weighted, np.minimum(share, 1.0), share)


def err_ia(hits: Hits, cut: Cut, alpha: float = 0.5) -> Floats:
    most = hits.judgments.groups * ideals.geometric_sum(1 - alpha, ideals.inverse, cut.k)
    return ratio(_novelty(hits, cut, alpha, ideals.inverse), most)


@dataclass(frozen=True)
class _Persistence:
    """The discount β^(rank − 1). Instances with equal β compare equal, so cached ideals are reused."""

    beta: float

    def __call__(self, rank: Ints) -> Floats:
        return ideals.power(self.beta, rank - 1)


def nrbp(hits: Hits, cut: Cut, alpha: float = 0.5, beta: float = 0.5) -> Floats:
    scale = 1 - (1 - alpha) * beta
    return ratio(scale * _novelty(hits, cut, alpha, _Persistence(beta)), hits.judgments.groups)


def p_ia(hits: Hits, cut: Cut) -> Floats:
    rows = views.group_hits(hits)[0].within(cut)
    return ratio(np.bincount(rows.query, minlength=hits.size) / np.maximum(hits.judgments.groups, 1), cut.k)


def greedy_ideal(judgments: Judgments, alpha: float, *, weighted: bool = False) -> IdealGains:
    """Compute ndeval's ideal, which always takes the document with the largest Σ_g (1−α)^(hits of g so far).

    Ties go to the greatest id. If `weighted`, each group's term is multiplied by its weight.
    """
    weight = judgments.weight if weighted and judgments.weighted.any() else None
    return judgments.once(("greedy", alpha, weight is None), lambda: _greedy(judgments, alpha, weight))


def _greedy(judgments: Judgments, alpha: float, weight: Floats | None) -> IdealGains:
    relevant = np.flatnonzero(judgments.alternative_group >= 0)
    query = judgments.alternative_query[relevant]
    shared = judgments.sharing[query]
    parts = [_apart(judgments, relevant[~shared], alpha, weight)]
    if shared.any():
        # Queries whose weights are all 1 are summed as without weights.
        weighted = shared & judgments.weighted[query] if weight is not None else np.zeros(len(query), dtype=np.bool_)
        each = weight if weight is not None else np.ones(len(judgments.group_query))
        parts += _step_by_step(judgments, relevant[shared & ~weighted], alpha, each, exact=False)
        parts += _step_by_step(judgments, relevant[weighted], alpha, each, exact=True)
    return _joined(parts)


def _joined(parts: Sequence[IdealGains]) -> IdealGains:
    """Join gains and sort them by query. Each query's ranks must be in order."""
    query = np.concatenate([part.query for part in parts])
    order = np.argsort(query, kind="stable")
    rank, gain = np.concatenate([part.rank for part in parts]), np.concatenate([part.gain for part in parts])
    return IdealGains(query[order], rank[order], gain[order])


def _apart(judgments: Judgments, rows: Ints, alpha: float, weight: Floats | None) -> IdealGains:
    """Sort the gains for queries without shared documents, where a gain depends only on the position in the group."""
    query, group = judgments.alternative_query[rows], judgments.alternative_group[rows]
    before = views.nth(group) - 1
    if weight is not None:
        return descending(query, weight[group] * ideals.power(1 - alpha, before))
    width = int(before.max(initial=0)) + 1
    # The keys are nearly sorted, so a stable sort is fast.
    query, before = np.divmod(np.sort(query * width + before, kind="stable"), width)
    return IdealGains(query, views.nth(query), ideals.power(1 - alpha, before))


def _step_by_step(
    judgments: Judgments, rows: Ints, alpha: float, weight: Floats, *, exact: bool
) -> Iterator[IdealGains]:
    """Compute gains for groups that share documents, where the best document depends on the documents before it.

    Gains with weights other than 1 are summed exactly, so that equal gains compare equal whatever the group order.
    """
    # Documents are numbered by query and byte order: the last one of a tie is the greatest.
    distinct, document = np.unique(judgments.sharing_order[rows], return_inverse=True)
    owner, group = judgments.alternative_query[rows], judgments.alternative_group[rows]
    query = np.zeros(len(distinct), dtype=np.int64)
    query[document] = owner
    if alpha == 0:  # every hit is worth the same, regardless of earlier ones
        by_document = np.argsort(document, kind="stable")
        key, terms = document[by_document], weight[group[by_document]]
        yield descending(query, _exact_totals(key, terms) if exact else total(key, terms, len(query)))
        return
    large = np.bincount(query, minlength=judgments.size) > SMALL_DOCUMENTS
    for crowded in np.flatnonzero(large).tolist():
        part = views.part_of(owner, crowded)
        yield _Crowd(document[part], group[part], alpha, weight, exact=exact).ideal(crowded)
    small = ~large[owner]
    yield from _greedy_all(query, document[small], group[small], alpha, weight, exact=exact)


def _dense(numbers: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers below `size`, ascending, and the index of each number in them, without sorting."""
    used = np.zeros(size, dtype=np.bool_)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]


def _greedy_all(
    query: Ints, document: Ints, group: Ints, alpha: float, weight: Floats, *, exact: bool
) -> Iterator[IdealGains]:
    """Rank the documents of all queries together, and yield the gains at each rank."""
    hits_so_far = np.zeros(len(weight), dtype=np.int64)
    rank = 0
    several = bool(len(document)) and int(np.bincount(document).max()) > 2
    while len(document):
        rank += 1
        alive, local = _dense(document, len(query))
        # Sum in the same order for all, so that equal sets of hits have bitwise equal gains.
        if several:
            order = np.lexsort((hits_so_far[group], local))
            local, document, group = local[order], document[order], group[order]
        part = weight[group] * ideals.power(1 - alpha, hits_so_far[group])
        gain = _exact_totals(local, part) if several and exact else total(local, part, len(alive))
        owner = query[alive]
        new = views.changes(owner)
        starts, number = np.flatnonzero(new), np.cumsum(new) - 1
        best = np.maximum.reduceat(gain, starts)
        is_best = np.flatnonzero(gain == best[number])
        pick = np.zeros(len(starts), dtype=np.int64)
        pick[number[is_best]] = is_best
        taken = np.zeros(len(alive), dtype=np.bool_)
        taken[pick] = True
        yield IdealGains(owner[starts], np.full(len(starts), rank, dtype=np.int64), best)
        gone = taken[local]
        np.add.at(hits_so_far, group[gone], 1)
        document, group = document[~gone], group[~gone]


def _exact_totals(key: Ints, terms: Floats) -> Floats:
    """Sum the terms of each key with a single rounding. Rows are sorted by key, and no key is missing."""
    starts = np.flatnonzero(np.diff(key, prepend=-1)).tolist()
    listed = terms.tolist()
    return np.array([fsum(listed[low:high]) for low, high in pairwise([*starts, len(listed)])])


class _Crowd:
    """A solver for one query with very many documents. Gains only fall, so an earlier gain is an upper bound.

    Documents in the same groups have the same gain and form a set, represented by its greatest remaining document.
    Positions are in descending document order, so that the first of several equal gains is taken.
    """

    def __init__(self, document: Ints, group: Ints, alpha: float, weight: Floats, *, exact: bool) -> None:
        self.weight, self.exact = weight[np.unique(group)], exact
        document, group = np.unique(document, return_inverse=True)[1], np.unique(group, return_inverse=True)[1]
        order = np.lexsort((group, document))
        ends = np.cumsum(np.bincount(document)).tolist()
        same_groups: dict[bytes, list[int]] = {}
        for place, (low, high) in enumerate(zip([0, *ends], ends), 1 - len(ends)):
            same_groups.setdefault(group[order[low:high]].tobytes(), []).append(-place)
        self.stacks = list(same_groups.values())
        self.groups = [np.frombuffer(groups, dtype=group.dtype) for groups in same_groups]
        self.sizes = np.array([len(groups) for groups in self.groups])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.cells = np.concatenate(self.groups)
        # The sets that contain each group.
        by_group = np.argsort(self.cells, kind="stable")
        sets = np.repeat(np.arange(len(self.groups)), self.sizes)[by_group]
        self.sets = np.split(sets, np.cumsum(np.bincount(self.cells))[:-1])
        self.hits_so_far = np.zeros(len(self.sets), dtype=np.int64)
        # The gain of one more hit, by the number of hits before it.
        self.worth = ideals.power(1 - alpha, np.arange(int(np.bincount(group).max()) + 1))
        self.places = np.array([stack[-1] for stack in self.stacks])
        self.set_at = np.zeros(len(ends), dtype=np.int64)
        for at, stack in enumerate(self.stacks):
            self.set_at[stack] = at
        # A loose bound was exact before some hit; it exceeds the gain by more than any rounding error.
        self.loose = np.zeros(len(self.groups), dtype=np.bool_)
        self.slack = 1 + 1e-15 * (int(self.sizes.max()) + 4)
        self.bounds = np.full(len(ends), -np.inf)
        self.bounds[self.places] = self.gains_of(np.arange(len(self.groups)))

    def gains_of(self, sets: Ints) -> Floats:
        """Return the current gain from one document in each of these sets."""
        sizes = self.sizes[sets]
        local = np.repeat(np.arange(len(sets)), sizes)
        cells = np.arange(len(local)) + np.repeat(self.starts[sets] - np.cumsum(sizes) + sizes, sizes)
        groups = self.cells[cells]
        hits = self.hits_so_far[groups]
        part = self.weight[groups] * self.worth[hits]
        # Sum in the same order for all, so that equal sets of hits have bitwise equal gains.
        return _exact_totals(local, part) if self.exact else total(local, part[np.lexsort((hits, local))], len(sets))

    def ideal(self, query: int) -> IdealGains:
        """Return the gains of the documents in their best order, except those too small to change the sum."""
        gains: list[float] = []
        least = float(self.bounds.max()) * LEAST
        while (gain := float(self.bounds[place := int(self.bounds.argmax())])) > least:
            if self.loose[self.set_at[place]]:
                near = self.set_at[np.flatnonzero(self.bounds >= gain * NEAR)]
                near = near[self.loose[near]]
                self.bounds[self.places[near]] = self.gains_of(near)
                self.loose[near] = False
            else:
                gains.append(gain)
                self.take(place)
        size = len(gains)
        return IdealGains(np.full(size, query, dtype=np.int64), np.arange(1, size + 1, dtype=np.int64), np.array(gains))

    def take(self, place: int) -> None:
        """Take the document at a position, replace it with the next one in its set, and lower related bounds."""
        at = int(self.set_at[place])
        stack, gain = self.stacks[at], self.bounds[place]
        self.bounds[stack.pop()] = -np.inf
        if stack:
            self.places[at] = stack[-1]
            self.bounds[stack[-1]] = gain
        for group in self.groups[at].tolist():
            hits = self.hits_so_far[group]
            self.hits_so_far[group] += 1
            sets = self.sets[group]
            places = self.places[sets]
            less = self.weight[group] * (self.worth[hits] - self.worth[hits + 1])
            self.bounds[places] = self.bounds[places] * self.slack - less
            self.loose[sets] = True


# Formats the discounted gain of a hit, given its rank and gain.
Share = Callable[[int, float], str]


def _terms(sheet: Sheet, alpha: float, share: Share, *, weighted: bool = False) -> str:
    """Format the gain of each hit in rank order, as a power of (1 − α), times the weight if `weighted`."""
    hits = sorted((hit.rank, hit.nth, group.weight) for group in sheet.groups for hit in group.hits)
    return plus(share(rank, (1 - alpha) ** (nth - 1) * (weight if weighted else 1.0)) for rank, nth, weight in hits)


def _explain_share(sheet: Sheet, alpha: float, share: Share, depth: int | None, *, weighted: bool = False) -> str:
    """Format a query's terms as a share of the terms in the greedy ideal, cut at `depth`."""
    ideal = greedy_ideal(sheet.judgments, alpha, weighted=weighted)
    scale = sheet.scale if weighted else 1.0
    looked_at = (ideal.query == sheet.query) & (ideal.rank <= (len(ideal.rank) if depth is None else depth))
    best = map(share, ideal.rank[looked_at].tolist(), (scale * ideal.gain[looked_at]).tolist())
    return over(_terms(sheet, alpha, share, weighted=weighted), plus(best))


def _explain_most(sheet: Sheet, alpha: float, discount: Discount, groups: float) -> str:
    return times(groups, float(ideals.geometric_sum(1 - alpha, discount, np.array([sheet.k]))[0]))


def _explain_alpha_dcg(sheet: Sheet, alpha: float = 0.5) -> str:
    weight = sum(group.weight for group in sheet.groups)
    return over(_terms(sheet, alpha, log_share, weighted=True), _explain_most(sheet, alpha, ideals.log2, weight))


def _explain_err_ia(sheet: Sheet, alpha: float = 0.5) -> str:
    return over(_terms(sheet, alpha, rank_share), _explain_most(sheet, alpha, ideals.inverse, len(sheet.groups)))


def _persisting(beta: float) -> Share:
    return lambda rank, gain: times(gain, f"{number(beta)}**{rank - 1}" if rank > 1 else "1")


def _explain_nrbp(sheet: Sheet, alpha: float = 0.5, beta: float = 0.5) -> str:
    scale = f"(1 - {number(1 - alpha)}*{number(beta)})"
    return over(f"{scale} * ({_terms(sheet, alpha, _persisting(beta))})", len(sheet.groups))


def _explain_p_ia(sheet: Sheet) -> str:
    count = sum(len(group.hits) for group in sheet.groups)
    return over(count, times(sheet.k, len(sheet.groups)) if sheet.k else 0)


_GREEDY = (
    "If groups share documents, or a result hits several groups at once, a ranking can beat the greedy ideal used in "
    "the literature, and the value may exceed 1."
)

DEFINITIONS = (
    one_meaning(
        "alpha_ndcg",
        "DCG in which each further hit of a group is discounted by (1 − α), normalized by the ideal.",
        alpha_ndcg,
        "Σ_r Σ_{g hit by r} weight_g (1−α)^(hits of g before r) / log2(r + 1) ÷ the same sum for the greedy ideal, "
        "cut at k",
        lambda sheet, alpha=0.5: _explain_share(sheet, alpha, log_share, sheet.ideal, weighted=True),
        "Clarke+, SIGIR 2008; ndeval (where weights are 1)",
        ALPHA,
        warning=_GREEDY,
    ),
    one_meaning(
        "alpha_dcg",
        "The numerator of alpha_ndcg, as a fraction of its value for a ranking that hits every group at every rank.",
        alpha_dcg,
        "Σ_r Σ_{g hit by r} weight_g (1−α)^(hits of g before r) / log2(r + 1) "
        "÷ Σ_{r≤k} W(1−α)^(r−1)/log2(r + 1), where W is the total weight",
        _explain_alpha_dcg,
        "ndeval (whose value at k = 1 is not normalized)",
        ALPHA,
    ),
    one_meaning(
        "err_ia",
        "Intent-aware expected reciprocal rank.",
        err_ia,
        "Σ_r (1/r) Σ_{g hit} (1−α)^(hits of g before r) ÷ Σ_{r≤k} m(1−α)^(r−1)/r",
        _explain_err_ia,
        "Chapelle+, CIKM 2009; ndeval (whose value at k = 1 is not normalized)",
        ALPHA,
    ),
    one_meaning(
        "nerr_ia",
        "Intent-aware expected reciprocal rank, normalized by alpha_ndcg's ideal ranking.",
        lambda hits, cut, alpha=0.5: _share_of_ideal(hits, cut, alpha, ideals.inverse, cut.ideal),
        "Σ_r (1/r) Σ_{g hit} (1−α)^(hits of g before r) ÷ the same sum for alpha_ndcg's ideal ranking, cut at k",
        lambda sheet, alpha=0.5: _explain_share(sheet, alpha, rank_share, sheet.ideal),
        "ndeval",
        ALPHA,
        warning=_GREEDY,
    ),
    one_meaning(
        "nrbp",
        "Novelty- and rank-biased precision.",
        nrbp,
        "[1 − (1−α)β]/m · Σ_r β^(r−1) Σ_{g hit} (1−α)^(hits of g before r)",
        _explain_nrbp,
        "Clarke+, ICTIR 2009; ndeval (full depth)",
        ALPHA,
        BETA,
    ),
    one_meaning(
        "nnrbp",
        "Novelty- and rank-biased precision, normalized by alpha_ndcg's ideal ranking.",
        lambda hits, cut, alpha=0.5, beta=0.5: _share_of_ideal(hits, cut, alpha, _Persistence(beta), None),
        "Σ_r β^(r−1) Σ_{g hit} (1−α)^(hits of g before r) ÷ the same sum for alpha_ndcg's ideal ranking at full length",
        lambda sheet, alpha=0.5, beta=0.5: _explain_share(sheet, alpha, _persisting(beta), None),
        "ndeval (full depth)",
        ALPHA,
        BETA,
        warning=_GREEDY,
    ),
    one_meaning(
        "map_ia",
        "Intent-aware mean average precision.",
        lambda hits, cut: average_over_groups(hits, cut, by_hits=False),
        "(1/m) Σ_g (1/|G_g|) Σ_{r hits g} C_g(r)/r, where C_g(r) counts the hits of g up to r",
        lambda sheet: explain_average(sheet, by_hits=False),
        "Agrawal+, WSDM 2009; ndeval (full depth)",
    ),
    one_meaning(
        "p_ia", "Intent-aware precision.", p_ia, "Σ_r Σ_g hit ÷ (k·m)", _explain_p_ia, "Agrawal+, WSDM 2009; ndeval"
    ),
)

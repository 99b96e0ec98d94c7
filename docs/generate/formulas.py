"""Formulas of the catalogue as TeX.

Each TeX formula is stored with the text it was written for. If the catalogue's text has changed since then, the page
shows only the text, and a test names the formula.
"""

from __future__ import annotations

NOTATION = r"""$m$ is the number of groups. For a group $g$, $w_g$ is its weight, $G_g$ the set of its alternatives, and
$r_g$ the rank of the first result that hits the group ($1/r_g = 0$ if none does). *Top* contains the first $k$ results,
and $n$ is the number of results in top; without a cutoff, $k = n$. $\mathrm{rel}_r$ is 1 if the result at rank $r$ is
relevant and not a repeat, else 0, and $y_r$ is the result's grade. $R$ is the number of relevant documents.
$\mathrm{new}_r$ is 1 if the result covers a group that no earlier result covers, and $\mathrm{harm}_r$ is 1 if the
result is harmful. $g \ni r$ and $r \in g$ mean that the result at rank $r$ hits group $g$. $c_g(r)$ is the number of
hits on group $g$ before rank $r$, $h_g$ the number of all its hits in top, and $b_g(r)$ its best gain before rank $r$.
In bpref, $N$ is the number of documents judged non-relevant, and $N_r$ the number of those above rank $r$. A condition
in brackets is 1 if it is true, else 0. A sum after max, or an asterisk, refers to an ideal ranking. groupgt defines
0 ÷ 0 as 0."""

_AND_ALPHA = r"\sum_{r \le k} \frac{1}{\log_2(r+1)} \sum_{g \ni r} w_g (1-\alpha)^{c_g(r)}"
_ERR_ALPHA = r"\sum_{r \le k} \frac{1}{r} \sum_{g \ni r} (1-\alpha)^{c_g(r)}"
_RBP_ALPHA = r"\sum_{r} \beta^{r-1} \sum_{g \ni r} (1-\alpha)^{c_g(r)}"
_UPGRADES = (
    r"\sum_{r \le k} \frac{1}{\log_2(r+1)} \sum_{g \ni r} w_g \max \left( 0, \mathrm{gain}(y_{r,g}) - b_g(r) \right)"
)
_F1 = ("2·P·R ÷ (P + R)", r"\frac{2 \cdot P \cdot R}{P + R}")
_ANY = r"\max_g \; [\, r_g \le k \,]"
_ALL = r"\min_g \; [\, r_g \le k \,]"

# By metric: the text in the catalogue, and the formula.
TEX: dict[str, tuple[str, str]] = {
    "precision.autorag": ("distinct relevant results in top ÷ len(top)", r"\frac{1}{n} \sum_{r=1}^{n} \mathrm{rel}_r"),
    "precision.trec": ("relevant results in top ÷ k", r"\frac{1}{k} \sum_{r=1}^{n} \mathrm{rel}_r"),
    "precision.coverage": (
        "results that cover a new group ÷ len(top)",
        r"\frac{1}{n} \sum_{r=1}^{n} \mathrm{new}_r",
    ),
    "recall.autorag": ("groups covered ÷ m", r"\frac{1}{m} \sum_{g=1}^{m} [\, r_g \le k \,]"),
    "recall.trec": ("distinct relevant documents found ÷ R", r"\frac{1}{R} \sum_{r=1}^{n} \mathrm{rel}_r"),
    "recall.coverage": (
        "weight of groups covered ÷ total weight",
        r"\frac{\sum_{g} w_g \, [\, r_g \le k \,]}{\sum_{g} w_g}",
    ),
    "f1.autorag": _F1,
    "f1.trec": _F1,
    "f1.coverage": _F1,
    "hit_rate.autorag": ("1 if any group is covered, else 0", _ANY),
    "hit_rate.trec": ("1 if any relevant result is in top, else 0", r"\max_{r \le n} \; \mathrm{rel}_r"),
    "hit_rate.coverage": ("1 if any group is covered, else 0", _ANY),
    "complete.autorag": ("1 if every group is covered, else 0", _ALL),
    "complete.trec": (
        "1 if all R relevant documents are found, else 0",
        r"\left[\, \sum_{r=1}^{n} \mathrm{rel}_r = R \,\right]",
    ),
    "complete.coverage": ("1 if every group is covered, else 0", _ALL),
    "mrecall": (
        "1 if at least min(m, k) groups (all m without @k or with a budget) are covered in top, else 0",
        r"\left[\, \sum_{g} [\, r_g \le k \,] \ge \min(m, k) \,\right]",
    ),
    "hits": ("number of distinct relevant results in top", r"\sum_{r=1}^{n} \mathrm{rel}_r"),
    "r_precision": (
        "relevant results among the first R of top ÷ R",
        r"\frac{1}{R} \sum_{r=1}^{\min(n, R)} \mathrm{rel}_r",
    ),
    "redundancy": (
        "(relevant results − results that cover a new group, both in top) ÷ len(top)",
        r"\frac{1}{n} \sum_{r=1}^{n} \left( \mathrm{rel}_r - \mathrm{new}_r \right)",
    ),
    "judged": (
        "results in top with a grade ≥ 0 (with `negative=True`, any grade, as in ir-measures) ÷ len(top)",
        r"\frac{1}{n} \sum_{r=1}^{n} [\, y_r \ge 0 \,]",
    ),
    "iprec": (
        "largest n ÷ rank of the n-th relevant result over all n ≥ ⌊recall·R + 0.9⌋ (0 if there is none), as in "
        "trec_eval 9; with `version=10`, over all n ≥ recall·R, rounded half up",
        r"\max_{r \,:\, c(r) \ge \lfloor \mathrm{recall} \cdot R + 0.9 \rfloor} \frac{c(r)}{r}, \quad "
        r"c(r) = \sum_{s=1}^{r} \mathrm{rel}_s",
    ),
    "gm_map": (
        "exp of the mean over queries of ln max(map.trec, 0.00001)",
        r"\exp \left( \frac{1}{Q} \sum_{q=1}^{Q} \ln \max(\mathrm{AP}_q, \, 10^{-5}) \right)",
    ),
    "num_ret": ("number of results", r"n"),
    "num_rel": ("R", r"R"),
    "rbp_residual": (
        "1 − (1−p) Σ p^(r−1) over results in top with a grade ≥ 0",
        r"1 - (1 - p) \sum_{r=1}^{n} p^{r-1} \, [\, y_r \ge 0 \,]",
    ),
    "bpref": (
        "(1/R) Σ over relevant results of 1 − min(judged non-relevant results above it, R) ÷ min(N, R) (1 for a "
        "result with none above it)",
        r"\frac{1}{R} \sum_{r} \mathrm{rel}_r \left( 1 - \frac{\min(N_r, R)}{\min(N, R)} \right)",
    ),
    "infap": (
        "(1/R) Σ over relevant results of 1/r + (c/r) · (relevant above it + ε) ÷ (judged above it + 2ε), where c "
        "counts the pooled results above it, and ε = 0.00001",
        r"\frac{1}{R} \sum_{r} \mathrm{rel}_r \left( \frac{1}{r} + \frac{c_r}{r} \cdot "
        r"\frac{\mathrm{rel}_{<r} + \varepsilon}{\mathrm{judged}_{<r} + 2 \varepsilon} \right)",
    ),
    "compat": (
        "Σ_{i≤d} p^(i−1) · |documents among the first i of results and ideal| / i, where d = max(n, R), ÷ the same "
        "sum of the ideal ranking with itself; with `normalize=False`, ÷ Σ p^(i−1). The ideal ranking has the highest "
        "grades first, and equal grades in the order of the results",
        r"\frac{\sum_{i=1}^{d} p^{i-1} \, | S_i \cap I_i | / i}{\sum_{i=1}^{d} p^{i-1} \, | I_i | / i}",
    ),
    "mrr.autorag": (
        "mean over groups of 1 ÷ rank of its first hit (0 if none)",
        r"\frac{1}{m} \sum_{g=1}^{m} \frac{1}{r_g}",
    ),
    "mrr.trec": ("1 ÷ rank of the first relevant result", r"\frac{1}{\min \{ r : \mathrm{rel}_r = 1 \}}"),
    "mrr.coverage": (
        "(Σ over groups of weight ÷ rank of the first hit) ÷ the largest such sum of any ranking (both cut at k)",
        r"\frac{\sum_{g} w_g / r_g}{\max \sum_{g} w_g / r_g^{*}}",
    ),
    "map.autorag": (
        "mean over groups of the mean precision_g at the hits of the group (÷ hits found; 0 if none)",
        r"\frac{1}{m} \sum_{g=1}^{m} \frac{1}{h_g} \sum_{r \in g} \frac{c_g(r) + 1}{r}",
    ),
    "map.trec": (
        "(Σ of precision@r over the ranks r of relevant results in top) ÷ R",
        r"\frac{1}{R} \sum_{r=1}^{n} \mathrm{rel}_r \; \frac{1}{r} \sum_{s=1}^{r} \mathrm{rel}_s",
    ),
    "map.coverage": (
        "weighted mean over groups of N(r_g) ÷ r_g (0 if not covered), where r_g is the rank at which g is first "
        "covered, and N(r) counts the results up to r that cover a new group",
        r"\frac{1}{\sum_g w_g} \sum_{g} w_g \; \frac{1}{r_g} \sum_{s=1}^{r_g} \mathrm{new}_s",
    ),
    "completion_rr": ("1 ÷ the rank at which the last group is covered (0 if never)", r"\frac{1}{\max_g \, r_g}"),
    "ndcg.autorag": (
        "Σ_hits 1/log2(rank + 1) ÷ the same sum over the first min(Σ_j |G_j|, len(top)) ranks",
        r"\frac{\sum_{r=1}^{n} \mathrm{rel}_r / \log_2(r+1)}"
        r"{\sum_{r=1}^{\min(\sum_j |G_j|, \, n)} 1 / \log_2(r+1)}",
    ),
    "ndcg.trec": (
        "Σ gain(grade)/log2(rank + 1) ÷ the same sum over the R relevant grades, highest first, cut at k",
        r"\frac{\sum_{r=1}^{n} \mathrm{gain}(y_r) / \log_2(r+1)}"
        r"{\sum_{r=1}^{\min(R, k)} \mathrm{gain}(y^{*}_r) / \log_2(r+1)}",
    ),
    "ndcg.coverage": (
        "Σ_r Σ_groups weight × max(0, gain(grade) − best gain so far in that group) / log2(r + 1) "
        "÷ the same sum for the best ranking, cut at k",
        rf"\frac{{{_UPGRADES}}}{{\max {_UPGRADES}}}",
    ),
    "dcg": ("Σ gain(grade)/log2(rank + 1)", r"\sum_{r=1}^{n} \frac{\mathrm{gain}(y_r)}{\log_2(r+1)}"),
    "novelty_ndcg": (
        "Σ over results that cover new groups of (2^g − 1)/log2(rank + 1), where g is the highest grade among these "
        "groups, ÷ the same sum over the best grade of each group, highest first, not cut at k",
        r"\frac{\sum_{r=1}^{n} \mathrm{new}_r \, (2^{y_r} - 1) / \log_2(r+1)}"
        r"{\sum_{j=1}^{m} (2^{y^{*}_j} - 1) / \log_2(j+1)}",
    ),
    "err": (
        "Σ_r (1/r) R_r Π_{s<r} (1 − R_s), R = (2^grade − 1) / 2^max_grade; a grade above max_grade is an error",
        r"\sum_{r=1}^{n} \frac{1}{r} \, R_r \prod_{s < r} (1 - R_s), \quad "
        r"R_r = \frac{2^{y_r} - 1}{2^{y_{\max}}}",
    ),
    "rbp": (
        "(1−p) Σ_r p^(r−1) rel_r; results beyond top can add at most p^min(k,n), and a user looks at 1/(1−p) "
        "results on average. With `graded=True`, rel_r is the grade ÷ the highest grade in the ground truth",
        r"(1 - p) \sum_{r=1}^{n} p^{r-1} \, \mathrm{rel}_r",
    ),
    "alpha_ndcg": (
        "Σ_r Σ_{g hit by r} weight_g (1−α)^(hits of g before r) / log2(r + 1) ÷ the same sum for the greedy ideal, "
        "cut at k",
        rf"\frac{{{_AND_ALPHA}}}{{\max {_AND_ALPHA}}}",
    ),
    "alpha_dcg": (
        "Σ_r Σ_{g hit by r} weight_g (1−α)^(hits of g before r) / log2(r + 1) "
        "÷ Σ_{r≤k} W(1−α)^(r−1)/log2(r + 1), where W is the total weight",
        rf"\frac{{{_AND_ALPHA}}}{{\sum_{{r \le k}} W (1-\alpha)^{{r-1}} / \log_2(r+1)}}",
    ),
    "err_ia": (
        "Σ_r (1/r) Σ_{g hit} (1−α)^(hits of g before r) ÷ Σ_{r≤k} m(1−α)^(r−1)/r",
        rf"\frac{{{_ERR_ALPHA}}}{{\sum_{{r \le k}} m (1-\alpha)^{{r-1}} / r}}",
    ),
    "nerr_ia": (
        "Σ_r (1/r) Σ_{g hit} (1−α)^(hits of g before r) ÷ the same sum for alpha_ndcg's ideal ranking, cut at k",
        rf"\frac{{{_ERR_ALPHA}}}{{\max {_ERR_ALPHA}}}",
    ),
    "nrbp": (
        "[1 − (1−α)β]/m · Σ_r β^(r−1) Σ_{g hit} (1−α)^(hits of g before r)",
        rf"\frac{{1 - (1-\alpha)\beta}}{{m}} {_RBP_ALPHA}",
    ),
    "nnrbp": (
        "Σ_r β^(r−1) Σ_{g hit} (1−α)^(hits of g before r) ÷ the same sum for alpha_ndcg's ideal ranking at full length",
        rf"\frac{{{_RBP_ALPHA}}}{{\max {_RBP_ALPHA}}}",
    ),
    "map_ia": (
        "(1/m) Σ_g (1/|G_g|) Σ_{r hits g} C_g(r)/r, where C_g(r) counts the hits of g up to r",
        r"\frac{1}{m} \sum_{g} \frac{1}{|G_g|} \sum_{r \in g} \frac{c_g(r) + 1}{r}",
    ),
    "unj": ("(results in top without a grade ≥ 0) ÷ k", r"\frac{1}{k} \sum_{r=1}^{n} [\, y_r \not\ge 0 \,]"),
    "rbp_resid": (
        "p^len(top) + (1−p) Σ p^(r−1) over results in top without a grade ≥ 0; 0 if there are none",
        r"p^n + (1-p) \sum_{r=1}^{n} p^{r-1} \, [\, y_r \not\ge 0 \,]",
    ),
    "harmful": (
        "harmful results in top (repeats included) ÷ len(top)",
        r"\frac{1}{n} \sum_{r=1}^{n} \mathrm{harm}_r",
    ),
    "clean": (
        "1 if no result in top is harmful, else 0",
        r"\left[\, \sum_{r=1}^{n} \mathrm{harm}_r = 0 \,\right]",
    ),
    "p_ia": ("Σ_r Σ_g hit ÷ (k·m)", r"\frac{1}{k \cdot m} \sum_{r=1}^{n} \sum_{g} [\, g \ni r \,]"),
}


def tex_of(metric: str, text: str) -> str:
    """Return the formula as TeX, or an empty string if there is none for this text."""
    written_for, tex = TEX.get(metric, ("", ""))
    return tex if written_for == text else ""

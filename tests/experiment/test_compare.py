"""The section `compare`, and budgets, in an experiment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.outcome import Outcome
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

BASE = "bm25[k1=0.9,b=0.4]"


def test_every_setting_arrives(swept: Path) -> None:
    outcome = run_experiment(
        swept,
        changes=[
            "seed=7",
            f'compare={{baseline: "{BASE}", test: bootstrap, correction: bonferroni, alpha: 0.1, confidence: 0.9, '
            "resamples: 500, pairs: true, metrics: [ndcg@10, recall@5]}",
        ],
    )
    table = outcome.comparison["handbook"]
    settings = table.settings
    assert (settings.test, settings.correction, settings.alpha) == ("bootstrap", "bonferroni", 0.1)
    assert (settings.confidence, settings.resamples, settings.seed, settings.pairs) == (0.9, 500, 7, True)
    assert [str(metric) for metric in table.metrics.values()] == ["ndcg.coverage@10", "recall.coverage@5"]
    assert len(table.pairs) == 2 * 15
    text = outcome.text()
    # The primary metric in full, the other as deltas.
    assert "ndcg@10" in text
    # Bonferroni over five comparisons at alpha 0.1.
    assert "98% CI of delta" in text
    assert f"against {BASE}      queries    ndcg@10    recall@5" in text
    assert outcome.folder is not None
    manifest = json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["compare"]["test"] == "bootstrap"
    assert manifest["ground_truth"] == {"handbook": next(iter(outcome.evaluations["handbook"].values())).truth.digest}


def test_the_comparison_is_that_of_the_library(first: Outcome) -> None:
    found = first.evaluations["handbook"]
    again = groupgt.compare(
        next(iter(found.values())).truth,
        {name: each.run for name, each in found.items()},
        list(next(iter(found.values())).metrics),
        baseline=BASE,
        convention="coverage",
        resamples=100,
    )
    assert again.rows == first.comparison["handbook"].rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (f'compare={{baseline: "{BASE}", metrics: [mrr]}}', "compare.metrics.0: expected one of the metrics"),
        (f'compare={{baseline: "{BASE}", confidence: 1}}', "compare.confidence"),
        (f'compare={{baseline: "{BASE}", resamples: 0}}', "compare.resamples"),
        (f'compare={{baseline: "{BASE}", pairs: 3}}', "compare.pairs"),
        ("evaluate.tokenizer=words", "evaluate.tokenizer: tokenizer: expected whitespace"),
        ("evaluate.tokenizer='python:os:getcwd'", "python:os:getcwd runs your code; allow it with --allow-code"),
        (
            "evaluate.metrics=['recall@2000tokens', recall, ndcg]",
            "a budget in tokens needs a corpus with a `tokens` column",
        ),
    ],
)
def test_faults(swept: Path, change: str, words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as error:
        run_experiment(swept, changes=[change])
    assert words in str(error.value)


def test_scipy_is_asked_for_before_anything_is_retrieved(
    swept: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setattr("groupgt.experiment.checks.find_spec", lambda name: None)
    with snapshot.raises(groupgt.ConfigError):
        run_experiment(swept, changes=[f'compare={{baseline: "{BASE}", test: t}}'])


def test_budgets(swept: Path) -> None:
    """Lengths of the handbook's passages, from the corpus: in characters, and in words."""
    from groupgt.formats.corpus import read_corpus

    metrics = "evaluate.metrics=['recall@1500chars', 'recall@200tokens', recall, ndcg]"
    outcome = run_experiment(swept, changes=[metrics, "evaluate.tokenizer=whitespace"])
    corpus = read_corpus(outcome.experiment.at(outcome.experiment.config.datasets["handbook"].corpus or ""))
    for evaluation in outcome.evaluations["handbook"].values():
        for text, amount, length in (
            ("recall.coverage@1500chars", 1500, len),
            ("recall.coverage@200tokens", 200, lambda text: len(text.split())),
        ):
            values = evaluation.values[text]
            for at, qid in enumerate(evaluation.truth.qids):
                groups = evaluation.truth[qid]
                if not groups:
                    continue
                left, met = amount, set()
                for name in evaluation.run.rankings[qid]:
                    left -= length(corpus[name])
                    if left < 0:
                        break
                    met |= {place for place, group in enumerate(groups) if name in group}
                assert values[at] == len(met) / len(groups)


def test_a_tokenizers_file_is_part_of_what_determines_the_results(swept: Path) -> None:
    library = pytest.importorskip("tokenizers", reason="the extra groupgt[tokens] is not installed")
    made = library.Tokenizer(library.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    made.save(str(swept.parent / "words.json"))
    changes = ["evaluate.tokenizer='tokenizers:words.json'", "evaluate.metrics=['recall@200tokens', recall, ndcg]"]
    outcome = run_experiment(swept, changes=changes)
    assert "words.json" in outcome.digests

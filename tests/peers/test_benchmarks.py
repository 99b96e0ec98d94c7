"""Public benchmarks in their own shape, their evaluator's figure, and ours, on random data.

Where an evaluator is a package, it is asked; where it is a script of a repository, its formula is written out here from
what the script does, with its source. docs/benchmarks.md says which metric is which, and why figures differ.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import sys
from collections import defaultdict
from math import log2
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupgt
from groupgt.formats.write import write_ground_truth

pytestmark = pytest.mark.peers
Run = dict[str, dict[str, float]]


def needed(name: str) -> Any:
    """A module of a peer; the test is skipped where it cannot be imported."""
    return pytest.importorskip(name, reason=f"{name} is not installed", exc_type=ImportError)


def put(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def ranked(rng: random.Random, names: list[str], most: int = 40) -> dict[str, float]:
    """Documents with scores that differ, in any order."""
    chosen = rng.sample(names, min(len(names), rng.randint(1, most)))
    scores = rng.sample(range(1000), len(chosen))
    return {name: float(score) for name, score in zip(chosen, scores)}


# --- FreshStack: freshstack.retrieval.metrics ----------------------------------------------------------------------


def freshstack_util() -> Any:
    """Its module `datasets.util` alone: the modules beside it need the package datasets."""
    folder = Path(needed("freshstack").__file__).parent
    spec = importlib.util.spec_from_file_location("freshstack_util", folder / "datasets" / "util.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def freshstack_questions(rng: random.Random, qids: list[str]) -> list[dict[str, Any]]:
    """Questions of which some nuggets have no relevant document, but never all."""
    docs = [f"d{number:02d}" for number in range(60)]
    questions = []
    for qid in qids:
        nuggets = []
        for number in range(rng.randint(1, 5)):
            judged = rng.sample(docs, rng.randint(2, 8))
            cut = rng.randint(1 if number == 0 else 0, len(judged))
            nuggets.append(
                {
                    "_id": f"{qid}_{number}",
                    "text": f"nugget {number} of {qid}",
                    "relevant_corpus_ids": judged[:cut],
                    "non_relevant_corpus_ids": judged[cut:],
                }
            )
        questions.append({"query_id": qid, "query_title": "t", "query_text": "?", "nuggets": nuggets})
    return questions


def freshstack_qrels(questions: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """The relevance of documents by nugget, as its loader makes it."""
    return {
        nugget["_id"]: dict.fromkeys(nugget["relevant_corpus_ids"], 1)
        | dict.fromkeys(nugget["non_relevant_corpus_ids"], 0)
        for question in questions
        for nugget in question["nuggets"]
    }


def test_freshstack(tmp_path: Path) -> None:
    metrics, util = needed("freshstack.retrieval.metrics"), freshstack_util()
    rng = random.Random(1)
    questions = freshstack_questions(rng, [f"{number}" for number in range(100, 160)])
    run = {question["query_id"]: ranked(rng, [f"d{number:02d}" for number in range(60)]) for question in questions}
    by_nugget = freshstack_qrels(questions)
    by_query, flat = util.nuggets_to_query_qrels(by_nugget)
    path, results = put(tmp_path / "test.json", questions), put(tmp_path / "run.json", run)
    asked = ["alpha_ndcg@10", "recall.coverage@20", "recall.trec@50"]
    result = groupgt.evaluate(path, results, asked, policy={"empty_groups": "unmeetable"})
    for position, qid in enumerate(result.truth.qids):
        # One question at a time: the package rounds its means to four digits.
        of_one = {qid: by_query[qid]}
        theirs = [
            metrics.alpha_ndcg(by_nugget, of_one, {qid: run[qid]}, [10])["alpha-nDCG@10"],
            metrics.coverage(by_nugget, of_one, {qid: run[qid]}, [20])["Coverage@20"],
            metrics.recall({qid: flat[qid]}, {qid: run[qid]}, [50])["Recall@50"],
        ]
        ours = [result.values[metric][position] for metric in asked]
        assert ours == pytest.approx(theirs, abs=6e-5), qid
    # Without unsupported nuggets recall is of those alone that can be met.
    least = groupgt.evaluate(path, results, ["recall.coverage@20"], policy={"empty_groups": "drop"})
    assert least["recall.coverage@20"] > result["recall.coverage@20"]


def test_freshstack_gives_a_question_the_nuggets_of_others() -> None:
    """It matches by `startswith`: question 1 gets those of 10."""
    util = freshstack_util()
    nuggets, _ = util.nuggets_to_query_qrels({"1_0": {"a": 1}, "10_0": {"b": 1}})
    assert set(nuggets["1"]) == {"1_0", "10_0"}


def test_freshstack_breaks_ties_in_three_ways() -> None:
    """α-nDCG by ascending id, coverage as the results come, recall by descending id; groupgt by descending id."""
    metrics = needed("freshstack.retrieval.metrics")
    qrels, queries = {"1_0": {"b": 1}}, {"1": ["1_0"]}
    tied = {"1": {"c": 1.0, "a": 1.0, "b": 1.0}}
    found = {
        "alpha": metrics.alpha_ndcg(qrels, queries, tied, [2])["alpha-nDCG@2"] > 0,
        "coverage": metrics.coverage(qrels, queries, tied, [2])["Coverage@2"] > 0,
        "recall": metrics.recall({"1": {"b": 1}}, tied, [2])["Recall@2"] > 0,
    }
    # Of c, a, b: alpha cuts as given (c, a); coverage too; by descending id (c, b) the relevant one is within two.
    assert found == {"alpha": False, "coverage": False, "recall": True}
    assert groupgt.evaluate({"1": [["b"]]}, tied, ["recall.coverage@2"])["recall.coverage@2"] == 1
    three = {"1": {"b": 1.0, "a": 1.0}}
    assert metrics.alpha_ndcg(qrels, queries, three, [2])["alpha-nDCG@2"] == pytest.approx(1 / log2(3), abs=1e-4)
    assert metrics.coverage(qrels, queries, three, [1])["Coverage@1"] == 1


# --- BRIGHT: calculate_retrieval_metrics of retrievers.py in xlang-ai/BRIGHT, its formula written out ---------------


def test_bright(tmp_path: Path) -> None:
    """It takes `excluded_ids` out of the scores, ranks the rest, and asks pytrec_eval."""
    pytrec_eval = needed("pytrec_eval")
    rng = random.Random(3)
    docs = [f"s/{number}.txt" for number in range(50)]
    examples, scores = [], {}
    for number in range(60):
        gold, excluded = rng.sample(docs, 8)[: rng.randint(1, 8)], []
        if number % 3:
            excluded = rng.sample([name for name in docs if name not in gold], 5)
        examples.append(
            {
                "query": "?",
                "reasoning": "",
                "id": str(number),
                "excluded_ids": excluded or ["N/A"],
                "gold_ids_long": ["N/A"],
                "gold_ids": gold,
                "gold_answer": "N/A",
            }
        )
        scores[str(number)] = ranked(rng, docs)
    left = {
        row["id"]: {name: score for name, score in scores[row["id"]].items() if name not in row["excluded_ids"]}
        for row in examples
    }
    gold_of = {row["id"]: dict.fromkeys(row["gold_ids"], 1) for row in examples}
    cutoffs = "1,10,25"
    asked = {f"{name}.{cutoffs}" for name in ("ndcg_cut", "map_cut", "recall", "P")} | {"recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(gold_of, asked).evaluate(left)
    named = {f"{name}@{k}": f"{name}.trec@{k}" for name in ("ndcg", "map", "recall", "p") for k in (1, 10, 25)}
    path, run = put(tmp_path / "biology.json", examples), put(tmp_path / "score.json", scores)
    result = groupgt.evaluate(path, run, [*named.values(), "mrr.trec"], policy="trec")
    assert result.counts["excluded"] > 0
    keys = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "p": "P"}
    for name, metric in named.items():
        measure, _, k = name.partition("@")
        expected = [theirs[qid][f"{keys[measure]}_{k}"] for qid in result.truth.qids]
        assert result.values[metric] == pytest.approx(expected, abs=1e-9), name
    assert result.values["mrr.trec"] == pytest.approx([theirs[qid]["recip_rank"] for qid in result.truth.qids])


# --- BEIR: beir.retrieval.evaluation ---------------------------------------------------------------------------------


def beir_folder(folder: Path, qrels: dict[str, dict[str, int]]) -> Path:
    """A data set as BEIR lays it out."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": qid, "text": "?"}) + "\n" for qid in qrels))
    rows = [f"{qid}\t{name}\t{rel}\n" for qid, own in qrels.items() for name, rel in own.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return folder


@pytest.mark.filterwarnings("default")
def test_beir(tmp_path: Path) -> None:
    evaluation = needed("beir.retrieval.evaluation").EvaluateRetrieval
    rng = random.Random(5)
    docs = [f"d{number:02d}" for number in range(40)]
    qrels = {f"q{number}": {name: rng.choice((0, 1, 2)) for name in rng.sample(docs, 6)} for number in range(80)}
    qrels["q0"] = dict.fromkeys(docs[:3], 0)  # nothing relevant: counts as 0
    for number in range(1, 80):
        qrels[f"q{number}"][docs[number % 40]] = 1
    run = {qid: ranked(rng, docs, 30) for qid in qrels if qid != "q7"}
    named = {"NDCG@10": "ndcg.trec@10", "MAP@30": "map.trec@30", "Recall@30": "recall.trec@30", "P@10": "p.trec@10"}
    theirs = {name: value for row in evaluation.evaluate(qrels, run, [10, 30]) for name, value in row.items()}
    folder = beir_folder(tmp_path / "set", qrels)
    ours = groupgt.evaluate(folder, run, [*named.values(), "mrr.trec@10"], policy="trec")
    for name, metric in named.items():
        assert ours[metric] == pytest.approx(theirs[name], abs=6e-6), name
    # Its MRR counts queries without results as 0, where its other figures leave them out.
    mrr = evaluation.evaluate_custom(qrels, run, [10], "mrr")["MRR@10"]
    every = groupgt.evaluate(folder, run, ["mrr.trec@10"], policy={"preset": "trec", "missing": "zero"})
    assert every["mrr.trec@10"] == pytest.approx(mrr, abs=6e-6)
    assert ours["mrr.trec@10"] > mrr


@pytest.mark.filterwarnings("default")
def test_beir_leaves_out_what_is_called_as_the_query(tmp_path: Path) -> None:
    """Whatever it is: where the ids of queries and documents are numbers of their own, a hit may be lost."""
    evaluation = needed("beir.retrieval.evaluation").EvaluateRetrieval
    qrels, run = {"7": {"7": 1, "8": 1}}, {"7": {"7": 2.0, "8": 1.0}}
    ours = groupgt.evaluate(beir_folder(tmp_path / "set", qrels), run, ["recall.trec@10"])
    assert ours["recall.trec@10"] == 1
    assert evaluation.evaluate(qrels, run, [10])[2] == {"Recall@10": 0.5}
    assert run == {"7": {"8": 1.0}}


# --- CRUX, and LANCER, which is evaluated by it: rac_eval.py of DylanJoo/crux, its formula written out ----------------


def crux(judged: dict[str, list[int]], ranking: list[str], answerable_alone: bool) -> float:
    """Its coverage of one query: each sub-question has the best rating of the first ten passages; 3 is an answer."""
    nothing = [0] * len(next(iter(judged.values())))
    best, oracle = (
        [max(column) for column in zip(*rows)]
        for rows in ([judged.get(name, nothing) for name in ranking[:10]], judged.values())
    )
    counted = [rating for rating, top in zip(best, oracle) if top >= 3 or not answerable_alone]
    return sum(rating >= 3 for rating in counted) / len(counted)


@pytest.mark.parametrize(("answerable_alone", "empty_groups"), [(False, "unmeetable"), (True, "error")])
def test_crux(tmp_path: Path, answerable_alone: bool, empty_groups: str) -> None:
    """LANCER asks it both ways: of NeuCLIR with one file of ratings, of DUC with a folder and `--filter_by_oracle`."""
    rng = random.Random(12)
    docs = [f"d{number:02d}" for number in range(30)]
    ratings: dict[str, dict[str, list[int]]] = {}
    for number in range(60):
        questions = rng.randint(2, 6)
        rows = {name: [rng.choice((0, 0, 0, 1, 2, 3, 5)) for _ in range(questions)] for name in rng.sample(docs, 8)}
        for row in rows.values():
            row[0], row[1] = 4, min(row[1], 2)  # the second sub-question is answered nowhere
            if number % 10 == 0 and not answerable_alone:
                row[:] = [min(rating, 2) for rating in row]  # nor is any other
        ratings[f"t{number}"] = rows
    run = {qid: ranked(rng, docs, 25) for qid in ratings}
    path = tmp_path / "judge"
    path.mkdir()
    for qid, own in ratings.items():
        lines = [json.dumps({"id": qid, "docid": name, "rating": row}) + "\n" for name, row in own.items()]
        with (path / ("ratings.jsonl" if not answerable_alone else f"{qid}.jsonl")).open("a", encoding="utf-8") as file:
            file.writelines(lines)
    path = path if answerable_alone else path / "ratings.jsonl"
    policy = {"level": 3, "empty_groups": empty_groups, "undefined": "skip" if answerable_alone else "zero"}
    result = groupgt.evaluate(path, run, ["recall.coverage@10"], policy=policy)
    for position, qid in enumerate(result.truth.qids):
        ranking = sorted(run[qid], key=run[qid].__getitem__, reverse=True)
        expected = crux(ratings[qid], ranking, answerable_alone)
        assert result.values["recall.coverage@10"][position] == pytest.approx(expected, abs=1e-12), qid


# --- BRIGHT-Pro: retrieval/evaluation/*.py of yale-nlp/Bright-Pro, its formulas written out ------------------------


def bright_pro_aspects(rng: random.Random, qids: list[str]) -> list[dict[str, Any]]:
    """Aspects of which no two share a document."""
    aspects = []
    for qid in qids:
        docs = [f"{qid}/{number}.txt" for number in range(12)]
        rng.shuffle(docs)
        for number in range(1, rng.randint(2, 4)):
            aspects.append(
                {
                    "id": f"{qid}-a{number}",
                    "content": f"aspect {number}",
                    "weight": rng.choice((1, 2, 3)),
                    "supporting_docs": [docs.pop() for _ in range(rng.randint(1, 3))],
                }
            )
    return aspects


def bright_pro(aspects: list[dict[str, Any]], ranking: list[str], k: int, alpha: float) -> tuple[float, float]:
    """Weighted α-nDCG and aspect recall of one question; weights are normalized to a sum of 1."""
    total = sum(aspect["weight"] for aspect in aspects)
    weight = {aspect["id"]: aspect["weight"] / total for aspect in aspects}
    aspect_of = {name: aspect["id"] for aspect in aspects for name in aspect["supporting_docs"]}

    def gained(names: list[str]) -> float:
        seen: dict[str, int] = defaultdict(int)
        sum_of_gains = 0.0
        for rank, name in enumerate(names[:k], 1):
            if name in aspect_of:
                aspect = aspect_of[name]
                sum_of_gains += weight[aspect] * (1 - alpha) ** seen[aspect] / log2(rank + 1)
                seen[aspect] += 1
        return sum_of_gains

    left, best, taken = dict(aspect_of), [], defaultdict(int)
    while left and len(best) < k:
        name = max(left, key=lambda each: weight[left[each]] * (1 - alpha) ** taken[left[each]])
        taken[left.pop(name)] += 1
        best.append(name)
    covered = {aspect_of[name] for name in ranking[:k] if name in aspect_of}
    return gained(ranking) / gained(best), sum(weight[aspect] for aspect in covered)


@pytest.mark.parametrize(("k", "alpha"), [(5, 0.5), (25, 0.5), (10, 0.9)])
def test_bright_pro(tmp_path: Path, k: int, alpha: float) -> None:
    rng = random.Random(k)
    qids = [f"bio-{number}" for number in range(60)]
    aspects = bright_pro_aspects(rng, qids)
    run = {qid: ranked(rng, [f"{qid}/{number}.txt" for number in range(30)], 30) for qid in qids}
    asked = [f"alpha_ndcg(alpha={alpha})@{k}", f"recall.coverage@{k}"]
    result = groupgt.evaluate(put(tmp_path / "biology.json", aspects), put(tmp_path / "score.json", run), asked)
    for position, qid in enumerate(result.truth.qids):
        ranking = sorted(run[qid], key=run[qid].__getitem__, reverse=True)
        own = [aspect for aspect in aspects if aspect["id"].startswith(f"{qid}-a")]
        ours = tuple(column[position] for column in result.values.values())
        assert ours == pytest.approx(bright_pro(own, ranking, k, alpha), abs=1e-12), qid


# --- MultiHop-RAG: retrieval_evaluate.py of yixuantt/MultiHop-RAG, its formulas written out ------------------------


def multihop(facts: list[str], texts: list[str]) -> dict[str, float]:
    """What the script computes for one question: texts and facts are compared without blanks and line ends."""
    facts, texts = ([text.replace(" ", "").replace("\n", "") for text in some] for some in (facts, texts))
    gold: set[str] = set()
    first, total = None, 0.0
    for rank, text in enumerate(texts[:10], 1):
        here = {fact for fact in facts if fact in text}
        if here and first is None:
            first = rank
        total += len(here - gold) / rank
        gold |= here
    return {
        "MAP@10": total / min(len(facts), 10),
        "MRR@10": 1 / first if first else 0.0,
        "Hits@10": float(first is not None),
        "Hits@4": float(first is not None and first <= 4),
    }


MULTIHOP = {"MAP@10": "mrr.autorag@10", "MRR@10": "mrr.trec@10", "Hits@10": "hit_rate@10", "Hits@4": "hit_rate@4"}


def saved(rng: random.Random, most: int) -> dict[str, Any]:
    """A question with results as the script saves them; facts are told apart by their words."""
    facts = [
        " ".join(f"w{number:03d}{part}" for part in "abc") for number in rng.sample(range(40), rng.randint(1, most))
    ]
    texts = []
    for _ in range(rng.randint(0, 14)):
        parts = [*rng.sample(facts, rng.randint(0, min(2, len(facts)))), f"x{rng.randint(0, 99)}"]
        rng.shuffle(parts)
        texts.append("\n".join(parts))
    return {
        "query": f"question {rng.getrandbits(64)}",
        "answer": "",
        "question_type": "inference_query",
        "retrieval_list": [{"text": text, "score": 1.0} for text in texts],
        "gold_list": [{"fact": fact} for fact in facts],
    }


def compared(path: Path, questions: list[dict[str, Any]]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Their values and ours, by their names."""
    put(path, questions)
    result = groupgt.evaluate(path, path, list(MULTIHOP.values()), labeller="text")
    ours = {name: list(result.values[metric]) for name, metric in MULTIHOP.items()}
    rows = [
        multihop([fact["fact"] for fact in row["gold_list"]], [text["text"] for text in row["retrieval_list"]])
        for row in questions
    ]
    return {name: [row[name] for row in rows] for name in MULTIHOP}, ours


def test_multihop_rag(tmp_path: Path) -> None:
    rng = random.Random(4)
    theirs, ours = compared(tmp_path / "saved.json", [saved(rng, 10) for _ in range(300)])
    for name in MULTIHOP:
        assert ours[name] == pytest.approx(theirs[name], abs=1e-12), name


@pytest.mark.property
@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=100)
def test_its_map_is_the_mean_of_reciprocal_ranks_for_up_to_ten_groups(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = random.Random(seed)
    theirs, ours = compared(tmp_path_factory.mktemp("law") / "saved.json", [saved(rng, 10) for _ in range(20)])
    assert ours["MAP@10"] == pytest.approx(theirs["MAP@10"], abs=1e-12)


def test_beyond_ten_groups_it_divides_by_ten(tmp_path: Path) -> None:
    facts = [f"w{number:02d}" for number in range(20)]
    question = {"query": "?", "question_type": "x", "retrieval_list": [{"text": " ".join(facts)}]}
    question["gold_list"] = [{"fact": fact} for fact in facts]
    theirs, ours = compared(tmp_path / "saved.json", [question])
    assert (theirs["MAP@10"], ours["MAP@10"]) == ([2.0], [1.0])


def test_multihop_rag_finds_facts_within_words(tmp_path: Path) -> None:
    """Without blanks a fact may stand within other words; the labeller `text` looks for words, whatever their case."""
    question = {
        "query": "?",
        "question_type": "x",
        "retrieval_list": [{"text": "The car pet sold"}, {"text": "A CARPET"}],
    }
    question["gold_list"] = [{"fact": "carpet"}]
    theirs, ours = compared(tmp_path / "saved.json", [question])
    assert (theirs["MRR@10"], ours["MRR@10"]) == ([1.0], [0.5])


def test_what_it_calls_map_is_none(tmp_path: Path) -> None:
    """One ranking, four numbers for the word MAP."""
    question = {"query": "?", "question_type": "x", "gold_list": [{"fact": fact} for fact in ("aa", "bb", "cc")]}
    question["retrieval_list"] = [{"text": text} for text in ("xx", "aa", "bb", "yy", "cc")]
    theirs, _ = compared(tmp_path / "saved.json", [question])
    path = tmp_path / "saved.json"
    names = ["map.autorag@10", "map.trec@10", "map.coverage@10"]
    ours = groupgt.evaluate(path, path, names, labeller="text").means
    assert theirs["MAP@10"] == pytest.approx([(1 / 2 + 1 / 3 + 1 / 5) / 3])
    average_precision = (1 / 2 + 2 / 3 + 3 / 5) / 3
    assert ours == pytest.approx(
        {
            "map.autorag@10": (1 / 2 + 1 / 3 + 1 / 5) / 3,
            "map.trec@10": average_precision,
            "map.coverage@10": average_precision,
        }
    )


# --- QAMPARI and AmbigQA: MRecall@k of Min et al. 2021, its definition written out ----------------------------------


def test_mrecall_of_answer_sets(tmp_path: Path) -> None:
    rng = random.Random(6)
    questions, results = [], []
    for number in range(100):
        answers = [{"answer_text": f"n{each:02d}", "aliases": [f"m{each:02d}"]} for each in rng.sample(range(30), 6)]
        answers = answers[: rng.randint(1, 6)]
        questions.append({"qid": f"q{number}", "question_text": "?", "answer_list": answers})
        texts = [" ".join(f"{rng.choice('mn')}{rng.randint(0, 29):02d}" for _ in range(4)) for _ in range(12)]
        ids = [str(rank) for rank in range(12)]
        results.append({"qid": f"q{number}", "retrieved_ids": ids, "retrieved_contents": texts})
    truth, run = put(tmp_path / "dev.json", questions), tmp_path / "run.jsonl"
    run.write_text("".join(json.dumps(row) + "\n" for row in results))
    result = groupgt.evaluate(truth, run, ["mrecall@3", "mrecall@5", "mrecall@10"], labeller="text")
    for metric, column in result.values.items():
        k = int(metric.partition("@")[2])
        for row, answers, value in zip(results, questions, column):
            said = " ".join(row["retrieved_contents"][:k]).split()
            met = sum(
                any(name in said for name in (answer["answer_text"], *answer["aliases"]))
                for answer in answers["answer_list"]
            )
            assert value == (met >= min(len(answers["answer_list"]), k)), (row["qid"], metric)


# --- nuggetizer: nuggetizer.core.metrics ----------------------------------------------------------------------------

RANK = {"support": 2, "partial_support": 1, "not_support": 0}


def test_nuggetizer(tmp_path: Path) -> None:
    """Its scores are of one text; of the first five passages together each nugget has the best of what they give it."""
    peer = needed("nuggetizer.core.metrics")
    rng = random.Random(7)
    rows: list[dict[str, Any]] = []
    run: Run = {}
    best: dict[str, list[dict[str, str]]] = {}
    for number in range(80):
        qid, docs = f"2024-{number}", [f"p{each}" for each in range(9)]
        nuggets = [{"text": f"nugget {each}", "importance": rng.choice(("vital", "okay"))} for each in range(5)]
        # Few queries have no vital nugget: they score 0.
        nuggets = [{**each, "importance": "okay"} for each in nuggets] if number % 8 == 0 else nuggets
        judged = {name: [rng.choice((*RANK, "not_support", "not_support")) for _ in nuggets] for name in docs}
        rows += [
            {
                "text": "?",
                "qid": qid,
                "candidate_text": "…",
                "docid": name,
                "nuggets": [{**nugget, "assignment": each} for nugget, each in zip(nuggets, judged[name])],
            }
            for name in docs
        ]
        # Each nugget can be met, so that strict and lenient recall are of the same groups.
        rows[-len(docs)]["nuggets"] = [{**nugget, "assignment": "support"} for nugget in nuggets]
        judged[docs[0]] = ["support"] * len(nuggets)
        run[qid] = ranked(rng, docs, 9)
        top = sorted(run[qid], key=run[qid].__getitem__, reverse=True)[:5]
        best[qid] = [
            {**nugget, "assignment": max((judged[name][at] for name in top), key=RANK.__getitem__)}
            for at, nugget in enumerate(nuggets)
        ]
    path = tmp_path / "assignments.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found: dict[tuple[int, str], list[float]] = {}
    for level in (1, 2):
        for importance in ("vital", "all"):
            policy = {"level": level, "empty_groups": "unmeetable", "undefined": "zero"}
            policy |= {"importance": ["vital"]} if importance == "vital" else {}
            result = groupgt.evaluate(path, run, ["recall.coverage@5"], policy=policy)
            found[level, importance] = list(result.values["recall.coverage@5"])
    for position, (qid, nuggets) in enumerate(best.items()):
        theirs = peer.calculate_nugget_scores(qid, nuggets)
        for importance in ("vital", "all"):
            strict, lenient = (found[level, importance][position] for level in (2, 1))
            assert strict == pytest.approx(getattr(theirs, f"strict_{importance}_score"), abs=1e-12), qid
            assert mean((strict, lenient)) == pytest.approx(getattr(theirs, f"{importance}_score"), abs=1e-12), qid


# --- Nugget banks: the models of autojudge_base, which has no metric ------------------------------------------------


@pytest.fixture
def nugget_data(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its models alone: the package itself asks for files of NLTK's when it is imported."""
    found = importlib.util.find_spec("autojudge_base")
    if found is None:
        pytest.skip("autojudge_base is not installed")
    package = ModuleType("autojudge_base")
    package.__path__ = list(found.submodule_search_locations or [])
    monkeypatch.setitem(sys.modules, "autojudge_base", package)
    return importlib.import_module("autojudge_base.nugget_data")


@pytest.mark.filterwarnings("default")
def test_nugget_banks_that_the_package_writes(tmp_path: Path, nugget_data: Any) -> None:
    rng = random.Random(8)
    lines, wanted = [], {}
    for number in range(60):
        qid = f"t{number}"
        bank = nugget_data.NuggetBank(query_id=qid, title_query="?")
        groups: list[tuple[str, set[str]]] = []
        for each in range(rng.randint(1, 4)):
            answers = [
                nugget_data.Answer.from_lazy(
                    f"a{at}", references=[f"d{rng.randint(0, 30)}" for _ in range(rng.randint(1, 3))]
                )
                for at in range(rng.randint(1, 3))
            ]
            aggregator = rng.choice((None, "AND", "OR", "SUM"))
            question = nugget_data.NuggetQuestion.from_lazy(qid, f"q{each}", answers, aggregator_type=aggregator)
            bank.add_nuggets(question)
        for name in ("claim one", "claim two")[: rng.randint(0, 2)]:
            bank.add_nuggets(nugget_data.NuggetClaim.from_lazy(qid, name, references=["d1", "d2"]))
        # What the package's own objects say.
        for question in (bank.nugget_bank or {}).values():
            named = {text: {ref.doc_id for ref in answer.references} for text, answer in question.answers.items()}
            if question.aggregator_type in ("AND", "SUM"):
                groups += [(f"{question.question}: {text}", docs) for text, docs in named.items()]
            else:
                groups.append((question.question, set().union(*named.values())))
        groups += [
            (claim.claim, {ref.doc_id for ref in claim.references}) for claim in (bank.claim_bank or {}).values()
        ]
        wanted[qid] = groups
        lines.append(bank.model_dump_json(exclude_none=True))
    path = tmp_path / "banks.jsonl"
    path.write_text("\n".join(lines) + "\n")
    truth = groupgt.read_ground_truth(path)
    assert {
        qid: [(group["name"], set(group["alternatives"])) for group in groups] for qid, groups in truth.items()
    } == wanted


@pytest.mark.filterwarnings("default")
def test_nugget_banks_that_groupgt_writes(tmp_path: Path, nugget_data: Any) -> None:
    truth = groupgt.GroundTruth.of(
        {"1": [{"alternatives": ["a", "b"], "name": "Who?", "importance": "vital"}, ["c"]], "2": [["d"]]},
        shape="subtopics",
    )
    write_ground_truth(tmp_path / "banks.jsonl", truth, "nuggetbank")
    banks = [
        nugget_data.NuggetBank.model_validate_json(line) for line in (tmp_path / "banks.jsonl").read_text().splitlines()
    ]
    assert [bank.query_id for bank in banks] == ["1", "2"]
    first = list(banks[0].nugget_bank.values())
    assert [(nugget.question, nugget.importance) for nugget in first] == [("Who?", "vital"), ("2", None)]
    assert [ref.doc_id for ref in first[0].references] == ["a", "b"]


# --- RAGElo: ragelo.measures, by ir_measures and ndeval --------------------------------------------------------------


@pytest.mark.property  # importing it takes seconds
@pytest.mark.filterwarnings("default")
def test_ragelo(tmp_path: Path) -> None:
    measures = needed("ragelo.measures")
    needed("ir_measures")
    needed("pyndeval")
    rng = random.Random(9)
    rows, run, qrels = [], {}, []
    for number in range(60):
        qid, docs = f"q{number}", [f"d{each:02d}" for each in range(30)]
        for criterion in ("who", "when", "why", "how"):
            named = rng.sample(docs, rng.choice((0, 1, 3))) if criterion != "who" else docs[:2]
            rows += [(qid, criterion, name) for name in named or [f"{measures.UNADDRESSED_DOC_PREFIX}{criterion}"]]
        run[qid] = ranked(rng, docs, 20)
    qrels = [measures.make_qrel(qid, name, 1, subtopic=criterion) for qid, criterion, name in rows]
    path = tmp_path / "subtopics.qrels"
    path.write_text("".join(f"{qid} {criterion} {name} 1\n" for qid, criterion, name in rows))
    asked = {"StRecall@10": "recall.coverage@10", "alpha_nDCG@10": "alpha_ndcg@10", "ERR_IA@10": "err_ia@10"}
    found = measures.calc_per_query([measures.parse_measure(name) for name in asked], qrels, measures.make_run(run))
    found = {name.replace("alpha=0.5,", ""): by_query for name, by_query in found.items()}
    as_counted = groupgt.evaluate(path, run, list(asked.values()), truth_format="trec-subtopics")
    for name, ours in asked.items():
        theirs = next(
            by_query
            for measure, by_query in found.items()
            if measure.partition("(")[0].partition("@")[0] == name.partition("@")[0]
        )
        for position, qid in enumerate(as_counted.truth.qids):
            assert as_counted.values[ours][position] == pytest.approx(theirs[qid], abs=1e-6), (name, qid)
    # Placeholders are documents of the ideal, which no ranking can reach; groups that cannot be met are not.
    policy = {"empty_groups": "unmeetable"}
    as_meant = groupgt.evaluate(path, run, list(asked.values()), truth_format="ragelo", policy=policy)
    assert as_meant["recall.coverage@10"] == pytest.approx(as_counted["recall.coverage@10"])
    assert as_meant["alpha_ndcg@10"] > as_counted["alpha_ndcg@10"]


# --- trec_eval with -c, -l and -J: pytrec_eval ----------------------------------------------------------------------


def judged(rng: random.Random) -> tuple[dict[str, dict[str, int]], Run]:
    """Qrels of which each query has a document of the highest grade, and a run that lacks some queries."""
    qrels: dict[str, dict[str, int]] = {}
    run: Run = {}
    for number in range(80):
        qid, docs = f"q{number}", [f"d{each:02d}" for each in range(40)]
        qrels[qid] = {name: rng.choice((0, 0, 1, 2, 3)) for name in rng.sample(docs, 12)}
        qrels[qid][docs[0]] = 3
        if number % 10:
            run[qid] = {**ranked(rng, docs, 35), docs[0]: rng.random()}
    return qrels, run


NAMES = ["map", "recip_rank", "Rprec", "P_5", "recall_10", "success_5", "bpref", "ndcg_cut_10", "ndcg"]
OURS = {"map": "map.trec", "ndcg": "ndcg.trec"}


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("judged_alone", [False, True], ids=["all results", "-J"])
@pytest.mark.parametrize("complete", [False, True], ids=["found queries", "-c"])
def test_trec_eval(tmp_path: Path, level: int, judged_alone: bool, complete: bool) -> None:
    pytrec_eval = needed("pytrec_eval")
    qrels, run = judged(random.Random(10))
    asked = {"map", "recip_rank", "Rprec", "P.5", "recall.10", "success.5", "bpref", "ndcg_cut.10", "ndcg"}
    peer = pytrec_eval.RelevanceEvaluator(qrels, asked, relevance_level=level, judged_docs_only_flag=judged_alone)
    theirs = peer.evaluate(run)
    path = tmp_path / "qrels"
    path.write_text("".join(f"{qid} 0 {name} {rel}\n" for qid, own in qrels.items() for name, rel in own.items()))
    # -J is a filter of the results.
    kept = {qid: {name: score for name, score in own.items() if name in qrels[qid]} for qid, own in run.items()}
    policy: dict[str, Any] = {"preset": "trec", "level": level, **({"missing": "zero"} if complete else {})}
    metrics = [OURS.get(name, name) for name in NAMES]
    result = groupgt.evaluate(path, kept if judged_alone else run, metrics, policy=policy)
    queries = len(qrels) if complete else len(theirs)
    for name, metric in zip(NAMES, metrics):
        assert result[metric] == pytest.approx(sum(row[name] for row in theirs.values()) / queries, abs=1e-9), name


def test_a_query_whose_results_are_all_unjudged() -> None:
    """Under -J trec_eval keeps it, with 0; filtered beforehand, it is a query without results."""
    pytrec_eval = needed("pytrec_eval")
    theirs = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"map"}, judged_docs_only_flag=True)
    assert theirs.evaluate({"q": {"b": 1.0}}) == {"q": {"map": 0.0}}
    assert groupgt.evaluate({"q": [["a"]]}, {"q": []}, ["map.trec"], policy="trec").counts["missing"] == 1
    assert groupgt.evaluate({"q": [["a"]]}, {"q": []}, ["map.trec"])["map.trec"] == 0


def test_trec_eval_counts_queries_without_relevant_documents_as_0(tmp_path: Path) -> None:
    """As in its own `qrels.comment.test`, of which one of 31 topics has no relevant document: .2689, not .2779."""
    pytrec_eval = needed("pytrec_eval")
    qrels, run = judged(random.Random(13))
    for number in (1, 2, 3):
        qrels[f"q{number}"] = dict.fromkeys(qrels[f"q{number}"], 0)
    path = tmp_path / "qrels"
    rows = [f"{qid} 0 {name} {rel}\n" for qid, own in qrels.items() for name, rel in own.items()]
    path.write_text("# with a comment\n" + "".join(rows))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P.5", "recip_rank"}).evaluate(run)
    result = groupgt.evaluate(path, run, ["map.trec", "P_5", "recip_rank"], policy="trec")
    assert result.counts["evaluated"] == len(theirs)
    for name, metric in (("map", "map.trec"), ("P_5", "P_5"), ("recip_rank", "recip_rank")):
        assert result[metric] == pytest.approx(mean(row[name] for row in theirs.values()), abs=1e-9)
    left_out = groupgt.evaluate(path, run, ["map.trec"], policy={"preset": "trec", "undefined": "skip"})
    assert left_out["map.trec"] > result["map.trec"]


def test_ndeval_on_a_file_of_subtopics(tmp_path: Path) -> None:
    pyndeval = needed("pyndeval")
    rng = random.Random(11)
    rows, run = [], {}
    for number in range(60):
        docs = [f"d{each:02d}" for each in range(30)]
        for topic in "123":
            rows += [(str(number), topic, name, rng.choice((0, 1, 2))) for name in rng.sample(docs, 6)]
            rows.append((str(number), topic, f"e{topic}", 1))
        run[str(number)] = ranked(rng, [*docs, "e1", "e2"], 25)
    path = tmp_path / "diversity.qrels"
    path.write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))
    asked = {
        "alpha-nDCG@10": "alpha_ndcg@10",
        "ERR-IA@10": "err_ia@10",
        "strec@10": "recall.coverage@10",
        "NRBP": "nrbp",
    }
    qrels = [pyndeval.SubtopicQrel(*row) for row in rows]
    scored = [pyndeval.ScoredDoc(qid, name, score) for qid, own in run.items() for name, score in own.items()]
    theirs = pyndeval.ndeval(qrels, scored, measures=list(asked))
    result = groupgt.evaluate(path, run, list(asked.values()), truth_format="trec-subtopics")
    for name, metric in asked.items():
        for position, qid in enumerate(result.truth.qids):
            assert result.values[metric][position] == pytest.approx(theirs[qid][name], abs=1e-9), (qid, name)

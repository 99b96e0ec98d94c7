"""Options that do nothing alone are refused, and one that the data make idle is warned of."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from groupgt.cli.main import cli, main
from groupgt.cli.needs import NEEDS

# A command line that is right without the option, and the value of the option.
CALLS: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("check", "--threshold"): (["check", "t.jsonl"], ["0.3"]),
    ("check", "--write"): (["check", "t.jsonl"], ["near.csv"]),
    ("compare", "--digits"): (["compare", "t.jsonl", "a.jsonl", "b.jsonl", "-m", "mrr"], ["2"]),
    ("compare", "--against"): (["compare", "t.jsonl", "a.jsonl", "b.jsonl", "-m", "mrr"], ["a"]),
    ("depth", "--tokenizer"): (["depth", "t.jsonl", "a.jsonl"], ["whitespace"]),
    ("judge", "--blind"): (["judge", "t.jsonl", "--corpus", "c.jsonl", "--out", "o.jsonl"], []),
    ("run", "--allow-no-previous"): (["run", "e.yaml", "--dry-run"], []),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text('{"qid": "q", "query": "what?", "retrieval_gt": [["a"]]}\n')
    for name in "ab":
        Path(f"{name}.jsonl").write_text('{"qid": "q", "retrieved_ids": ["a"]}\n')
    Path("c.jsonl").write_text('{"doc_id": "a", "contents": "that"}\n')
    Path("e.yaml").write_text(
        "version: 1\ndatasets: {d: {ground_truth: t.jsonl}}\n"
        "systems: {s: {use: results, with: {path: a.jsonl}}}\nevaluate: {metrics: [mrr]}\n"
    )


@pytest.mark.parametrize("pair", NEEDS, ids=" ".join)
def test_an_option_without_what_it_needs(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    call, value = CALLS[pair]
    with pytest.raises(SystemExit, match="2"):
        main([*call, pair[1], *value])
    error = " ".join(capsys.readouterr().err.split())
    assert f"{pair[1]}: has no effect without {NEEDS[pair]}" in error
    assert not Path("near.csv").exists()


@pytest.mark.parametrize("pair", NEEDS, ids=" ".join)
def test_both_options_are_of_the_command(pair: tuple[str, str]) -> None:
    command = cli.get_command(click.Context(cli), pair[0])
    assert command is not None
    options = {text for param in command.params for text in param.opts}
    assert {pair[1], NEEDS[pair].partition(" ")[0]} <= options


def test_tool_spans_of_what_is_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", "t.jsonl", "a.jsonl", "-m", "mrr", "--tool-span", "search=hits.id"])
    shown = capsys.readouterr()
    assert "mrr" in shown.out
    assert "a.jsonl: tool spans have no effect, because these results are jsonl, not traces" in " ".join(
        shown.err.split()
    )


@pytest.mark.parametrize(
    ("source", "option", "value"),
    [
        ("a.jsonl", "--accept", "near.csv"),
        ("a.jsonl", "--shape", "flat"),
        ("a.jsonl", "--where", "type=x"),
        ("a.jsonl", "--limit", "1"),
        ("t.jsonl", "--truth", "t.jsonl"),
        ("t.jsonl", "--tool-span", "search=hits.id"),
    ],
)
def test_what_is_for_the_other_side_alone(
    source: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("near.csv").write_text("accept\n")
    other = "ground truth, but IN is a run" if source == "a.jsonl" else "runs, but IN is ground truth"
    with pytest.raises(SystemExit, match="2"):
        main(["convert", source, "out.jsonl", "--to", "jsonl", option, value])
    assert f"{option}: applies to {other}" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            ["plot", "depth", "t.jsonl", "a.jsonl", "-o", "f.json", "--alpha", "0.1"],
            "the depth figure does not include a test",
        ),
        (
            ["plot", "ecdf", "t.jsonl", "a.jsonl", "-o", "f.json", "--test", "t"],
            "the ecdf figure does not include a test",
        ),
        (
            ["rechunk", "t.jsonl", "--from", "o.csv", "--to", "n.csv", "--threshold", "0.3"],
            "the spans method does not use this option",
        ),
        (
            ["rechunk", "t.jsonl", "--from", "c.jsonl", "--to", "c.jsonl", "--min-overlap", "0.3"],
            "the contained method does not use this option",
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_an_option_that_what_was_chosen_does_not_use(
    call: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "on":
        Path(f"{name}.csv").write_text("chunk_id,doc_id,start,end\na,D,0,9\n")
    with pytest.raises(SystemExit, match="2"):
        main(call)
    assert f"{call[-2]}: {reason}" in " ".join(capsys.readouterr().err.split())
    assert not Path("f.json").exists()


@pytest.mark.parametrize("figure", ["means", "differences", "outcomes"])
def test_figures_of_comparisons_use_the_settings(figure: str) -> None:
    main(["plot", figure, "t.jsonl", "a.jsonl", "b.jsonl", "-m", "mrr", "-o", "f.json", "--alpha", "0.1"])
    assert Path("f.json").exists()


def test_what_other_tools_call_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--slice", "--slices", "--group-by"):
        with pytest.raises(SystemExit, match="2"):
            main(["compare", "t.jsonl", "a.jsonl", "b.jsonl", option, "topic"])
        assert "Did you mean --by?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "check t.jsonl --scores ascending",
        "check t.jsonl --parts",
        "check t.jsonl --run-format trec",
        "check t.jsonl --names tag",
        "check t.jsonl --tool-span search=id",
        "check t.jsonl --labeller text",
        "agree t.jsonl --annotator t.jsonl --scores ascending",
        "evaluate t.jsonl a.jsonl -m mrr --tokenizer whitespace",
        "compare t.jsonl a.jsonl b.jsonl -m mrr --tokenizer whitespace",
    ],
)
def test_an_option_for_what_is_not_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    option = next(word for word in words.split() if word.startswith("--") and word != "--annotator")
    assert f"{option}: applies to" in capsys.readouterr().err

"""Every command that reads data takes the same input options, and none of them is without effect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from groupgt.cli.inputs import Inputs, input_options
from groupgt.cli.main import COMMANDS, cli, main
from groupgt.cli.options import EVALUATION
from groupgt.cli.output import WRITTEN
from groupgt.engines.base import Labelled
from groupgt.engines.choice import Engine
from groupgt.engines.columns.carrier import ColumnCarrier
from groupgt.evaluation.options import DEFAULTS
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

TRUTH = {"--truth-format", "--where", "--limit", "--policy"}
RUNS = {"--run-format", "--parts", "--memory"}
LABELLER = {"--labeller", "--with", "--corpus", "--allow-code"}
METRICS = {"-m", "-k", "--convention", "--by"}
# A result folder in place of ground truth and runs.
FOLDER = {"--system"}
EVERYTHING = TRUTH | RUNS | LABELLER | METRICS | FOLDER | {"--tokenizer"}
# What each command takes, and why it takes no more.
TAKES = {
    "evaluate": EVERYTHING,
    "compare": EVERYTHING,
    "power": EVERYTHING,
    "plot": EVERYTHING,
    "correlate": EVERYTHING - {"--by", "--tokenizer"},
    "explain": EVERYTHING - {"--by"},  # one query has no slices
    "depth": EVERYTHING - {"-m", "-k", "--convention"},  # it has a metric of its own
    "misses": (TRUTH | RUNS | LABELLER | FOLDER) | {"-k"},  # so has this
    "identify": TRUTH | RUNS | LABELLER | {"-m"},  # it tries conventions and cutoffs itself
    "check": TRUTH | RUNS | LABELLER,  # nothing is measured
    "agree": TRUTH | RUNS | LABELLER,
    "rechunk": TRUTH,  # there are no results; chunks are named by --from and --to
    "outcomes": TRUTH | RUNS | LABELLER | {"-k"},
    "stages": (TRUTH | RUNS | LABELLER | {"--by"}) - {"--parts"},  # a stage is one file
    "convert": TRUTH | {"--parts"},  # --from says the format of results too; all of them are held
}


def options_of(command: str) -> set[str]:
    found = cli.get_command(None, command)  # type: ignore[arg-type]  # the context is not looked at
    assert found is not None
    return {option for parameter in found.params for option in parameter.opts if option in EVERYTHING}


@pytest.mark.parametrize("command", TAKES)
def test_input_options_of_each_command(command: str) -> None:
    assert options_of(command) == TAKES[command]


def test_no_other_command_reads_data() -> None:
    others = set(COMMANDS) - set(TAKES)
    assert {command for command in others if {"--truth-format", "--run-format"} & options_of(command)} == set()


def test_every_field_is_an_option_or_an_argument() -> None:
    @input_options(EVALUATION)
    def command(inputs: Inputs) -> None: ...

    own = {parameter.name for parameter in command.__click_params__}  # type: ignore[attr-defined]  # click keeps them there
    fields = set(Inputs.__dataclass_fields__)
    assert fields - own == {"takes_budgets", "takes_folder", "waiting", "given"}
    assert own - fields <= DEFAULTS.keys()


Q1 = {"qid": "q1", "query": "one?", "retrieval_gt": [["a#1", "b#1"], ["c#1"]], "type": "x"}
Q2 = {"qid": "q2", "query": "two?", "retrieval_gt": [["d#1"]], "type": "y"}
RANKING = "q1 Q0 a#1 1 4 t\nq1 Q0 a#2 2 3 t\nq1 Q0 c#1 3 2 t\nq2 Q0 d#2 1 2 t\nq2 Q0 d#1 2 1 t\n"
FIVE = ("RUN", "other.trec", "a=bm25.trec", "b=other.trec", "c=bm25.trec")
# The least that each command needs.
CALLS = {
    "evaluate": ["evaluate", "TRUTH", "RUN"],
    "compare": ["compare", "TRUTH", "RUN", "other.trec", "-m", "recall@2", "--resamples", "10"],
    "power": ["power", "TRUTH", "RUN", "other.trec", "-m", "recall@2"],
    "correlate": ["correlate", "TRUTH", "annotator.jsonl", *FIVE, "--resamples", "10", "--format", "json"],
    "plot": ["plot", "slices", "TRUTH", "RUN", "--by", "n_groups", "-o", "OUT.json"],
    "explain": ["explain", "TRUTH", "RUN", "--query", "q1"],
    "depth": ["depth", "TRUTH", "RUN"],
    "misses": ["misses", "TRUTH", "RUN", "-k", "1"],
    "identify": ["identify", "TRUTH", "RUN", ".5"],
    "outcomes": ["outcomes", "TRUTH", "RUN", "answers.csv", "-k", "1"],
    "stages": ["stages", "TRUTH", "RUN", "other.trec"],
    "check": ["check", "TRUTH", "RUN", "--exit-zero"],
    "agree": ["agree", "TRUTH", "RUN", "--annotator", "annotator.jsonl", "--format", "json"],
    "rechunk": ["rechunk", "TRUTH", "--from", "old.csv", "--to", "new.csv"],
    "convert": ["convert", "TRUTH", "OUT.jsonl", "--to", "jsonl"],
    "sample": ["sample", "TRUTH", "--size", "1", "--out", "OUT.jsonl"],
    "judge": ["judge", "TRUTH", "--export", "--out", "OUT.jsonl"],
    "run": ["run", "experiment.yaml"],
}
Call = Sequence[str]


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {name: f"the text of {name}" for name in ("a#1", "a#2", "b#1", "c#1", "d#1", "d#2")}
    places = [f"{name},D,{10 * place},{10 * place + 10}\n" for place, name in enumerate(texts)]
    files = {
        "qa.jsonl": jsonl(Q1, Q2),
        "blank.jsonl": jsonl(Q1, {**Q2, "retrieval_gt": [["d#1"], []]}),
        "annotator.jsonl": jsonl({**Q1, "retrieval_gt": [["a#1"]]}, Q2),
        "answers.csv": "qid,correct\nq1,1\nq2,0\n",
        "subtopics": "q1 1 a#1 1\nq1 2 c#1 1\nq2 1 d#1 1\n",
        "bm25.trec": RANKING,
        "other.trec": RANKING.replace("q1 Q0 a#1", "q1 Q0 d#2"),
        "corpus.jsonl": jsonl(*({"doc_id": name, "contents": text} for name, text in texts.items())),
        "old.csv": "chunk_id,doc_id,start,end\n" + "".join(places),
        "new.csv": "chunk_id,doc_id,start,end\nn1,D,0,35\nn2,D,35,60\n",
        "reviewed.csv": "accept,qid,group,alternative,candidate,candidate_text,check\n",
        "found.jsonl": jsonl(*({"doc_id": name, "contents": "one, two"} for name in texts)),
        "experiment.yaml": "version: 1\nname: e\ndatasets: {d: {corpus: found.jsonl, ground_truth: qa.jsonl}}\n"
        "systems: {a: bm25}\nevaluate: {metrics: [mrr], k: [2]}\noutput: {folder: results, formats: []}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "parts").mkdir()
    (tmp_path / "others").mkdir()
    for folder, file in (("parts", "bm25.trec"), ("others", "other.trec")):
        lines = files[file].splitlines(keepends=True)
        (tmp_path / folder / f"{folder}-1.trec").write_text("".join(lines[:2]), encoding="utf-8")
        (tmp_path / folder / f"{folder}-2.trec").write_text("".join(lines[2:]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def outcome(capsys: pytest.CaptureFixture[str], call: Call, **names: str) -> tuple[object, ...]:
    """What a call prints, writes and returns."""
    if call[0] == "power":
        pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    words = [names.get(word, {"TRUTH": "qa.jsonl", "RUN": "bm25.trec"}.get(word, word)) for word in call]
    for path in Path().glob("OUT.*"):
        path.unlink()
    status = 0
    try:
        main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return status, printed.out, printed.err, next((path.read_bytes() for path in Path().glob("OUT.*")), None)


def pairs(option: str) -> list[str]:
    return [command for command, options in TAKES.items() if option in options]


def differ(capsys: pytest.CaptureFixture[str], command: str, *option: str, base: Call = (), **names: str) -> None:
    """The option changes what comes out, and nothing goes wrong with it."""
    call = [*CALLS[command], *base]
    without, given = outcome(capsys, call, **names), outcome(capsys, [*call, *option], **names)
    assert given[0] == 0, given[2]
    assert without != given


@pytest.mark.parametrize("command", pairs("--truth-format"))
def test_truth_format(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "convert":  # where IN is results, TRUTH is an option
        call = ["convert", "bm25.trec", "OUT.jsonl", "--to", "jsonl", "--truth", "subtopics"]
        assert outcome(capsys, call) != outcome(capsys, [*call, "--truth-format", "trec-subtopics"])
        return
    # The format is that of both ground truths.
    both = {"annotator.jsonl": "subtopics"} if command == "correlate" else {}
    differ(capsys, command, "--truth-format", "trec-subtopics", TRUTH="subtopics", **both)


@pytest.mark.parametrize("command", pairs("--where"))
def test_where(command: str, data: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    if command == "explain":
        given = outcome(capsys, [*CALLS[command], "--where", "type=y"])
        assert given[0] == 2
        snapshot(str(given[2]))
        return
    differ(capsys, command, "--where", "type=y")


@pytest.mark.parametrize("command", pairs("--limit"))
def test_limit(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "explain":
        status, _, error, _ = outcome(capsys, ["explain", "TRUTH", "RUN", "--query", "q2", "--limit", "1"])
        assert (status, "'q2'" in error) == (2, True)
        return
    differ(capsys, command, "--limit", "1")


@pytest.mark.parametrize("command", pairs("--policy"))
def test_policy(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A check reports empty groups, and leaves them out unless they are declared unmeetable.
    choice = "unmeetable" if command == "check" else "drop"
    differ(capsys, command, "--policy", f"empty_groups={choice}", TRUTH="blank.jsonl")


@pytest.mark.parametrize("command", pairs("--run-format"))
def test_run_format(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    differ_in_error = outcome(capsys, [*CALLS[command], "--run-format", "csv"])
    assert differ_in_error[0] == 2
    assert outcome(capsys, [*CALLS[command], "--run-format", "trec"]) == outcome(capsys, CALLS[command])


@pytest.mark.parametrize("command", pairs("--parts"))
def test_parts(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "convert":
        call = ["convert", "parts", "OUT.jsonl", "--to", "jsonl"]
        assert outcome(capsys, call)[0] == 2
        assert outcome(capsys, [*call, "--parts"])[3] == outcome(capsys, ["convert", "bm25.trec", *call[2:]])[3]
        return
    named = {name: name.replace("bm25.trec", "parts").replace("other.trec", "others") for name in FIVE[1:]}
    differ(capsys, command, "--parts", RUN="parts", **named)


@pytest.mark.parametrize("command", ["explain", "agree"])
def test_one_run_is_one_run(command: str, data: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    status, _, error, _ = outcome(capsys, CALLS[command], RUN="parts")
    assert status == 2
    snapshot(str(error))


@pytest.mark.parametrize("command", pairs("--memory"))
def test_memory(command: str, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ceilings: list[int] = []
    label = ColumnCarrier.label

    def watched(own: ColumnCarrier, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        ceilings.append(engine.ceiling)
        return label(own, truth, labeller, policy, engine)

    monkeypatch.setattr(ColumnCarrier, "label", watched)
    plain = outcome(capsys, CALLS[command])
    assert ceilings == []
    assert outcome(capsys, [*CALLS[command], "--memory", "64GB"]) == plain
    assert set(ceilings) == {64 * 10**9}


@pytest.mark.parametrize("command", pairs("--labeller"))
def test_labeller(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    differ(capsys, command, "--labeller", "parents", "--with", "pattern=(.*)#.*")


@pytest.mark.parametrize("command", pairs("--with"))
def test_with(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    differ(capsys, command, "--with", "pattern=(.*)#.*", base=["--labeller", "parents"])


@pytest.mark.parametrize("command", pairs("--corpus"))
def test_corpus(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # By texts nothing can be said of results without them.
    differ(capsys, command, "--corpus", "corpus.jsonl", base=["--labeller", "text"])


@pytest.mark.parametrize("command", pairs("--allow-code"))
def test_allow_code(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "judge.py").write_text("def hits(pairs):\n    return [True] * len(pairs)\n", encoding="utf-8")
    texts = ["--corpus", "corpus.jsonl", "--with", "reference=corpus.jsonl"]
    code = ["--labeller", "code", "--with", "target=judge:hits", *texts]
    differ(capsys, command, "--allow-code", base=code)


@pytest.mark.parametrize("command", pairs("--tokenizer"))
def test_tokenizer(command: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = ["--unit", "tokens"] if command == "depth" else ["-m", "recall@4tokens"]
    differ(capsys, command, "--tokenizer", "whitespace", base=[*budget, "--corpus", "corpus.jsonl"])


MEASURES = [("-k", "3"), ("-m", "mrr"), ("--convention", "trec"), ("--by", "type")]


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for option in MEASURES for command in pairs(option[0])]
)
def test_what_is_measured(
    option: tuple[str, str], command: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if option[0] not in TAKES[command]:
        pytest.skip("not an option of it")
    differ(
        capsys,
        command,
        *option,
        base=["-m", "ndcg"] if option[0] in ("-k", "--convention") and command not in ("misses", "outcomes") else (),
    )


def files_named_in(command: str) -> list[tuple[str, str]]:
    """The command with each of its options that take a path, and with the argument for it."""
    found = cli.get_command(None, command)  # type: ignore[arg-type]  # the context is not looked at
    assert found is not None
    named = [(command, each.opts[-1]) for each in found.params if isinstance(each.type, click.Path) and each.nargs == 1]
    return [(command, option) for command, option in named if option.startswith("-") or option == "target"]


@pytest.mark.parametrize(("command", "option"), [pair for command in CALLS for pair in files_named_in(command)])
def test_no_command_overwrites_what_it_reads(
    command: str, option: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = CALLS[command][1 if command != "plot" else 2].replace("TRUTH", "qa.jsonl")
    before = Path(read).read_bytes()
    given = [option, read] if option.startswith("-") else []
    call = [read if word.startswith("OUT") else word for word in CALLS[command]]
    error = outcome(capsys, [*call, *given])[2]
    assert Path(read).read_bytes() == before, f"{option}: make it a `written_option`, so that inputs are safe from it"
    found = cli.get_command(None, command)  # type: ignore[arg-type]  # the context is not looked at
    assert found is not None
    parameter = next(each for each in found.params if option in each.opts)
    assert not isinstance(parameter.type, type(WRITTEN)) or "would overwrite" in str(error)


def test_where_chooses_no_results(data: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    call = ["convert", "bm25.trec", "OUT.jsonl", "--to", "jsonl", "--where", "type=x"]
    snapshot(str(outcome(capsys, call)[2]))


def test_ground_truth_is_not_in_parts(data: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    call = ["convert", "parts", "OUT.jsonl", "--to", "jsonl", "--parts", "--kind", "truth"]
    snapshot(str(outcome(capsys, call)[2]))


def test_a_cutoff_of_its_own_escapes_k_under_several_conventions(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["evaluate", "TRUTH", "RUN", "-m", "recall@all", "--convention", "autorag,trec", "--format", "csv"]
    assert outcome(capsys, [*call, "-k", "1"])[:2] == outcome(capsys, call)[:2]

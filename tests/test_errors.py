"""Errors and warnings as people read them."""

from __future__ import annotations

import unicodedata
import warnings

import pytest

import groupgt
from groupgt.errors import (
    Faults,
    GroupgtWarning,
    display,
    first_of,
    key_of_id,
    listed,
    printable,
    reason,
    warn,
)
from groupgt.runtime import ended


@pytest.mark.slow
def test_every_control_of_terminals_is_escaped() -> None:
    # Bidi_Control of Unicode, as PropList.txt lists it.
    turning = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    harmful, harmless = [], []
    for code, character in enumerate(map(chr, range(0x110000))):
        kind = unicodedata.category(character)
        is_harmful = (kind in ("Cc", "Cs", "Zl", "Zp") and character not in "\t\n") or code in turning
        (harmful if is_harmful else harmless).append(character)
    assert [hex(ord(character)) for character in harmful if printable(character) == character] == []
    assert printable("".join(harmless)) == "".join(harmless)


def test_escapes_are_read_back() -> None:
    text = "a\x1b[2J\x9b\u202eb\\x1b \ud800 ok"
    assert printable(text, as_json=True).encode().decode("unicode_escape").startswith("a\x1b[2J\x9b\u202eb")
    assert printable("nothing here\tor\nthere ✓ 日本語 עברית") == "nothing here\tor\nthere ✓ 日本語 עברית"


def test_faults_keep_what_was_there_and_show_what_is_safe() -> None:
    faults = Faults()
    faults.add("file\x1b[2J", "wrong")
    with pytest.raises(groupgt.DataError) as caught:
        faults.stop()
    assert caught.value.faults == ("file\x1b[2J: wrong",)
    assert str(caught.value) == "file\\x1b[2J: wrong"
    assert display("\x1b") == "'\\x1b'"


def test_a_warning_names_the_line_that_called() -> None:
    truth = {f"q{number}": [[f"d{number}"]] for number in range(12)}
    run = {qid: ["elsewhere"] for qid in truth}
    calls = [
        lambda: groupgt.evaluate(truth, run, ["mrr"]),
        lambda: groupgt.compare(truth, {"a": run, "b": run}, ["mrr"], resamples=1),
        lambda: groupgt.agree({"q": [["a"]]}, other_truth={"q": [["b"]]}),
        lambda: warn("here"),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {each.filename for each in caught} == {__file__}
        assert all(issubclass(each.category, GroupgtWarning) for each in caught)


def told(faults: Faults, kind: type[groupgt.GroupgtError] = groupgt.DataError) -> list[str]:
    with pytest.raises(kind) as caught:
        faults.stop(kind)
    return str(caught.value).splitlines()


def test_faults_that_differ_only_in_values_are_told_once() -> None:
    faults = Faults()
    for line in range(1, 8):
        faults.add(f"a:{line}", f"query 'q{line}': expected a number, found '{line}x'")
        if line == 2:
            faults.add("a:2", "expected 6 columns, found 5")
    assert told(faults) == [
        "a:1: query 'q1': expected a number, found '1x' (7 like this; also at a:2, a:3, …)",
        "a:2: expected 6 columns, found 5",
    ]
    assert len(told(faults, groupgt.ConfigError)) == 8  # of a file of one's own all are shown


def test_three_of_a_kind_are_told_one_by_one() -> None:
    faults = Faults()
    for line in (1, 2, 3):
        faults.add(f"a:{line}", f"found {line}")
        faults.add(f"a:{line}", f"found {line}")  # the same fault
    assert told(faults) == ["a:1: found 1", "a:2: found 2", "a:3: found 3"]


def test_many_kinds_are_ten_and_a_count() -> None:
    faults = Faults()
    for number in range(200):
        faults.add(f"a:{number}", "wrong " + "x" * number)
        faults.add(f"b:{number}", f"found '{number}'")
    lines = told(faults)
    assert lines[:2] == ["a:0: wrong ", "b:0: found '0' (200 like this; also at b:1, b:2, …)"]
    assert len(lines) == 11
    assert lines[-1] == "… and 191 more like these"


def test_faults_that_differ_in_where_objects_lie_are_one() -> None:
    for kind in (groupgt.ConfigError, groupgt.DataError):
        faults = Faults()
        for number in range(2000):
            faults.add("query 'q'", f"expected an id, found <object object at {hex(0x7F0000000000 + 16 * number)}>")
        with pytest.raises(kind) as caught:
            faults.stop(kind)
        assert caught.value.faults == ("query 'q': expected an id, found <object object at 0x…>",)
    faults.add("query 'q'", "the id 0xdeadbeef is given twice")
    assert "0xdeadbeef" in faults.texts[1]


def test_the_same_fault_in_many_lines_is_told_once() -> None:
    faults = Faults()
    for line in range(3, 20):
        faults.add(f"qa.jsonl:{line}", "expected a list, found 5")
    assert faults.texts == ["qa.jsonl:3: expected a list, found 5 (17 times; also at qa.jsonl:4, qa.jsonl:5, …)"]


def test_lists_in_messages() -> None:
    assert (listed(["a", "b", "c"]), listed(["a", "b"], "and")) == ("a, b or c", "a and b")
    assert first_of(["a", "b"], 2, " or ") == "a or b"
    assert first_of(["a", "b", "c", "d"], 2, " or ") == "a or b or 2 more"


def test_what_is_told_of_errors_of_others() -> None:
    assert reason(FileNotFoundError(2, "No such file or directory", "a.trec")) == "a.trec: No such file or directory"
    assert reason(KeyError("a")) is None
    assert ended(3) == "its process ended with exit status 3 before it had answered"


def test_an_id_under_another_key() -> None:
    hint = '; if document_id is the id, write {"id": …, "grade": …} in a group: [{"id": …}]'
    assert key_of_id({"document_id": "a", "label": 2}) == hint

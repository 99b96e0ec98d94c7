"""Errors and warnings as people read them."""

from __future__ import annotations

import unicodedata
import warnings

import pytest

import groupgt
from groupgt.errors import Faults, GroupgtWarning, display, printable, warn


def test_every_control_of_terminals_is_escaped() -> None:
    # Bidi_Control of Unicode, as PropList.txt lists it.
    turning = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    for code in range(0x110000):
        character = chr(code)
        kind = unicodedata.category(character)
        harmful = (kind in ("Cc", "Cs", "Zl", "Zp") and character not in "\t\n") or code in turning
        assert (printable(character) == character) is not harmful, hex(code)


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

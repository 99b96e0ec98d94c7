"""The page shows the digits that tables show: values reach it whole, and its scripts round them as Python does."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from typing import Any

import pytest

from groupgt.render.page import blocks
from groupgt.render.page.page import FOLDER, page_bytes
from groupgt.render.tables import fixed, signed, small
from tests.browser import found, running
from tests.render.samples import dataset, page
from tests.render.test_page import read, value

BASE = (FOLDER / "scripts" / "base.js").read_text(encoding="utf-8")
# A mean of this is 0.7646; six digits of it, 0.76455, are 0.7645 as a double.
TWICE = 0.76455026


def run_script(script: str) -> Any:
    """The value of an expression where the script of the page that writes numbers has run."""
    node = shutil.which("node")
    if node is not None:
        text = f"{BASE}\nconsole.log(JSON.stringify({script}));"
        done = subprocess.run([node, "-"], input=text, capture_output=True, text=True, encoding="utf-8", check=True)
        return json.loads(done.stdout)
    if found() is None:
        pytest.skip("neither Node.js nor a browser is here")
    with running() as browser:
        return browser.tab().run(f"(() => {{ {BASE}\nreturn {script}; }})()")


def numbers() -> list[float]:
    """Shares, sums of shares, doubles of any size, all ties of four digits in a range, and what lies beside them."""
    drawn = random.Random(24)
    some = [TWICE, 0.0, -0.0, 0.00005, 0.00015, 1e-9, -1e-9, 1e15 + 0.5]
    some += [(place / 64) * sign for place in range(513) for sign in (1, -1)]
    near = [tie + sign * 2.0**-50 for tie in some for sign in (1, -1)]
    shares = [drawn.randint(0, below) / below for below in range(1, 600)]
    halves = [(2 * drawn.randint(0, 10**5) + 1) / 20_000 for _ in range(3000)]
    patterns = (struct.unpack("<d", drawn.randbytes(8))[0] for _ in range(3000))
    return [*some, *near, *shares, *halves, *(each for each in patterns if abs(each) < 1e20)]


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 4])
def test_the_page_rounds_as_tables_do(digits: int) -> None:
    values = numbers()
    shown = run_script(f"{json.dumps(values)}.map((value) => [fixed(value, {digits}), signed(value, {digits})])")
    wrong = [
        (each, page_text, (fixed(each, digits), signed(each, digits)))
        for each, page_text in zip(values, shown, strict=True)
        if page_text != [fixed(each, digits), signed(each, digits)]
    ]
    assert wrong == []


def test_p_values_are_rounded_as_in_tables() -> None:
    values = [abs(each) for each in numbers()]
    shown = run_script(f"{json.dumps(values)}.map(small)")
    assert shown == list(map(small, values))


def test_values_reach_the_page_whole() -> None:
    """Means, intervals, differences, p-values, values of slices and of queries: the very doubles."""
    one = dataset()
    one["systems"][0]["means"][0] = TWICE
    one["systems"][0]["intervals"][0] = (TWICE / 3, TWICE)
    one["slices"] = [{"by": "type", "value": "a", "queries": 3, "means": [[TWICE], [None]]}]
    pairs, wins, ties, losses = 4, 2, 1, 1
    delta = (
        TWICE / 3,
        (TWICE / 7, TWICE),
        pairs,
        wins,
        ties,
        losses,
        TWICE / 9,
        "95% CI",
        "better",
        False,
        None,
        None,
    )
    one["contrasts"] = [[0, 1, 0, -1, *delta]]
    one["questions"]["values"][0][0][0] = TWICE / 11
    reader = read(page_bytes(page(one)))
    shown = value(reader, "page")["datasets"][0]
    assert shown["systems"][0]["means"][0] == TWICE
    assert shown["systems"][0]["intervals"][0] == [TWICE / 3, TWICE]
    assert shown["slices"][0]["means"] == [[TWICE], [None]]
    assert shown["contrasts"][0][4:6] == [TWICE / 3, [TWICE / 7, TWICE]]
    assert shown["contrasts"][0][10] == TWICE / 9
    assert value(reader, "values-0-0")[0][0] == TWICE / 11
    text = page_bytes(page(one)).decode()
    assert f"<td class='number'>{fixed(TWICE)}</td>" in text
    assert fixed(TWICE) == "0.7646"


def test_scores_are_rounded_once() -> None:
    """1.23456 has four digits 1.235, and two decimals of those would be 1.24."""
    assert blocks.score_texts([12.345678, 1.23456]) == ["12.35", "1.23"]
    assert blocks.score_texts([9.99996, 1.0]) == ["10.000", "1.000"]
    assert blocks.score_texts([-0.0, 1e20]) == ["-0", "1e+20"]
    assert blocks.score_texts([]) == []

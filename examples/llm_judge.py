"""A function for the `code` labeller, which decides whether a result says the same as an alternative.

Replace `ask` with a call to your language model. This fake counts words, so the example runs without a model. If the
function raises an exception, the run ends. A failed call to the model therefore never counts as a non-relevant result.
groupgt stores each verdict with the text of its pair, and asks only about new pairs.
"""

import re
from collections.abc import Sequence

from groupgt.labellers.code import Pair

PROMPT = """Question: {query}
A passage that answers it, or a part of it: {wanted}
Another passage: {said}
Does the other passage give the same answer? Reply yes or no."""


def judge(pairs: Sequence[Pair]) -> list[bool]:
    """Return one verdict per pair, in order. Any reply other than yes or no is an error."""
    prompts = [PROMPT.format(query=pair.query, wanted=pair.alternative_text, said=pair.result_text) for pair in pairs]
    replies = [reply.strip().lower() for reply in ask(prompts)]
    strange = [reply for reply in replies if reply not in ("yes", "no")]
    if strange:
        raise ValueError(f"expected yes or no, found {strange[0]!r}")
    return [reply == "yes" for reply in replies]


def ask(prompts: Sequence[str]) -> list[str]:
    """Return the model's replies. This fake says yes if a passage has at least half of the other passage's words."""
    replies = []
    for prompt in prompts:
        wanted = prompt.partition("part of it: ")[2].rpartition("\nAnother passage: ")[0]
        said = prompt.rpartition("\nAnother passage: ")[2].rpartition("\nDoes the")[0]
        words, others = (set(re.findall(r"\w+", text.lower())) for text in (wanted, said))
        replies.append("yes" if 2 * len(words & others) >= len(words) else "no")
    return replies


if __name__ == "__main__":
    asked = Pair("q1", "How long is the leave?", "a1", "Leave is thirty days", "c7", "You have thirty days of leave.")
    print(judge([asked]))

"""A judge for the labeller `code`: says of each result whether it gives what an alternative gives.

`ask` stands where the call of a language model belongs; here it is a fake that counts words, so that this runs as it
is. What a judge raises ends the run: a model that cannot be reached is never a result that was not relevant. Verdicts
are kept under the texts, so that only new pairs are asked.
"""

import re
from collections.abc import Sequence

from groupgt.labellers.code import Pair

PROMPT = """Question: {query}
What answers it, or a part of it: {wanted}
A passage: {said}
Does the passage say what answers the question? Reply yes or no."""


def judge(pairs: Sequence[Pair]) -> list[bool]:
    """One verdict a pair, in their order; anything but yes or no is an error."""
    prompts = [PROMPT.format(query=pair.query, wanted=pair.alternative_text, said=pair.result_text) for pair in pairs]
    replies = [reply.strip().lower() for reply in ask(prompts)]
    strange = [reply for reply in replies if reply not in ("yes", "no")]
    if strange:
        raise ValueError(f"expected yes or no, found {strange[0]!r}")
    return [reply == "yes" for reply in replies]


def ask(prompts: Sequence[str]) -> list[str]:
    """The model's replies. This one says yes where the passage has half of the words of what answers."""
    replies = []
    for prompt in prompts:
        wanted = prompt.partition("part of it: ")[2].rpartition("\nA passage: ")[0]
        said = prompt.rpartition("\nA passage: ")[2].rpartition("\nDoes the")[0]
        words, others = (set(re.findall(r"\w+", text.lower())) for text in (wanted, said))
        replies.append("yes" if 2 * len(words & others) >= len(words) else "no")
    return replies


if __name__ == "__main__":
    asked = Pair("q1", "How long is the leave?", "a1", "Leave is thirty days", "c7", "You have thirty days of leave.")
    print(judge([asked]))

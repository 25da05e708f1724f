"""What is said in the checks."""

import re
from collections.abc import Iterator

SHORT = "Hello there, how can I help you?"
# Long enough to be interrupted: 6 s with the stub, which takes 20 ms a character. The first sentence alone is longer than
# what a whole text lets go at first, so that a client that asks for one sentence after another is interrupted in it.
LONG = (
    "The first train to the coast leaves at seven from platform nine and has a dining car and a quiet zone, you change in "
    "Basel, where you have almost twenty minutes, and then it follows the river for an hour. Do you want me to book a seat "
    "by the window? I can also look for a later train, if that suits you better."
)
# More than a server makes ahead of its listener, or of a file at once, so that an interruption finds something to stop,
# however late it comes. As long as OpenAI's clients may ask for.
VERY_LONG = " ".join([LONG] * 12)


def tokens(text: str) -> Iterator[str]:
    """A text in the pieces in which a language model writes it: each word with the blank before it."""
    yield from re.findall(r"\s*\S+", text)


def words(text: str) -> list[str]:
    """The words of a text, without what stands between them."""
    return re.findall(r"[a-z0-9']+", text.lower())

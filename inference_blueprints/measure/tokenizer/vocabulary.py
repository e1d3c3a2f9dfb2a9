"""Words that are one token each, for text of an exact token length.

A word is two syllables, such as ``bado``. The tokenizer of `model_directory` has every word as one token,
with and without the space before it, and falls back to bytes for any other text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

_FIRST_CONSONANTS = "bdfgklmnpr"
_SECOND_CONSONANTS = "bdmnstvz"
_VOWELS = "aeiou"


def syllables() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the syllables that begin a word and those that end one."""
    beginnings = tuple(consonant + vowel for consonant in _FIRST_CONSONANTS for vowel in _VOWELS)
    endings = tuple(consonant + vowel for consonant in _SECOND_CONSONANTS for vowel in _VOWELS)
    return beginnings, endings


@cache
def one_token_words() -> Sequence[str]:
    """Return every word that is one token, always in the same order."""
    beginnings, endings = syllables()
    return tuple(beginning + ending for beginning in beginnings for ending in endings)


def random_text(tokens: int, seed: int) -> str:
    """Write text of an exact length in tokens.

    Each word has a space before it, so texts can be joined and their lengths add up.

    tokens: Length of the text.
    seed: Chooses the words: equal seeds give equal text, and a longer text begins with the shorter one.
    Returns: The text. Empty for no tokens.
    """
    chosen = random.Random(seed).choices(one_token_words(), k=tokens)  # noqa: S311 - no secret is made
    return "".join(f" {word}" for word in chosen)

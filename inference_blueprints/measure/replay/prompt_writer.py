"""Writes replayed prompts with an exact number of tokens. Parts that were equal in the trace are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

from inference_blueprints.measure.replay.scaled_trace import PrefixBlock, ScaledRequest

#: Returns text with a number of tokens. Equal seeds give equal text; a shorter text is a prefix of a longer.
RandomText = Callable[[int, int], str]
_BLOCKS_KEPT = 4096
_SEED_BYTES = 8


class PromptWriter:
    """Writes prompts from prefix blocks.

    random_text: Returns one-token words, each with a space before it, as
        ``inference_blueprints.measure.tokenizer.random_text`` does.
    seed: Replays with different seeds share no text, so that none hits the cache of another.
    """

    def __init__(self, random_text: RandomText, seed: int) -> None:
        self._seed = seed
        self._random_text = lru_cache(maxsize=_BLOCKS_KEPT)(random_text)

    def prompt(self, request: ScaledRequest) -> str:
        """Return the request's text, without the chat template.

        request: The request, with its blocks.
        Returns: One one-token word per token of the blocks.
        """
        return "".join(self._block(block) for block in request.blocks)

    def _block(self, block: PrefixBlock) -> str:
        """Return the text of one block."""
        return self._random_text(block.tokens, block_seed(self._seed, block.identity))


def block_seed(seed: int, identity: int) -> int:
    """Return the seed of a block's text: a digest, because `random.Random` starts alike for some seeds."""
    name = f"{seed}:{identity}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=_SEED_BYTES).digest(), "big")

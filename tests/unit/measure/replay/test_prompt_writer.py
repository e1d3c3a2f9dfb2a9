"""Prompts of exact length from the words that the local tokenizer knows."""

from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import COMMON_PREFIX, PrefixBlock, ScaledRequest
from inference_blueprints.measure.tokenizer import random_text


def request(*blocks: PrefixBlock) -> ScaledRequest:
    return ScaledRequest(0.0, sum(block.tokens for block in blocks), 1, blocks)


def prompt(*blocks: PrefixBlock, seed: int = 3) -> list[str]:
    return PromptWriter(random_text, seed).prompt(request(*blocks)).split()


def test_a_prompt_has_a_word_a_token() -> None:
    assert len(prompt(PrefixBlock(COMMON_PREFIX, 5), PrefixBlock(1, 100), PrefixBlock(2, 17))) == 122


def test_equal_blocks_are_equal_text_and_a_shorter_one_is_the_start() -> None:
    long = prompt(PrefixBlock(1, 100), PrefixBlock(2, 50))
    short = prompt(PrefixBlock(1, 100), PrefixBlock(2, 20))
    assert long[:120] == short


def test_other_blocks_and_other_seeds_are_other_text() -> None:
    texts = {
        tuple(prompt(PrefixBlock(identity, 50), seed=seed))
        for identity in (COMMON_PREFIX, 0, 1, 2)
        for seed in (0, 1, 2)
    }
    assert len(texts) == 12

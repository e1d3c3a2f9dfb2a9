"""Models with weights that fix the next token by the last one: a real engine then writes a known text.

Attention and feed-forward layers add nothing, so the last hidden state is the embedding of the last token: a
vector of random signs. The row of a token in the output matrix is the embedding of the token before it. The
product of a vector with itself is its length, that of two random ones is far smaller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_blueprints.measurement.tokenizer.vocabulary import one_token_words

#: A small shape that every family's chat format can have.
_SHAPE: Mapping[str, Any] = {"attention_heads": 4, "kv_heads": 2, "window": 0, "experts": 0, "vision": None}
_SEED = 13


def counted_words(count: int, first: int = 0) -> str:
    """Return what a counting model writes after a generation prompt, or after word ``first - 1``."""
    words = one_token_words()
    return "".join(f" {words[index % len(words)]}" for index in range(first, first + count))


def write_counting_model(
    name: str, directory: Path, *, architecture: str = "Qwen3ForCausalLM", tensor_parallel_size: int = 1
) -> Path:
    """Write a model that counts through the words of the tokenizer for ever, from the first one."""
    ids = _write(name, directory, architecture, tensor_parallel_size)
    words = [ids[f"Ġ{word}"] for word in one_token_words()]
    before = {after: token for token, after in zip(words, [*words[1:], words[0]], strict=True)}
    # A conversation starts at the first word, whose usual predecessor is the last one.
    started = {ids["Ċ"]: words[0]}
    _write_weights(directory, [*((token, after) for after, token in before.items()), *started.items()])
    return directory


def write_scripted_model(
    name: str,
    directory: Path,
    text: str,
    *,
    marks: Sequence[str] = (),
    architecture: str = "Qwen3ForCausalLM",
    tensor_parallel_size: int = 1,
) -> Path:
    """Write a model that answers every conversation with the same text.

    Parameters
    ----------
    name
        The model whose chat format it has.
    directory
        Folder for the files.
    text
        The answer. Every piece, a mark or a word, can be in it only once.
    marks
        Tokens of the family that are in the text.
    """
    ids = _write(name, directory, architecture, tensor_parallel_size)
    pieces = _pieces(text, marks)
    repeated = {piece for piece in pieces if pieces.count(piece) > 1}
    assert not repeated, f"every piece of a script is one token with one successor, got twice: {repeated}"
    known = _with_pieces(directory, ids, [piece for piece in pieces if piece not in ids])
    config = json.loads((directory / "config.json").read_text("utf-8"))
    chain = [known[piece] for piece in pieces] + [config["eos_token_id"][0]]
    first = [(token, chain[0]) for token in _prompt_ends(known)]
    _write_weights(directory, [*first, *zip(chain, chain[1:], strict=False)])
    return directory

"""Models with weights that fix the next token by the last one: a real engine then writes a known text.

Attention and feed-forward layers add nothing, so the last hidden state is the embedding of the last token: a
vector of random signs. The row of a token in the output matrix is the embedding of the token before it. The
product of a vector with itself is its length, that of two random ones is far smaller.

Where a grammar forbids the next token, nothing else is fixed. The end is then the most likely, and white
space the least: most grammars allow any number of it, and an answer would consist of it. A scripted model
prefers each mark of its family's format to the letters that spell it, as a trained model does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from jinja2.sandbox import ImmutableSandboxedEnvironment

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import one_token_words, vocabulary
from inference_local.serving.vllm_cpu.scaled_models import write_scaled_model
from inference_local.serving.vllm_cpu.scaled_models.tables import chat_format

Tensor: TypeAlias = npt.NDArray[np.float32]

#: A small shape that every family's chat format can have.
_SHAPE: Mapping[str, Any] = {"attention_heads": 4, "kv_heads": 2, "window": 0, "experts": 0, "vision": None}
_SEED = 13
#: Half of the product of a vector with itself: above or below all that is not fixed.
_PREFERENCE = 64
#: Above or below all that is not fixed, but not above the end.
_MARK_PREFERENCE = 32


def counted_words(count: int, first: int = 0) -> str:
    """Return what a counting model writes after a generation prompt, or after word ``first - 1``."""
    words = one_token_words()
    return "".join(f" {words[index % len(words)]}" for index in range(first, first + count))


def write_counting_model(name: str, directory: Path, *, architecture: str = "Qwen3ForCausalLM") -> Path:
    """Write a model that counts through the words of the tokenizer for ever.

    A conversation starts at the first word. A prompt that ends with a word goes on after it.
    """
    ids = _write(name, directory, architecture)
    words = [ids[f"Ġ{word}"] for word in one_token_words()]
    _write_weights(directory, [*pairwise([*words, words[0]]), (_prompt_end(directory), words[0])])
    return directory


def write_scripted_model(
    name: str,
    directory: Path,
    text: str,
    *,
    architecture: str = "Qwen3ForCausalLM",
    spells_marks: bool = False,
) -> Path:
    """Write a model that answers every conversation with the same text, and then ends.

    name: The model whose chat format it has.
    directory: Folder for the files.
    text: The answer. Each of its words and marks can be in it only once: it is one token with one successor.
    spells_marks: Whether it writes the marks that a grammar demands letter by letter.
    """
    ids = _write(name, directory, architecture)
    chat = chat_format(catalog.model(name))
    pieces = _pieces(text, (*chat.special_tokens, *chat.plain_tokens))
    repeated = {piece for piece in pieces if pieces.count(piece) > 1}
    assert not repeated, f"a script can have each piece only once, got more of {repeated}"
    known = ids | _add_tokens(directory, [piece for piece in pieces if piece not in ids])
    answer = [known[piece] for piece in pieces]
    if pieces[-1] not in chat.end_tokens:
        answer.append(known[chat.end_tokens[0]])
    preference = -_MARK_PREFERENCE if spells_marks else _MARK_PREFERENCE
    marks = {known[mark]: preference for mark in chat.plain_tokens}
    _write_weights(directory, pairwise([_prompt_end(directory), *answer]), marks)
    return directory


def _write(name: str, directory: Path, architecture: str) -> dict[str, int]:
    """Write a directory without weights, and return id by token."""
    model = replace(catalog.model(name), architecture=architecture, **_SHAPE)
    write_scaled_model(model, directory, tensor_parallel_size=1)
    return vocabulary(chat_format(model))


def _pieces(text: str, marks: Sequence[str]) -> list[str]:
    """Split a text at its marks and after each word."""
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", text)
    return [
        piece for part in parts for piece in ([part] if part in marks else re.findall(r"\s*\S+\s*|\s+", part))
    ]


def _add_tokens(directory: Path, pieces: Sequence[str]) -> dict[str, int]:
    """Add pieces of text to the tokenizer, and return their ids."""
    tokenizer = _read(directory / "tokenizer.json")
    config = _read(directory / "config.json")
    added = {piece: config["vocab_size"] + index for index, piece in enumerate(pieces)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    tokenizer["added_tokens"] += [{"id": token, "content": piece, **flags} for piece, token in added.items()]
    config["vocab_size"] += len(added)
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return added


def _prompt_end(directory: Path) -> int:
    """Return the last token of a conversation that waits for an answer."""
    template = _read(directory / "tokenizer_config.json")["chat_template"]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    messages = [{"role": "user", "content": "A"}]
    prompt = environment.from_string(template).render(messages=messages, add_generation_prompt=True)
    tokenizer = _read(directory / "tokenizer.json")
    ends = [mark for mark in tokenizer["added_tokens"] if prompt.endswith(mark["content"])]
    if ends:
        return int(max(ends, key=lambda mark: len(mark["content"]))["id"])
    return int(tokenizer["model"]["vocab"][prompt[-1].replace("\n", "Ċ")])


def _write_weights(
    directory: Path, successors: Iterable[tuple[int, int]], preferences: Mapping[int, int] | None = None
) -> None:
    """Write weights with which the second token of each pair follows the first.

    preferences: By token, how much more likely it is than others where the successor is forbidden.
    """
    config = _read(directory / "config.json")
    size, count = config["hidden_size"], config["vocab_size"]
    embeddings = np.random.default_rng(_SEED).choice(np.array([-1, 1], dtype=np.float32), (count, size))
    embeddings[:, 0] = 1
    output = np.zeros((count, size), dtype=np.float32)
    output[_white_space(directory), 0] = -_PREFERENCE
    for token, preference in (preferences or {}).items():
        output[token, 0] = preference
    output[config["eos_token_id"], 0] = _PREFERENCE
    for token, after in successors:
        output[after] += embeddings[token]
    tensors = {
        "model.embed_tokens.weight": embeddings,
        "lm_head.weight": output,
        "model.norm.weight": np.ones(size, dtype=np.float32),
    }
    for layer in range(config["num_hidden_layers"]):
        tensors |= {f"model.layers.{layer}.{name}.weight": each for name, each in _layer(config).items()}
    _write_safetensors(directory / "model.safetensors", tensors)


def _white_space(directory: Path) -> list[int]:
    """Return the tokens of nothing but white space, in the letters that stand for its bytes."""
    vocabulary_ids: Mapping[str, int] = _read(directory / "tokenizer.json")["model"]["vocab"]
    return [index for token, index in vocabulary_ids.items() if set(token) <= set("ĠĊĉč")]


def _layer(config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights of a layer that adds nothing."""
    size, head, width = config["hidden_size"], config["head_dim"], config["intermediate_size"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    zeros = {
        "self_attn.q_proj": (queries, size),
        "self_attn.k_proj": (keys, size),
        "self_attn.v_proj": (keys, size),
        "self_attn.o_proj": (size, queries),
        "mlp.gate_proj": (width, size),
        "mlp.up_proj": (width, size),
        "mlp.down_proj": (size, width),
    }
    norms = {"input_layernorm": size, "post_attention_layernorm": size}
    if config["model_type"] == "qwen3":
        norms |= {"self_attn.q_norm": head, "self_attn.k_norm": head}
    return {name: np.zeros(shape, dtype=np.float32) for name, shape in zeros.items()} | {
        name: np.ones(length, dtype=np.float32) for name, length in norms.items()
    }


def _write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the format of github.com/huggingface/safetensors, README, "Format"."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))

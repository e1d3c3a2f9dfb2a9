"""Writes a tiny model with random weights as GGUF: a program of its own, with llama.cpp's package.

    python write_gguf.py FOLDER_OF_LLAMA_CPP TARGET.gguf SETTINGS

SETTINGS is JSON: ``architecture``, ``name``, ``template``, ``context``, ``layers``, ``hidden``, ``heads``,
``kv_heads``, ``feed_forward``, ``seed``, ``added_tokens`` and ``biases``.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_VOCABULARY = Path("models", "ggml-vocab-qwen2.gguf")
#: Metadata of the vocabulary's file that describe another model.
_KEPT = "tokenizer."
#: Names of the tokens that the vocabulary does not use.
_FREE = "[PAD"
_SPREAD = 0.5
#: Architectures whose output has the weights of the token embeddings.
_TIED = ("gemma",)


def main() -> None:
    """Copy the tokenizer, and add weights."""
    source, target, settings = Path(sys.argv[1]), *sys.argv[2:]
    sys.path.insert(0, str(source / "gguf-py"))
    gguf = importlib.import_module("gguf")
    values = json.loads(settings)
    reader = gguf.GGUFReader(str(source / _VOCABULARY))
    writer = gguf.GGUFWriter(target, values["architecture"])
    tokens = _copy_tokenizer(reader, writer, gguf, values["added_tokens"])
    size = len(tokens)
    writer.add_name(values["name"])
    writer.add_chat_template(values["template"])
    writer.add_context_length(values["context"])
    writer.add_block_count(values["layers"])
    writer.add_embedding_length(values["hidden"])
    writer.add_feed_forward_length(values["feed_forward"])
    writer.add_head_count(values["heads"])
    writer.add_head_count_kv(values["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_vocab_size(size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, tensor in _tensors(values, size):
        writer.add_tensor(name, tensor)
    if values["biases"]:
        writer.add_tensor("output.bias", _biases(tokens, values["biases"]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _copy_tokenizer(reader: Any, writer: Any, gguf: Any, added: dict[str, int]) -> list[str]:
    """Copy the fields of the tokenizer with tokens in place of unused ones, and return all tokens."""
    keys = gguf.Keys.Tokenizer
    fields = {name: field for name, field in reader.fields.items() if name.startswith(_KEPT)}
    tokens, kinds = fields[keys.LIST].contents(), fields[keys.TOKEN_TYPE].contents()
    for token, number in added.items():
        if not tokens[number].startswith(_FREE):
            raise ValueError(f"token {number} is {tokens[number]}, and the vocabulary needs it")
        tokens[number], kinds[number] = token, gguf.TokenType.USER_DEFINED
    changed = {keys.LIST: tokens, keys.TOKEN_TYPE: kinds}
    for name, field in fields.items():
        if name == keys.CHAT_TEMPLATE:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, changed.get(name) or field.contents(), kind, sub_type=inner)
    return list(tokens)


def _biases(tokens: list[str], biases: dict[str, float]) -> np.ndarray[Any, Any]:
    """Return what is added to the score of each token."""
    added = np.zeros(len(tokens), np.float32)
    for token, bias in biases.items():
        added[tokens.index(token)] = bias
    return added


def _tensors(values: dict[str, Any], size: int) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Return random weights, by the names of llama.cpp. The same seed gives the same weights."""
    generator = np.random.default_rng(values["seed"])
    hidden, wide = values["hidden"], values["feed_forward"]
    narrow = hidden // values["heads"] * values["kv_heads"]

    def matrix(rows: int, columns: int) -> np.ndarray[Any, Any]:
        return generator.normal(0.0, _SPREAD / columns**0.5, (rows, columns)).astype(np.float16)

    def vector(length: int, value: float) -> np.ndarray[Any, Any]:
        return np.full(length, value, np.float32)

    tensors = [
        ("token_embd.weight", generator.normal(0.0, 1.0, (size, hidden)).astype(np.float16)),
        ("output_norm.weight", vector(hidden, 1.0)),
    ]
    if values["architecture"] not in _TIED:
        tensors.append(("output.weight", matrix(size, hidden)))
    for layer in range(values["layers"]):
        block = f"blk.{layer}."
        tensors += [
            (f"{block}attn_norm.weight", vector(hidden, 1.0)),
            (f"{block}attn_q.weight", matrix(hidden, hidden)),
            (f"{block}attn_k.weight", matrix(narrow, hidden)),
            (f"{block}attn_v.weight", matrix(narrow, hidden)),
            (f"{block}attn_output.weight", matrix(hidden, hidden)),
            (f"{block}ffn_norm.weight", vector(hidden, 1.0)),
            (f"{block}ffn_gate.weight", matrix(wide, hidden)),
            (f"{block}ffn_up.weight", matrix(wide, hidden)),
            (f"{block}ffn_down.weight", matrix(hidden, wide)),
        ]
        if values["architecture"] == "qwen3":
            tensors += [
                (f"{block}{name}_norm.weight", vector(hidden // values["heads"], 1.0))
                for name in ("attn_q", "attn_k")
            ]
        if values["architecture"] == "qwen2":
            sizes = {"attn_q": hidden, "attn_k": narrow, "attn_v": narrow}
            tensors += [(f"{block}{name}.bias", vector(length, 0.0)) for name, length in sizes.items()]
    return tensors


if __name__ == "__main__":
    main()

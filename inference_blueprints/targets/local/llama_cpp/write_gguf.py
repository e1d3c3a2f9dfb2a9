"""Writes a tiny model with random weights as GGUF: a program of its own, with llama.cpp's package.

    python write_gguf.py FOLDER_OF_GGUF_PY VOCABULARY.gguf TARGET.gguf SETTINGS

SETTINGS is JSON: ``architecture``, ``name``, ``template``, ``context``, ``layers``, ``hidden``, ``heads``,
``kv_heads``, ``feed_forward`` and ``seed``.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np

#: Metadata of the vocabulary's file that describe another model.
_KEPT = "tokenizer."
_SPREAD = 0.5


def main() -> None:
    """Copy the tokenizer, and add weights."""
    package, vocabulary, target, settings = sys.argv[1:]
    sys.path.insert(0, package)
    gguf = importlib.import_module("gguf")
    values = json.loads(settings)
    reader = gguf.GGUFReader(vocabulary)
    writer = gguf.GGUFWriter(target, values["architecture"])
    size = _copy_tokenizer(reader, writer, gguf)
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _copy_tokenizer(reader: Any, writer: Any, gguf: Any) -> int:
    """Copy the fields of the tokenizer, and return the number of tokens."""
    for field in reader.fields.values():
        if not field.name.startswith(_KEPT) or field.name == gguf.Keys.Tokenizer.CHAT_TEMPLATE:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    return len(reader.fields[gguf.Keys.Tokenizer.LIST].data)


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
        ("output.weight", matrix(size, hidden)),
    ]
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
        if values["architecture"] == "qwen2":
            sizes = {"attn_q": hidden, "attn_k": narrow, "attn_v": narrow}
            tensors += [(f"{block}{name}.bias", vector(length, 0.0)) for name, length in sizes.items()]
    return tensors


if __name__ == "__main__":
    main()

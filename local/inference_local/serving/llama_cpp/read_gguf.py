"""Reads what a file of GGUF says about itself: a program of its own, with llama.cpp's package.

    python read_gguf.py FOLDER_OF_LLAMA_CPP FILE

It prints JSON: ``problem`` if the file cannot be read, else ``architecture``, ``type``, ``parts``,
``context``, ``heads`` and ``causal``. What the file does not state is null.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

#: Before the name of a type, in llama.cpp's list of them.
_PREFIXES = ("MOSTLY_", "ALL_")


def main() -> None:
    """Print what the file states."""
    sys.path.insert(0, str(Path(sys.argv[1]) / "gguf-py"))
    print(json.dumps(facts(importlib.import_module("gguf"), sys.argv[2])))


def facts(gguf: Any, file: str) -> dict[str, Any]:
    """Return what a file states.

    gguf: llama.cpp's package.
    file: Its path.
    """
    try:
        reader = gguf.GGUFReader(file)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
        # What the package raises for other files and for those that end too early.
        return {"problem": str(error) or type(error).__name__}
    keys = gguf.Keys

    def value(key: str) -> Any:
        field = reader.get_field(key)
        return None if field is None else field.contents()

    architecture = value(keys.General.ARCHITECTURE)
    number = value(keys.General.FILE_TYPE)
    heads = value(keys.Attention.HEAD_COUNT.format(arch=architecture))
    return {
        "architecture": architecture,
        "type": None if number is None else _type(gguf, number),
        "parts": value(keys.Split.LLM_KV_SPLIT_COUNT),
        "context": value(keys.LLM.CONTEXT_LENGTH.format(arch=architecture)),
        "heads": max(heads) if isinstance(heads, list) else heads,
        "causal": value(keys.Attention.CAUSAL.format(arch=architecture)),
    }


def _type(gguf: Any, number: int) -> str:
    names: dict[int, str] = {int(each): each.name for each in gguf.LlamaFileType}
    name = names.get(number, f"number {number}")
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


if __name__ == "__main__":
    main()

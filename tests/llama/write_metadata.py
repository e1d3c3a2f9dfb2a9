"""Writes a file of GGUF with metadata and one small tensor: a program of its own, with llama.cpp's package.

python write_metadata.py FOLDER_OF_LLAMA_CPP TARGET.gguf ARCHITECTURE VALUES

VALUES is JSON: whole numbers and truth values by key.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np


def main() -> None:
    source, target, architecture, values = sys.argv[1:]
    sys.path.insert(0, str(Path(source) / "gguf-py"))
    gguf = importlib.import_module("gguf")
    writer = gguf.GGUFWriter(target, architecture)
    for key, value in json.loads(values).items():
        (writer.add_bool if isinstance(value, bool) else writer.add_uint32)(key, value)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()

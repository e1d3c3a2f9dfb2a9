"""Weights as one file of GGUF."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from inference_blueprints.spec import formats
from inference_blueprints.spec.types.section import Section

GgufType = Literal[
    "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0", "F16", "BF16"
]
GgufFile = Annotated[str, StringConstraints(pattern=formats.GGUF_FILE, max_length=255)]


class Gguf(Section):
    """One file of the repository, in the format of llama.cpp. Requires `catalog`."""

    file: GgufFile
    """Path of the file in the repository, such as `Qwen3-4B-Q4_K_M.gguf`."""
    type: GgufType
    """Type of its weights, from which their size is computed. It is a part of the file's usual name."""

<<<<<<< HEAD
"""Placeholder until the scaled models are merged."""

import shutil
from pathlib import Path
from typing import Any


def write_scaled_model(model: Any, directory: Path, *, tensor_parallel_size: int) -> Path:  # noqa: ARG001
    shutil.copytree("/tmp/vllm/model", directory)  # noqa: S108
    text = (directory / "config.json").read_text().replace("2048", "131072", 1)
    (directory / "config.json").write_text(text)
    return directory


def refusal(model: Any) -> str | None:  # noqa: ARG001
    return None
=======
"""Scaled-down models with random weights, one shape for each architecture of the catalogue."""
>>>>>>> 06e601c (Scaled-down models for real vLLM on a CPU: Qwen3 and Llama, with the family's marks in the tokenizer)

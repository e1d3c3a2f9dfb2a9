"""Names of the engines that a local run offers."""

from enum import StrEnum


class EngineName(StrEnum):
    """Engines of a local run: ``simulated``, or real on this machine's processors: ``vllm``, ``llama``."""

    SIMULATED = "simulated"
    VLLM = "vllm"
    LLAMA = "llama"

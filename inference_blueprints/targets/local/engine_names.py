"""Names of the engines that a local run offers."""

from enum import StrEnum


class EngineName(StrEnum):
    """Engines of a local run: ``simulated``, or real ``vllm`` on the processors of this machine."""

    SIMULATED = "simulated"
    VLLM = "vllm"

"""What a frontend needs for the requests that pass through it."""

from __future__ import annotations

from dataclasses import dataclass

from inference_contracts.units import MILLISECONDS_PER_SECOND, THOUSAND


@dataclass(frozen=True, slots=True)
class FrontendLoad:
    """Measured processor time and memory of a frontend.

    Parameters
    ----------
    name
        The blueprint's key of the stack, such as ``dynamo``.
    milliseconds_per_request, milliseconds_per_thousand_prompt_tokens, milliseconds_per_thousand_answer_tokens
        Processor time for the fixed part of a request, and for tokens of prompt and streamed answer.
    memory_mib
        Memory of a process with one large vocabulary, in MiB.
    largest_cpu
        vCPUs above which another frontend is better than a larger one.
    memory_mib_per_cpu
        Memory for each vCPU, in MiB.
    machine, date, source
        Where and when the figures were measured, and with what.
    """

    name: str
    milliseconds_per_request: float
    milliseconds_per_thousand_prompt_tokens: float
    milliseconds_per_thousand_answer_tokens: float
    memory_mib: int
    largest_cpu: int
    memory_mib_per_cpu: int
    machine: str
    date: str
    source: str

    def processor_seconds(self, prompt_tokens: float, answer_tokens: float) -> float:
        """Return the processor time of one request, in seconds."""
        prompt = self.milliseconds_per_thousand_prompt_tokens * prompt_tokens / THOUSAND
        answer = self.milliseconds_per_thousand_answer_tokens * answer_tokens / THOUSAND
        return (self.milliseconds_per_request + prompt + answer) / MILLISECONDS_PER_SECOND

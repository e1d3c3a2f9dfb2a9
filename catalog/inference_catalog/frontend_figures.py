"""What a frontend needs for the requests that pass through it."""

from __future__ import annotations

from dataclasses import dataclass

from inference_contracts.units import MILLISECONDS_PER_SECOND, THOUSAND


@dataclass(frozen=True, slots=True)
class FrontendLoad:
    """Measured processor time and memory of a frontend."""

    name: str
    """The blueprint's key of the stack, such as ``dynamo``."""
    milliseconds_per_request: float
    milliseconds_per_thousand_prompt_tokens: float
    milliseconds_per_thousand_answer_tokens: float
    """`milliseconds_per_request`, `milliseconds_per_thousand_prompt_tokens`,
    `milliseconds_per_thousand_answer_tokens`: Processor time for the fixed part of a request, and for tokens
    of prompt and streamed answer."""
    memory_mib: int
    """Memory of a process with one large vocabulary, in MiB."""
    largest_cpu: int
    """vCPUs above which another frontend is better than a larger one."""
    memory_mib_per_cpu: int
    """Memory for each vCPU, in MiB."""
    machine: str
    date: str
    source: str
    """`machine`, `date`, `source`: Where and when the figures were measured, and with what."""

    def processor_seconds(self, prompt_tokens: float, answer_tokens: float) -> float:
        """Return the processor time of one request, in seconds."""
        prompt = self.milliseconds_per_thousand_prompt_tokens * prompt_tokens / THOUSAND
        answer = self.milliseconds_per_thousand_answer_tokens * answer_tokens / THOUSAND
        return (self.milliseconds_per_request + prompt + answer) / MILLISECONDS_PER_SECOND

"""The result of a replay."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from inference_blueprints.measure.completions.request_outcome import RequestOutcome
from inference_blueprints.measure.replay.recorded_trace import Trace
from inference_blueprints.measure.replay.scaled_trace import ScaledTrace
from inference_blueprints.spec.types import Workload


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A finished replay of one model."""

    model: str
    """Name under which the endpoint serves it."""
    trace: Trace
    """The recorded trace."""
    workload: Workload
    """The workload that it was scaled to."""
    scaled: ScaledTrace
    """The requests that were sent."""
    outcomes: tuple[RequestOutcome, ...]
    """One per request, in the order of sending."""
    template_tokens: int
    """Tokens that the chat template adds to a prompt, measured before the replay."""
    elapsed_seconds: float
    """Time from sending the first request to the end of the last."""
    client_cpu_share: float
    """Share of one processor that the client used. Above 0.8, the client adds to the latencies."""
    lateness_p99_ms: float
    """99th percentile of the delay between due time and sending, in milliseconds."""
    seed: int
    """Seed of the text of the prompts."""

    @property
    def answered(self) -> tuple[RequestOutcome, ...]:
        """The requests that were answered completely. Latencies are computed only from them."""
        return tuple(outcome for outcome in self.outcomes if outcome.failure is None)

    @property
    def failure_reasons(self) -> dict[str, int]:
        """Failed requests by reason, the most frequent first."""
        return dict(Counter(outcome.failure for outcome in self.outcomes if outcome.failure).most_common())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return reasons to doubt the figures, one sentence each."""
        found = []
        if self.client_cpu_share > BUSY_CLIENT_SHARE:
            found.append(
                f"the client used {self.client_cpu_share:.0%} of a processor: latencies include its delay"
            )
        if self.lateness_p99_ms > LATE_MS:
            found.append(
                f"1 % of the requests were sent at least {self.lateness_p99_ms / 1000:.1f} s late, because "
                "this machine was too busy: the figures are of other arrival times and slower programs"
            )
        without_usage = sum(outcome.usage is None for outcome in self.answered)
        if without_usage and self.workload.images is None:
            found.append(f"{without_usage} answers had no token counts and are not included in token figures")
        return tuple(found)


BUSY_CLIENT_SHARE = 0.8
LATE_MS = 100.0

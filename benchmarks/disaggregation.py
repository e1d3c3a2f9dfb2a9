"""Separate prefill and decode workers compared with the best aggregated layout on the same accelerators.

Each figure is the highest rate of requests at which 90 % have their first token within a second and stay
within a limit on the time per output token, by offline replay of the serving plan's own workers. The value is
the rate of the best aggregated layout (any tensor parallel size, chunks of 2,048 or 8,192 tokens); the
baseline is that of the disaggregated layout. Both are simulated. Transfers of KV cache take time on the
workers' network. The goal is a ratio of two thirds: disaggregation serves at least half as much again. Every
case has it, also those in which disaggregation gains less or loses: a limit of 50 ms a token, prompts of 300
tokens, and a network without EFA.

Twelve prefill workers have one accelerator each and one decode worker has four (on L40S, four decode workers
have one each); answers have 200 tokens. The models are Qwen3-32B with vLLM on sixteen H200,
Qwen3-235B-A22B-FP8 with SGLang on sixteen B300, and Qwen3-8B with vLLM on sixteen L40S. Nothing of it ran on
accelerators.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.harness.figure import Figure
from benchmarks.harness.layouts import LayoutCase, aggregated, disaggregated, rate_search, simulated
from inference_blueprints.measure.simulation.highest_rate import RateSearch
from inference_blueprints.measure.simulation.offline_replay import SyntheticLoad
from inference_blueprints.spec.types import Objectives

_GOAL = 2 / 3
_FIRST_TOKEN_MS = 1000.0
_ANSWER = 200
_CHUNKS = (2048, 8192)
_CHUNK_ARGUMENTS = {"vllm": "max-num-batched-tokens", "sglang": "chunked-prefill-size"}
_ON_H200 = ((16, 1), (8, 2), (4, 4), (2, 8))
_APART = disaggregated((12, 1), (1, 4))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One case with its layouts and limits on the time per output token."""

    name: str
    case: LayoutCase
    apart: dict[str, Any]
    together: tuple[tuple[int, int], ...]
    limits_ms: tuple[float, ...]

    def figures(self) -> list[Figure]:
        """Return a figure for each limit."""
        apart = rate_search(self.case, simulated(self.case, self.apart))
        together = [
            rate_search(
                self.case,
                simulated(self.case, aggregated(*layout), {_CHUNK_ARGUMENTS[self.case.engine]: chunk}),
            )
            for layout, chunk in product(self.together, _CHUNKS)
        ]
        return [self._figure(apart, together, limit) for limit in self.limits_ms]

    def _figure(self, apart: RateSearch, together: list[RateSearch], limit: float) -> Figure:
        wanted = Objectives(
            time_to_first_token_p90_ms=_FIRST_TOKEN_MS, time_per_output_token_p90_ms=limit
        ).stated
        return Figure(
            f"disaggregation {self.name}, {limit:g} ms a token",
            max(search.highest(wanted)[0] for search in together),
            "requests/s",
            baseline=apart.highest(wanted)[0],
            goal=_GOAL,
            simulated=True,
        )


def _on_h200(input_tokens: int, limits_ms: tuple[float, ...]) -> _Comparison:
    case = LayoutCase("Qwen/Qwen3-32B", "p5en.48xlarge", SyntheticLoad(input_tokens, _ANSWER))
    name = f"Qwen3-32B on 16 H200, prompts of {input_tokens}"
    return _Comparison(name, case, _APART, _ON_H200, limits_ms)


_L40S = LayoutCase("Qwen/Qwen3-8B", "g6e.48xlarge", SyntheticLoad(3000, _ANSWER), efa=False)
_B300 = LayoutCase(
    "Qwen/Qwen3-235B-A22B-FP8", "p6-b300.48xlarge", SyntheticLoad(3000, _ANSWER), engine="sglang"
)
_COMPARISONS = (
    _on_h200(3000, (20.0, 25.0, 30.0, 50.0)),
    _on_h200(2000, (30.0,)),
    _on_h200(4000, (30.0,)),
    _Comparison(
        "Qwen3-235B-FP8 with SGLang on 16 B300, prompts of 3000",
        _B300,
        _APART,
        ((16, 1), (8, 2), (4, 4)),
        (30.0, 50.0),
    ),
    _on_h200(300, (30.0,)),
    _Comparison(
        "Qwen3-8B on 16 L40S without EFA",
        _L40S,
        disaggregated((12, 1), (4, 1)),
        ((16, 1), (8, 2)),
        (50.0,),
    ),
)


def measure() -> list[Figure]:
    """Take the measurement."""
    return [figure for comparison in _COMPARISONS for figure in comparison.figures()]

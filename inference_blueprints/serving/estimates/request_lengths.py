"""How long requests are beside their mean, and how many of them a cache holds.

A file states the mean of lengths, and may state the longest. With both, lengths are spread from 0 to the
longest with a density of ``exp(-k * length)``, where ``k`` follows from the mean: of all distributions with
this mean and this longest length, the one with the greatest entropy, which assumes nothing else. Compared
with public traces, by the standard deviation divided by the mean, and by how much longer prompts take in the
mean than one of the mean length (Qwen3-8B, L40S):

===============================  =============  =============  ==============================
lengths of                       trace          this           lognormal, 0.1 % beyond longest
===============================  =============  =============  ==============================
prompts, Mooncake conversation   1.31, +9.6 %   1.00, +8.4 %   1.05, +7.2 %
the same, to 32,000 tokens       0.89, +6.9 %   0.86, +6.5 %   0.48, +1.4 %
the same, to 16,000 tokens       0.77, +6.6 %   0.75, +6.5 %   0.36, +1.8 %
prompts, Azure code 2023         0.96, +12.1 %  0.85, +10.3 %  0.47, +5.0 %
answers, Mooncake conversation   0.73           0.96           0.70
answers, Azure code 2023         2.15           1.00           3.83
===============================  =============  =============  ==============================

The longest of the last is 68 times the mean: with so long a tail, two numbers say little. Without a stated
longest length, each is as long as the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from inference_blueprints.spec.types import Workload
from inference_contracts.records import dataclass

#: Below this, the density is nearly the same everywhere, and its closed forms lose digits.
_FLAT = 0.01


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of prompts or of answers, in tokens."""

    mean: float
    longest: float | None = None
    """The longest; None if each has the mean length."""

    @property
    def are_alike(self) -> bool:
        """Whether each has the mean length."""
        return self.longest is None or self.mean >= self.longest

    def at_most(self, tokens: float) -> float:
        """Return the mean of lengths of which each counts with at most so many tokens."""
        if self.longest is None or self.are_alike:
            return min(self.mean, tokens)
        if tokens >= self.longest:
            return self.mean
        if self.mean > self.longest / 2.0:
            left = self.longest - tokens
            return self.mean - left + self._mirrored(self.longest).at_most(left)
        decay = _decay(self.mean / self.longest)
        if decay < _FLAT:
            return tokens - tokens**2 / (2.0 * self.longest)
        each, end = decay / self.longest, math.exp(-decay)
        return (-math.expm1(-each * tokens) / each - tokens * end) / (1.0 - end)

    def moment(self, power: int) -> float:
        """Return the mean of the lengths' power: of 1, the mean; of 2, the mean square."""
        if self.longest is None or self.are_alike or power <= 1:
            return float(self.mean**power)
        if self.mean > self.longest / 2.0:
            other = self._mirrored(self.longest)
            return math.fsum(
                math.comb(power, each) * self.longest ** (power - each) * (-1) ** each * other.moment(each)
                for each in range(power + 1)
            )
        decay = _decay(self.mean / self.longest)
        if decay < _FLAT:
            return float(self.longest**power / (power + 1))
        end = math.exp(-decay) / -math.expm1(-decay)
        return float(power * self.longest / decay * self.moment(power - 1) - self.longest**power * end)

    def _mirrored(self, longest: float) -> Lengths:
        """Return the distances from the longest."""
        return Lengths(longest - self.mean, longest)


@cache
def _decay(ratio: float) -> float:
    """Return ``k`` times the longest length.

    ratio: Mean divided by the longest, above 0 and at most a half.
    """
    low, high = 0.0, 1.0 / ratio
    for _ in range(60):
        middle = (low + high) / 2.0
        if 1.0 / middle + math.exp(-middle) / math.expm1(-middle) > ratio:
            low = middle
        else:
            high = middle
    return high


def parts(workload: Workload) -> Sequence[Workload]:
    """Return the requests of each way in that come together in a workload."""
    return workload.parts or (workload,)


def computed_prompts(workload: Workload) -> Lengths:
    """Return the lengths of the prompts of one way in, without what other requests share."""
    own, longest = 1.0 - workload.shared_prefix_ratio, workload.longest_input_tokens
    return Lengths(workload.input_tokens * own, None if longest is None else longest * own)


def answers(workload: Workload) -> Lengths:
    """Return the lengths of the answers of one way in."""
    return Lengths(workload.output_tokens, workload.longest_output_tokens)

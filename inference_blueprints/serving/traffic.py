"""What deployments have to serve: one record for each, from all ways in which requests come in.

Everything that sizes, scales, prices or checks workers reads these records. Nothing else reads `workload`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_blueprints.spec.types import Deployment, Model, Spec, Workload

#: Ratio of the longest to the mean request. In the public Mooncake conversation trace, the 95th
#: percentile of input is 3.3 times its mean (output: 2.0 times).
TAIL_FACTOR = 4
_LENGTH_STEP = 1024

WayName = Literal["realTime"]


@dataclass(frozen=True, slots=True)
class WayIn:
    """Requests that come in one way: from callers in real time."""

    kind: WayName
    """Which way it is."""
    means: Workload
    """Their mean lengths, the part of prompts that they share, their images, and their rate at the peak."""

    @property
    def longest_request_tokens(self) -> int:
        """The longest request, prompt plus answer, in tokens.

        Four times the means, rounded up to a multiple of 1024: the tail of real traffic fits, and a stray
        request cannot fill the KV cache.
        """
        tokens = TAIL_FACTOR * (self.means.input_tokens + self.means.output_tokens)
        return -(-tokens // _LENGTH_STEP) * _LENGTH_STEP


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests that a deployment, or all deployments of a model, have to serve."""

    ways: tuple[WayIn, ...]
    """The ways in which they come in, each with its part of the rate."""
    means: Workload
    """Their mean lengths over all ways, and their rate at the peak."""

    @property
    def requests_per_second(self) -> float:
        """Requests per second at the peak."""
        return self.means.peak_requests_per_second

    @property
    def longest_request_tokens(self) -> int:
        """The longest request of any way, prompt plus answer, in tokens."""
        return max(way.longest_request_tokens for way in self.ways)


def accelerators(deployment: Deployment) -> int:
    """Return the accelerators of all workers of a deployment. Requests are divided in proportion to them."""
    return sum(each.maximum * each.accelerators for each in deployment.workers.values())


def own_means(model: Model) -> Workload:
    """Return the mean requests that come in at the model's own address, over all its deployments."""
    return model.workload


def model_traffic(spec: Spec, model: Model) -> Traffic:  # noqa: ARG001
    """Return the requests of a model, over all its deployments.

    spec: The blueprint's section, with the model.
    """
    means = model.workload
    return Traffic((WayIn("realTime", means),), means)


def deployment_traffic(spec: Spec, model: Model, deployment: Deployment) -> Traffic:
    """Return the requests of a deployment at the model's peak.

    spec: The blueprint's section, with the model.
    """
    whole = model_traffic(spec, model)
    share = accelerators(deployment) / sum(accelerators(each) for each in model.deployments)
    rate = whole.requests_per_second * share
    means = whole.means.model_copy(update={"peak_requests_per_second": rate})
    return Traffic((WayIn("realTime", means),), means)

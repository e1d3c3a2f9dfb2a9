"""Figures computed from the stated workload: requests, their share of workers, and frontends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import inference_catalog as catalog
from inference_blueprints.serving.estimates.request_lengths import answers, computed_prompts
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.traffic import TAIL_FACTOR, Traffic
from inference_blueprints.spec import types as spec
from inference_contracts.records import dataclass
from inference_contracts.units import MIB_PER_GIB


def worker_requests_per_second(resolved: ResolvedWorkers, replicas: int) -> float:
    """Return the requests per second of one worker of a role at the peak. Each request passes every role.

    replicas: Number of workers that share the deployment's requests.
    """
    return resolved.traffic.requests_per_second / replicas


_MIN_REPLICAS = 2
#: Half of the processor time is free at the peak: one of two frontends can carry it alone for a while.
_BUSY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class FrontendSize:
    """Frontends of a deployment."""

    replicas: int
    """Number of frontends."""
    cpu: int
    memory_mib: int
    """`cpu`, `memory_mib`: vCPUs and memory in MiB of each."""


def busy_cpu(traffic: Traffic) -> float:
    """Return the vCPUs that the frontends of a deployment use together at the peak.

    traffic: The deployment's.
    """
    load, means = catalog.frontend_load("dynamo"), traffic.means
    return traffic.requests_per_second * load.processor_seconds(means.input_tokens, means.output_tokens)


def frontend_size(model: spec.Model, traffic: Traffic) -> FrontendSize:
    """Return number and size of a deployment's frontends; keys of the blueprint count first.

    traffic: The deployment's.
    """
    load, given = catalog.frontend_load("dynamo"), model.frontend or spec.Frontend()
    needed = busy_cpu(traffic) / _BUSY_SHARE
    largest = given.cpu or load.largest_cpu
    replicas = given.replicas or max(_MIN_REPLICAS, math.ceil(needed / largest))
    cpu = given.cpu or max(1, math.ceil(needed / replicas))
    memory = given.memory_gib * MIB_PER_GIB if given.memory_gib else cpu * load.memory_mib_per_cpu
    return FrontendSize(replicas, cpu, memory)


#: Latencies assumed if the blueprint states no objective: reading speed, and one second to the first token.
_TIME_PER_OUTPUT_TOKEN_MS = 50.0
_TIME_TO_FIRST_TOKEN_MS = 1000.0

#: Assumed time of a step for a million pixels, six times that of the published speed of images.
_SECONDS_PER_STEP = 1.0
_MEGAPIXEL = 1e6


def unique_tokens(workload: spec.Workload) -> float:
    """Return the mean unshared tokens of a request: those that it adds to the KV cache."""
    return workload.input_tokens * (1.0 - workload.shared_prefix_ratio) + workload.output_tokens


#: So many standard deviations above its mean, the sum of many requests stays for 99 % of the time.
_DEVIATIONS = 2.33


@dataclass(frozen=True, slots=True)
class HeldTokens:
    """Unshared tokens of the KV cache that a running request adds, with its complete answer."""

    mean: float
    variance: float
    """`mean`, `variance`: Over the requests that run at a time, not over those that arrive: a long answer
    stays for longer than a short one."""

    def needed(self, requests: float) -> float:
        """Return the tokens that so many requests at once have or stay below for 99 % of the time."""
        return requests * self.mean + _DEVIATIONS * math.sqrt(requests * self.variance)

    def fitting(self, tokens: float) -> float:
        """Return the requests at once that need no more than so many tokens."""
        if tokens <= 0 or not self.variance:
            return tokens // self.mean
        # A quadratic equation in the square root of the requests.
        deviation = _DEVIATIONS * math.sqrt(self.variance)
        root = (math.sqrt(deviation**2 + 4.0 * self.mean * tokens) - deviation) / (2.0 * self.mean)
        return root**2


def held_tokens(
    ways: Sequence[spec.Workload], objectives: spec.Objectives, *, writes: bool = True
) -> HeldTokens:
    """Return what the running requests of some ways in hold.

    ways: Requests of each way in.
    writes: Whether the workers also write the answers. Those for prefill hold each prompt for as long.
    """
    if len(ways) == 1 and ways[0].longest_input_tokens is None and ways[0].longest_output_tokens is None:
        own = unique_tokens(ways[0])
        return HeldTokens(own if writes else own - ways[0].output_tokens, 0.0)
    running, means, squares = [], [], []
    for way in ways:
        prompt, answer = computed_prompts(way), answers(way)
        mean, variance = prompt.mean, prompt.moment(2) - prompt.mean**2
        seconds = prefill_seconds(objectives)
        if writes:
            seconds = request_seconds(way, objectives)
            each = time_per_output_token_seconds(objectives)
            first = max(0.0, prefill_seconds(objectives) - each)
            # Weighted by how long a request runs, which is `first` and `each` for every token.
            whole = first + each * answer.mean
            long = (first * answer.mean + each * answer.moment(2)) / whole
            mean += long
            variance += (first * answer.moment(2) + each * answer.moment(3)) / whole - long**2
        running.append(way.peak_requests_per_second * seconds)
        means.append(mean)
        squares.append(variance + mean**2)
    total = math.fsum(running)
    mean = math.fsum(count * each for count, each in zip(running, means, strict=True)) / total
    square = math.fsum(count * each for count, each in zip(running, squares, strict=True)) / total
    return HeldTokens(mean, max(0.0, square - mean**2))


def request_seconds(workload: spec.Workload, objectives: spec.Objectives) -> float:
    """Return the longest mean duration of a request under its objectives, in seconds.

    A request for images has no objective: a step of a million pixels is assumed to take a second.
    """
    if images := workload.images:
        return images.per_request * images.steps * images.pixels / _MEGAPIXEL * _SECONDS_PER_STEP
    first, each = prefill_seconds(objectives), time_per_output_token_seconds(objectives)
    seconds = answer_time(workload.output_tokens, first, each)
    whole_ms = spec.tightest_ms(objectives.stated, spec.WHOLE_REQUEST)
    return seconds if whole_ms is None else min(seconds, whole_ms / 1000.0)


def answer_time(output_tokens: float, first_token: float, each_token: float) -> float:
    """Return the time of a whole answer: the time per output token counts from the second token on.

    So count vLLM (`vllm bench serve`: tpot = (latency - ttft) / (output_len - 1)) and the project's client.

    output_tokens: Length of the answer.
    first_token, each_token: Time to the first token, and from one token to the next, in the same unit.
    """
    return first_token + max(0.0, output_tokens - 1) * each_token


def prefill_seconds(objectives: spec.Objectives) -> float:
    """Return the longest time to the first token under the objectives, in seconds."""
    stated = objectives.stated
    first_ms = spec.tightest_ms(stated, spec.FIRST_TOKEN) or _TIME_TO_FIRST_TOKEN_MS
    return min(first_ms, spec.tightest_ms(stated, spec.WHOLE_REQUEST) or first_ms) / 1000.0


def time_per_output_token_seconds(objectives: spec.Objectives) -> float:
    """Return the longest time from one token of an answer to the next under the objectives, in seconds."""
    each_ms = spec.tightest_ms(objectives.stated, spec.EACH_TOKEN)
    return (each_ms or _TIME_PER_OUTPUT_TOKEN_MS) / 1000.0


def decode_seconds(workload: spec.Workload, objectives: spec.Objectives) -> float:
    """Return the longest duration of a mean answer after its first token under the objectives, in seconds."""
    return answer_time(workload.output_tokens, 0.0, time_per_output_token_seconds(objectives))


def longest_stream_seconds(workload: spec.Workload, objectives: spec.Objectives) -> int:
    """Return the longest duration of a stream, in seconds: between half a minute and ten minutes.

    `TAIL_FACTOR` times a mean request, or one whose answer has a token more.
    """
    token = time_per_output_token_seconds(objectives) if workload.output_tokens and not workload.images else 0
    tail = TAIL_FACTOR * (request_seconds(workload, objectives) + token)
    return round(min(600.0, max(30.0, tail)))

"""What deployments have to serve: one record for each, from all ways in which requests come in.

Everything that sizes, scales, prices or checks workers reads these records. Nothing else reads `workload`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from inference_blueprints.serving.streaming import stream_load
from inference_blueprints.spec.invalid_values import InvalidValue, usable
from inference_blueprints.spec.types import (
    BatchQueue,
    Day,
    Deployment,
    Model,
    ModelWorkload,
    PromptImages,
    RequestLengths,
    Spec,
    StreamingJob,
    Workload,
    mean_tokens,
    stated_maximum,
)
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY, SECONDS_PER_HOUR

#: Ratio of the longest to the mean request. In the public Mooncake conversation trace, the 95th
#: percentile of input is 3.3 times its mean (output: 2.0 times).
TAIL_FACTOR = 4
_LENGTH_STEP = 1024

WayKind = Literal["realTime", "queue", "streaming"]
_WORDS = {"realTime": "real time", "queue": "queue", "streaming": "streaming job"}


@dataclass(frozen=True, slots=True)
class WayIn:
    """Requests that come in one way: in real time, from a queue, or from a streaming job."""

    kind: WayKind
    """Which way it is."""
    name: str
    """Name of the queue or of the job; empty for real time."""
    deployments: tuple[str, ...]
    """The deployments that serve them."""
    means: Workload
    """Their mean lengths, the part of prompts that they share, their images, and their rate at the peak."""
    longest_input: int
    longest_output: int
    """`longest_input`, `longest_output`: The longest prompt and answer, in tokens: stated, or four times the
    mean."""
    states_longest: bool
    """Whether the file states the longest prompt."""
    day: tuple[float, ...] = ()
    """Mean of each hour of a day in UTC, as a share of the peak; empty if the peak lasts all day."""
    day_peaks: tuple[float, ...] = ()
    """As `day`, but the highest rate of each hour."""
    prompt_images: PromptImages | None = None
    """Images in their prompts; None without any. Their tokens are a part of the lengths."""
    hours: float = HOURS_PER_DAY
    """Hours of a day in which they may come at their rate: of a queue, no more than its deadline."""

    def rate_in(self, hour: int) -> float:
        """Return the mean requests per second in an hour of the day in UTC."""
        return self.means.peak_requests_per_second * (self.day[hour] if self.day else 1.0)

    def peak_in(self, hour: int) -> float:
        """Return the most requests per second in an hour of the day in UTC."""
        return self.means.peak_requests_per_second * (self.day_peaks[hour] if self.day_peaks else 1.0)

    @property
    def label(self) -> str:
        """Words for it, such as ``queue 'nightly'``."""
        return _WORDS[self.kind] + (f" '{self.name}'" if self.name else "")

    @property
    def longest_tokens(self) -> int:
        """The longest request, prompt plus answer, in tokens."""
        return self.longest_input + self.longest_output

    @property
    def stated_tokens(self) -> int:
        """The longest request that the file states, in tokens: the mean counts where it states no longest.

        This is at most the model's context, and workers must accept it. `longest_tokens` may be more, and is
        then cut at the context.
        """
        if self.kind == "streaming":
            return self.longest_tokens  # by `prompt.maxInputTokens` and `answer.maxTokens`
        prompt = self.means.longest_input_tokens or self.means.input_tokens
        return prompt + (self.means.longest_output_tokens or self.means.output_tokens)

    @property
    def longest_request_tokens(self) -> int:
        """The length for which a worker is planned: the longest, rounded up to a multiple of 1024.

        Without a stated maximum, the tail of real traffic fits, and a stray request cannot fill the KV cache.
        """
        return -(-self.longest_tokens // _LENGTH_STEP) * _LENGTH_STEP

    def at(self, share: float) -> WayIn:
        """Return a part of the requests."""
        rate = self.means.peak_requests_per_second * share
        return replace(self, means=self.means.model_copy(update={"peak_requests_per_second": rate}))


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests that a deployment, or all deployments of a model, have to serve."""

    ways: tuple[WayIn, ...]
    """The ways in which they come in, each with its part of the rate."""
    means: Workload
    """Mean lengths and rate at the peak. Batch takes what the other requests leave, so it is in these figures
    only where there are no others."""

    @property
    def requests_per_second(self) -> float:
        """Requests per second at the peak."""
        return self.means.peak_requests_per_second

    @property
    def states_rate(self) -> bool:
        """Whether the file says how many requests come in."""
        return any(way.means.peak_requests_per_second > _UNKNOWN_RATE for way in self.ways)

    @property
    def longest_request_tokens(self) -> int:
        """The longest request of any way, prompt plus answer, in tokens."""
        return max((way.longest_request_tokens for way in self.ways), default=_LENGTH_STEP)

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody waits for answers, so that objectives hold. For a queue's answers, nobody does."""
        return not self.ways or any(way.kind != "queue" for way in self.ways)

    @property
    def longest(self) -> WayIn | None:
        """The way in that has the longest requests; None without any."""
        return max(self.ways, key=lambda way: way.longest_request_tokens, default=None)

    @property
    def states_longest(self) -> bool:
        """Whether the file states the longest prompt of the way that has the longest requests."""
        return self.longest is not None and self.longest.states_longest

    @property
    def most_prompt_images(self) -> int | None:
        """Most images of a prompt, if every way in states it."""
        images = [way.prompt_images for way in self.ways]
        stated = [each.max for each in images if each is not None]
        return max(stated) if stated and len(stated) == len(images) else None


def accelerators(deployment: Deployment) -> int:
    """Return the accelerators of all workers of a deployment. Requests are divided in proportion to them."""
    return sum(each.maximum * each.accelerators for each in deployment.workers.values())


def own_deployments(spec: Spec, model: Model) -> tuple[str, ...]:
    """Return the deployments behind the model's own address, where real time comes in.

    Those that a queue or a streaming job names for itself are not among them, and neither are those that may
    have no workers, unless nothing else is left.
    """
    unnamed = _unnamed_deployments(spec, model)
    lent = _lent(model, unnamed)
    return tuple(name for name in unnamed if name not in lent) or unnamed


def _unnamed_deployments(spec: Spec, model: Model) -> tuple[str, ...]:
    """Return the deployments that no queue and no job names for itself; all if nothing else is left."""
    named = {name for each in _others(spec, model) for name in each.deployments}
    every = tuple(deployment.name for _, deployment in usable(model.deployments))
    return tuple(name for name in every if name not in named) or every


def _lent(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return which of some deployments may have no workers, because the capacity shift sets their number."""
    return tuple(each.name for _, each in usable(model.deployments) if each.is_lent and each.name in names)


def way_address(spec: Spec, way: BatchQueue | StreamingJob) -> str:
    """Return the first label of the host name to which a queue or a streaming job sends its requests.

    Behind a queue's are only those of its deployments that always have workers, if there are any.
    """
    model = next(each for each in spec.models if each.name == way.model)
    return _route_name(spec, model, way)


def lent_addresses(spec: Spec, queue: BatchQueue) -> dict[str, str]:
    """Return further addresses of a queue, whose deployments may have no workers: deployments by address.

    Batch's workers send each of them a part of the queue only while it has workers. Behind one address they
    could not: the load balancer divides requests by fixed weights, whatever runs behind its targets.
    """
    model = next(each for each in spec.models if each.name == queue.model)
    return _lent_addresses(spec, model, queue)


def _lent_addresses(spec: Spec, model: Model, way: BatchQueue | StreamingJob) -> dict[str, str]:
    names = _serving(spec, model, way)
    lent = _lent(model, names)
    if not isinstance(way, BatchQueue) or len(lent) == len(names):
        return {}
    return {f"{model.name}--batch-{name}": name for name in lent}


def _staying(spec: Spec, model: Model, way: BatchQueue | StreamingJob) -> tuple[str, ...]:
    """Return the deployments behind the address of a queue or a job."""
    lent = _lent_addresses(spec, model, way).values()
    return tuple(name for name in _serving(spec, model, way) if name not in lent)


def _route_name(spec: Spec, model: Model, way: BatchQueue | StreamingJob) -> str:
    """Return the address of a queue or a job. For the same deployments, it is the model's own."""
    if set(_staying(spec, model, way)) == set(own_deployments(spec, model)):
        return model.name
    return f"{model.name}--{'batch' if isinstance(way, BatchQueue) else way.name}"


def further_routes(spec: Spec, model: Model) -> dict[str, tuple[str, ...]]:
    """Return the deployments behind each further address of a model, by the first label of its host name."""
    found: dict[str, tuple[str, ...]] = {}
    for way in _others(spec, model):
        staying, name = _staying(spec, model, way), _route_name(spec, model, way)
        if name != model.name:
            found[name] = tuple(each.name for each in model.deployments if each.name in staying)
        found |= {address: (lent,) for address, lent in _lent_addresses(spec, model, way).items()}
    return found


def model_traffic(spec: Spec, model: Model) -> Traffic:
    """Return the requests of a model, over all its deployments.

    spec: The blueprint's section, with the model.
    """
    return _together(tuple(_ways(spec, model)))


def deployment_traffic(spec: Spec, model: Model, deployment: Deployment) -> Traffic:
    """Return the requests of a deployment at the model's peak.

    Each way in divides its requests among its deployments in proportion to their accelerators; the front door
    divides those in real time by the weights of its targets.

    spec: The blueprint's section, with the model.
    """
    own = accelerators(deployment)
    if not own:
        return _together(())  # Without workers, it serves nothing; the rules refuse it.
    sizes = {each.name: accelerators(each) for _, each in usable(model.deployments)}
    by_weight = _shares_of_the_door(spec, model) if spec.front_door else {}
    return _together(
        tuple(
            way.at(
                by_weight[deployment.name]
                if way.kind == "realTime" and deployment.name in by_weight
                else own / sum(sizes[name] for name in way.deployments if name in sizes)
            )
            for way in _ways(spec, model)
            if deployment.name in way.deployments
        )
    )


def _shares_of_the_door(spec: Spec, model: Model) -> dict[str, float]:
    """Return the share of a model's requests that each of its deployments gets by the front door's weights.

    The mean of all public names that name its deployments, since the file does not say how many requests each
    name gets. Deployments with weight 0 are left out: what they get depends on how full the others are.
    """
    found: dict[str, list[float]] = {}
    for _, public in usable(spec.front_door.models if spec.front_door else ()):
        targets = [each for _, each in usable(public.to) if each.model == model.name and each.weight]
        if not targets or any(each.deployment is None for each in targets):
            continue
        whole = sum(each.weight for each in targets)
        for each in targets:
            found.setdefault(str(each.deployment), []).append(each.weight / whole)
    names = sum(map(sum, found.values()))
    return {name: sum(shares) / names for name, shares in found.items()}


def own_means(model: Model) -> Workload:
    """Return the mean requests in real time; those of no size if there are none."""
    workload = model.workload
    return _ONE_TOKEN if workload is None else _of_model(workload)


def serving_deployments(spec: Spec, way: BatchQueue | StreamingJob) -> tuple[str, ...]:
    """Return the deployments that answer the requests of a queue or of a streaming job."""
    return _serving(spec, next(each for each in spec.models if each.name == way.model), way)


def _serving(spec: Spec, model: Model, way: BatchQueue | StreamingJob) -> tuple[str, ...]:
    if way.deployments:
        return tuple(way.deployments)
    # Batch can wait for workers, and nobody else can.
    return (_unnamed_deployments if isinstance(way, BatchQueue) else own_deployments)(spec, model)


def queue_path(spec: Spec, name: str) -> tuple[str | int, ...]:
    """Return the place of a queue in the blueprint."""
    queues = spec.batch.queues if spec.batch else []
    index = next(index for index, queue in usable(queues) if queue.name == name)
    return ("spec", "batch", "queues", index)


def is_apart(way: BatchQueue | StreamingJob) -> bool:
    """Return whether a queue or a job says more than that its requests are a part of the model's workload."""
    return way.workload is not None or bool(way.deployments)


def own_part(way: BatchQueue | StreamingJob, traffic: Traffic) -> WayIn | None:
    """Return the part of a deployment's requests that come from a queue or from a streaming job.

    None if they are a part of the model's own workload.

    traffic: The deployment's.
    """
    kind = "queue" if isinstance(way, BatchQueue) else "streaming"
    return next((each for each in traffic.ways if (each.kind, each.name) == (kind, way.name)), None)


def queue_traffic(spec: Spec, model: Model, queue: BatchQueue) -> WayIn:
    """Return the requests of a queue.

    model: The model that answers them.
    """
    return _of_queue(model, queue, _serving(spec, model, queue))


def job_means(model: Model, job: StreamingJob) -> Workload:
    """Return the requests of a streaming job.

    model: The model that answers them.
    """
    return _lengths(job.workload or _required(model), stream_load(job).calls_per_second)


#: A request of a model about whose requests the file says nothing. The rules refuse such a file.
_ONE_TOKEN = Workload(input_tokens=1, output_tokens=1, peak_requests_per_second=1.0)
#: Of a model without any requests, which the rules refuse too: without tokens, nothing has a size.
_NOTHING = Workload(peak_requests_per_second=1.0)
#: A rate for requests whose number is not stated: it has no weight beside others.
_UNKNOWN_RATE = 1e-9


def _required(model: Model) -> ModelWorkload:
    return model.workload or ModelWorkload(input_tokens=1, output_tokens=1, peak_requests_per_second=1.0)


def _queues(spec: Spec, model: Model) -> Iterator[BatchQueue]:
    batch = spec.batch
    if batch is None or isinstance(batch, InvalidValue) or isinstance(batch.queues, InvalidValue):
        return
    yield from (queue for _, queue in usable(batch.queues) if queue.model == model.name)


def _jobs(spec: Spec, model: Model) -> Iterator[StreamingJob]:
    if isinstance(spec.streaming, InvalidValue):
        return
    yield from (job for _, job in usable(spec.streaming) if job.model == model.name)


def _others(spec: Spec, model: Model) -> Iterator[BatchQueue | StreamingJob]:
    """Yield the ways in beside real time."""
    yield from _queues(spec, model)
    yield from _jobs(spec, model)


def _ways(spec: Spec, model: Model) -> Iterator[WayIn]:
    """Yield the ways in which requests of a model come in.

    A queue or a job that states neither lengths nor deployments is a part of the model's own workload.
    """
    own = own_deployments(spec, model)
    if model.workload is not None:
        way = _way("realTime", "", own, model.workload, _of_model(model.workload))
        yield _by_hour(way, model.workload.day)
    for queue in _queues(spec, model):
        if is_apart(queue):
            yield _of_queue(model, queue, _serving(spec, model, queue))
    for job in _jobs(spec, model):
        if is_apart(job):
            names = tuple(job.deployments) or own
            way = _way("streaming", job.name, names, job.workload or _required(model), job_means(model, job))
            # It may send this much, whatever its mean is.
            yield replace(
                _by_hour(way, job.workload.day if job.workload else None),
                longest_input=max(way.longest_input, job.prompt.max_input_tokens),
                longest_output=max(way.longest_output, job.answer.max_tokens),
            )


def _by_hour(way: WayIn, day: Day | None) -> WayIn:
    return replace(way, day=day.means, day_peaks=day.peaks) if day else way


def _of_queue(model: Model, queue: BatchQueue, deployments: tuple[str, ...]) -> WayIn:
    """Return the requests of a queue. All jobs of a day may come at once, and have the queue's deadline."""
    lengths, rate = queue.workload or _required(model), _UNKNOWN_RATE
    hours = min(HOURS_PER_DAY, queue.deadline_hours)
    if queue.load:
        rate = queue.load.requests_per_day / (hours * SECONDS_PER_HOUR)
    images = model.workload.images if model.workload and queue.workload is None else None
    means = _lengths(lengths, rate).model_copy(update={"images": images})
    way = _way("queue", queue.name, deployments, lengths, means)
    return replace(way, hours=hours)


def _way(
    kind: WayKind,
    name: str,
    deployments: tuple[str, ...],
    lengths: ModelWorkload | RequestLengths,
    means: Workload,
) -> WayIn:
    longest = stated_maximum(lengths.input_tokens)
    return WayIn(
        kind,
        name,
        deployments,
        means,
        longest or TAIL_FACTOR * means.input_tokens,
        stated_maximum(lengths.output_tokens) or TAIL_FACTOR * means.output_tokens,
        longest is not None,
        prompt_images=lengths.prompt_images,
    )


def _of_model(workload: ModelWorkload) -> Workload:
    means = _lengths(workload, workload.peak_requests_per_second)
    return means.model_copy(update={"images": workload.images}) if workload.images else means


def _lengths(lengths: ModelWorkload | RequestLengths, rate: float) -> Workload:
    return Workload.model_construct(
        input_tokens=mean_tokens(lengths.input_tokens),
        output_tokens=mean_tokens(lengths.output_tokens),
        longest_input_tokens=stated_maximum(lengths.input_tokens),
        longest_output_tokens=stated_maximum(lengths.output_tokens),
        shared_prefix_ratio=lengths.shared_prefix_ratio,
        peak_requests_per_second=rate,
    )


def _together(ways: tuple[WayIn, ...]) -> Traffic:
    """Return ways in with their means, weighted by their rates."""
    waiting = [way.means for way in ways if way.kind != "queue"] or [way.means for way in ways]
    if len(waiting) < 2:  # noqa: PLR2004 - one has nothing to be weighted with
        return Traffic(ways, waiting[0] if waiting else _NOTHING)
    rate = math.fsum(each.peak_requests_per_second for each in waiting)
    prompts = math.fsum(each.peak_requests_per_second * each.input_tokens for each in waiting)
    answers = math.fsum(each.peak_requests_per_second * each.output_tokens for each in waiting)
    shared = math.fsum(
        each.peak_requests_per_second * each.input_tokens * each.shared_prefix_ratio for each in waiting
    )
    means = Workload.model_construct(
        input_tokens=round(prompts / rate),
        output_tokens=round(answers / rate),
        shared_prefix_ratio=shared / prompts if prompts else 0.0,
        peak_requests_per_second=rate,
        images=next((each.images for each in waiting if each.images), None),
        parts=tuple(waiting),
    )
    return Traffic(ways, means)

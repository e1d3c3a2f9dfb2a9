"""Rules on the requests that come in: their lengths, and which deployments serve them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import (
    BatchQueue,
    Day,
    Model,
    ModelWorkload,
    RequestLengths,
    Spec,
    StreamingJob,
    TokenLengths,
    mean_tokens,
    stated_maximum,
)
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_contracts.errors import Finding

#: A label of a domain name (RFC 1035).
_LONGEST_LABEL = 63


@rule
def requests_fit_the_context(spec: Spec) -> Iterator[Finding]:
    """Check that the longest stated prompt and answer together, else the mean ones, fit the model's context.

    Workers accept that sum rounded up to a multiple of 1024, but never more than the context.
    """
    for index, model in usable(spec.models):
        entry = model.weights.entry
        if entry is None or entry.pipeline:
            continue
        for path, lengths in _stated(spec, model, ("spec", "models", index)):
            tokens = mean_tokens(lengths.input_tokens), mean_tokens(lengths.output_tokens)
            longest = stated_maximum(lengths.input_tokens), stated_maximum(lengths.output_tokens)
            needed = tuple(most or mean for most, mean in zip(longest, tokens, strict=True))
            if sum(needed) > entry.context_length:
                message = (
                    f"inputTokens {needed[0]} + outputTokens {needed[1]} = {sum(needed)} tokens, the context "
                    f"of {entry.name} is {entry.context_length}; lower inputTokens or outputTokens, or serve "
                    "a model with a longer context"
                )
                yield Finding(path, message)


def _stated(spec: Spec, model: Model, path: Path) -> Iterator[tuple[Path, ModelWorkload | RequestLengths]]:
    """Yield all lengths that the file states for requests of a model, with their places.

    path: Place of the model.
    """
    if model.workload is not None:
        yield (*path, "workload"), model.workload
    for place, way in _ways(spec):
        if way.model == model.name and way.workload is not None:
            yield (*place, "workload"), way.workload


def _ways(spec: Spec) -> Iterator[tuple[Path, BatchQueue | StreamingJob]]:
    """Yield all queues and streaming jobs with their places."""
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        yield ("spec", "batch", "queues", index), queue
    for index, job in usable(spec.streaming):
        yield ("spec", "streaming", index), job


@rule
def requests_are_stated(spec: Spec) -> Iterator[Finding]:
    """Check that a model states its requests, or a queue or a streaming job states those that it sends."""
    for index, model in usable(spec.models):
        path: Path = ("spec", "models", index)
        if model.workload is not None:
            continue
        ways = [(place, way) for place, way in _ways(spec) if way.model == model.name]
        if not any(way.workload for _, way in ways):
            message = (
                "got no 'workload': nothing says how long the model's requests are; add it with inputTokens, "
                "outputTokens and peakRequestsPerSecond, or add 'workload' to a queue or a streaming job of "
                "the model"
            )
            yield Finding(path, message)
            continue
        if model.real_time is not None:
            message = "needs the model's 'workload' with the rate of requests; add it, or remove this"
            yield Finding((*path, "realTime"), message)
        for place, way in ways:
            if way.workload is None:
                message = (
                    f"got no 'workload', and model {quote(model.name)} has none whose lengths it could have; "
                    "add it with inputTokens and outputTokens"
                )
                yield Finding(place, message)
            if isinstance(way, BatchQueue) and way.load is None:
                message = (
                    f"got no 'load', and model {quote(model.name)} has no 'workload' with a rate; add 'load: "
                    "{requestsPerDay: …}'"
                )
                yield Finding(place, message)


@rule
def answers_of_ways_have_a_length(spec: Spec) -> Iterator[Finding]:
    """Check that answers to a queue or a streaming job have tokens, of a model that writes text."""
    writing = {model.name for _, model in usable(spec.models) if model.task == "generate"}
    for path, way in _ways(spec):
        if way.workload and way.model in writing and not mean_tokens(way.workload.output_tokens):
            message = (
                f"got 0, but model {quote(way.model)} writes text; state the mean length of answers as 1 or "
                "more"
            )
            yield Finding((*path, "workload", "outputTokens"), message)


@rule
def longest_requests_are_not_below_the_mean(spec: Spec) -> Iterator[Finding]:
    """Check that the longest prompt and the longest answer are at least as long as the mean ones."""
    for index, model in usable(spec.models):
        for path, lengths in _stated(spec, model, ("spec", "models", index)):
            for key, each in (("inputTokens", lengths.input_tokens), ("outputTokens", lengths.output_tokens)):
                if isinstance(each, TokenLengths) and each.max is not None and each.max < each.mean:
                    message = f"got {each.max}, the mean is {each.mean}; raise 'max', or lower 'mean'"
                    yield Finding((*path, key, "max"), message)


@rule
def prompt_images_are_within_media(spec: Spec) -> Iterator[Finding]:
    """Check that images in prompts are allowed by the model's `media`, and that their tokens are counted."""
    for index, model in usable(spec.models):
        for path, lengths in _stated(spec, model, ("spec", "models", index)):
            images, media = lengths.prompt_images, model.media
            place = (*path, "promptImages")
            if images is None:
                continue
            if media is None:
                message = f"model {quote(model.name)} reads only text; add 'media' to it, or remove this"
                yield Finding(place, message)
                continue
            if images.max > media.images_per_request:
                message = (
                    f"got {images.max}, 'media.imagesPerRequest' of model {quote(model.name)} is "
                    f"{media.images_per_request}; raise that, or lower 'max'"
                )
                yield Finding((*place, "max"), message)
            if images.mean > images.max:
                message = f"got {images.mean:g}, 'max' is {images.max}; lower 'mean', or raise 'max'"
                yield Finding((*place, "mean"), message)
            longest, most = stated_maximum(lengths.input_tokens), images.max * media.tokens_per_image
            if longest is not None and most > longest:
                message = (
                    f"got {images.max} images of {media.tokens_per_image} tokens, which are {most}, but the "
                    f"longest of inputTokens is {longest} with images; raise that, or lower this"
                )
                yield Finding((*place, "max"), message)
            tokens = math.ceil(images.mean * media.tokens_per_image)
            if tokens > mean_tokens(lengths.input_tokens):
                message = (
                    f"got {images.mean:g} images of {media.tokens_per_image} tokens, which are {tokens}, but "
                    f"inputTokens has a mean of {mean_tokens(lengths.input_tokens)} with images; raise it"
                )
                yield Finding((*place, "mean"), message)


@rule
def ways_in_name_deployments(spec: Spec) -> Iterator[Finding]:
    """Check that queues and streaming jobs name deployments of their model, each once."""
    models = {model.name: model for _, model in usable(spec.models)}
    for path, way in _ways(spec):
        model = models.get(way.model)
        if model is None:
            continue
        known = [deployment.name for _, deployment in usable(model.deployments)]
        for place, name in usable(way.deployments):
            if name not in known:
                message = f"got {quote(name)}, {allowed('deployment', known)}{suggestion(name, known)}"
                yield Finding((*path, "deployments", place), message)
            elif name in way.deployments[:place]:
                message = f"got {quote(name)} twice; remove one of them"
                yield Finding((*path, "deployments", place), message)


@rule
def deployments_have_requests(spec: Spec) -> Iterator[Finding]:
    """Check that requests reach each deployment of a model that has none in real time."""
    for index, model in usable(spec.models):
        ways = [way for _, way in _ways(spec) if way.model == model.name]
        # One without deployments goes to those that nobody names.
        if model.workload is not None or not ways or not all(way.deployments for way in ways):
            continue
        named = {name for way in ways for _, name in usable(way.deployments)}
        for place, deployment in usable(model.deployments):
            if deployment.name not in named:
                message = (
                    "no requests reach it: the model has no 'workload', and its queues and streaming jobs "
                    "name other deployments; remove it, or name it in one of them, or add the model's "
                    "'workload'"
                )
                yield Finding(("spec", "models", index, "deployments", place), message)


@rule
def queues_of_a_model_share_deployments(spec: Spec) -> Iterator[Finding]:
    """Check that all queues of a model name the same deployments: the same workers send their requests."""
    first: dict[str, BatchQueue] = {}
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        other = first.setdefault(queue.model, queue)
        if set(other.deployments) != set(queue.deployments):
            message = (
                f"got {', '.join(queue.deployments) or 'no deployments, which is all of them'}; queue "
                f"{quote(other.name)} of the same model has {', '.join(other.deployments) or 'all of them'}, "
                "and the same batch workers send the requests of both to one address; name the same ones, "
                "or make a second model of the same weights"
            )
            yield Finding(("spec", "batch", "queues", index, "deployments"), message)


@rule
def addresses_of_ways_in_are_free(spec: Spec) -> Iterator[Finding]:
    """Check that the further addresses of queues and jobs are free and short enough."""
    taken = {model.name: f"model {quote(model.name)}" for _, model in usable(spec.models)}
    for path, way in _ways(spec):
        is_queue = isinstance(way, BatchQueue)
        owner = f"batch of model {quote(way.model)}" if is_queue else f"streaming job {quote(way.name)}"
        labels = [f"{way.model}--{'batch' if is_queue else way.name}"] if way.deployments else []
        for label in [*labels, *(_lent_labels(spec, way) if is_queue else [])]:
            other = taken.setdefault(label, owner)
            if other != owner:
                message = f"has the address {quote(label)}, like {other}; rename one of them"
                yield Finding((*path, "name"), message)
            elif len(label) > _LONGEST_LABEL:
                message = (
                    f"has the address {quote(label)} of {len(label)} characters, at most {_LONGEST_LABEL} "
                    "are allowed; shorten this name or the model's"
                )
                yield Finding((*path, "name"), message)


def _lent_labels(spec: Spec, queue: BatchQueue | StreamingJob) -> Iterator[str]:
    """Yield the addresses that a queue may have for deployments without workers of their own."""
    for _, model in usable(spec.models):
        if model.name == queue.model and not all(each.is_lent for _, each in usable(model.deployments)):
            for _, each in usable(model.deployments):
                if each.is_lent:
                    yield f"{model.name}--batch-{each.name}"


@rule
def days_have_requests(spec: Spec) -> Iterator[Finding]:
    """Check that one of the shares of a day is 1, that of the hour of the peak."""
    for path, day in stated_days(spec):
        if day.hours is None:
            continue
        shares = [share for _, share in usable(day.hours)]
        # One that is no share may be that of the peak.
        if len(shares) == len(day.hours) and max(shares) != 1:
            message = "none of the shares is 1, which is the hour of the peak; divide all by the largest"
            yield Finding((*path, "hours"), message)


def stated_days(spec: Spec) -> Iterator[tuple[Path, Day]]:
    """Yield how rates change over a day, for each model and streaming job that says so, with its place."""
    for index, model in usable(spec.models):
        if model.workload is not None and model.workload.day is not None:
            yield ("spec", "models", index, "workload", "day"), model.workload.day
    for index, job in usable(spec.streaming):
        if job.workload is not None and job.workload.day is not None:
            yield ("spec", "streaming", index, "workload", "day"), job.workload.day


def with_days(spec: Spec, days: Mapping[Path, Day]) -> Spec:
    """Return the blueprint's section, which may have invalid values, with other days.

    days: Days by their place, as `stated_days` yields it.
    """
    changed: dict[str, list[Any]] = {}
    for (_, section, index, *_), day in days.items():
        items = changed.setdefault(str(section), [*getattr(spec, str(section))])
        item = items[int(index)]
        workload = item.workload.model_copy(update={"day": day})
        items[int(index)] = item.model_copy(update={"workload": workload})
    return spec.model_copy(update=changed)

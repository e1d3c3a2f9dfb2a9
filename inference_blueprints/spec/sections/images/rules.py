"""Rules on images in requests."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec.derived import divided
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Media, Model, Spec, TokenLengths
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding

_NO_TEXT = "a model with 'task: images' writes no text; remove it"
_SETTINGS = {
    "real_time": ("realTime", "calls with a deadline are planned for models that write text; remove it"),
    "speculation": ("speculation", _NO_TEXT),
    "chat": ("chat", _NO_TEXT),
    "parsers": ("parsers", _NO_TEXT),
    "kv_cache": ("kvCache", "a model with 'task: images' has no KV cache; remove it"),
}
_TOKENS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "shared_prefix_ratio": "sharedPrefixRatio",
}
_LOADS_OF_TOKENS = ("tokensInFlight", "kvCacheUse", "timeToFirstToken")


@rule
def workload_suits_the_task(spec: Spec) -> Iterator[Finding]:
    """Check that requests are stated in images for a model that makes them, and in tokens for all others."""
    for index, model in usable(spec.models):
        path, workload = ("spec", "models", index, "workload"), model.workload
        if workload is None:
            if model.makes_images:
                message = "got no 'workload', which states the images of requests; add it with 'images'"
                yield Finding(("spec", "models", index), message)
            continue
        if not model.makes_images:
            if workload.images is not None:
                message = (
                    f"got images with 'task: {model.task}'; remove it and state tokens, or set 'task: images'"
                )
                yield Finding((*path, "images"), message)
            if workload.input_tokens == 0:
                yield Finding(path, "got no 'inputTokens', the mean length of prompts; state it as 1 or more")
            continue
        if workload.images is None:
            message = "got no 'images'; state 'images: {size: 1024x1024, steps: …}' for 'task: images'"
            yield Finding(path, message)
        for name, key in _TOKENS.items():
            value = getattr(workload, name)
            if value := value.mean if isinstance(value, TokenLengths) else value:
                message = f"got {value:g}, but a workload of images is stated without tokens; remove it"
                yield Finding((*path, key), message)


@rule
def image_model_runs_on_vllm_omni(spec: Spec) -> Iterator[Finding]:
    """Check that models that make images run on vLLM-Omni, and no others do."""
    for index, model in usable(spec.models):
        path, engine = ("spec", "models", index), model.engine.chosen
        if model.makes_images and engine != "vllmOmni":
            message = (
                f"got {quote(engine)}, a model with 'task: images' runs only on vllmOmni here; set "
                "'engine: {vllmOmni: {}}'"
            )
            yield Finding((*path, "engine"), message)
        elif engine == "vllmOmni" and not model.makes_images:
            message = (
                f"got 'task: {model.task}' with the engine 'vllmOmni', which only makes images here; set "
                "'task: images', or the engine vllm"
            )
            yield Finding((*path, "engine"), message)


@rule
def image_model_is_a_pipeline(spec: Spec) -> Iterator[Finding]:
    """Check that the weights are those of a model that makes images, exactly with this task."""
    for index, model in usable(spec.models):
        entry = model.weights.entry
        if entry is None or model.makes_images == (entry.pipeline is not None):
            continue
        message = (
            f"got 'images' for {entry.name}, which makes none; name one of {listing(catalog.pipelines())}"
            if model.makes_images
            else f"got {quote(model.task)} for {entry.name}, which only makes images; set 'task: images'"
        )
        yield Finding(("spec", "models", index, "task"), message)


@rule
def image_size_suits_the_model(spec: Spec) -> Iterator[Finding]:
    """Check that the largest image consists of whole tokens, for which the model has positions."""
    for path, model in _making_images(spec):
        images, entry = model.workload.images if model.workload else None, model.weights.entry
        if images is None or entry is None or entry.pipeline is None:
            continue
        side = entry.pipeline.pixels_per_token
        maximum = side * entry.pipeline.side_tokens
        if max(images.width, images.height) > maximum:
            message = (
                f"got {quote(images.size)}, but {entry.name} has positions for {maximum} pixels "
                f"of width and of "
                f"height; set at most '{maximum}x{maximum}'"
            )
            yield Finding((*path, "workload", "images", "size"), message)
        elif images.width % side or images.height % side:
            message = (
                f"got {quote(images.size)}, but width and height of images of {entry.name} are multiples of "
                f"{side}; set '{_rounded(images.width, side)}x{_rounded(images.height, side)}'"
            )
            yield Finding((*path, "workload", "images", "size"), message)


@rule
def image_model_has_no_settings_of_text(spec: Spec) -> Iterator[Finding]:
    """Check that a model that makes images has no settings that have an effect only on text."""
    for path, model in _making_images(spec):
        for name, (key, message) in _SETTINGS.items():
            if getattr(model, name) is not None:
                yield Finding((*path, key), message)
        if model.weights.type is not None:
            message = (
                f"got {quote(model.weights.type)}, but weights of models that make images are planned in 16 "
                "bits; remove it"
            )
            yield Finding((*path, "weights", "type"), message)
        for each in model.objectives.stated:
            yield Finding((*path, "objectives", *each.path), _NO_TEXT)


@rule
def image_workers_are_whole(spec: Spec) -> Iterator[Finding]:
    """Check that a worker makes whole images, and that it scales by no load of tokens.

    ``vllm serve --omni`` refuses ``--data-parallel-size`` and ``--enable-expert-parallel``
    (``OmniServeCommand.validate`` in ``vllm_omni/entrypoints/cli/serve.py`` of vllm-omni 0.30.0).
    """
    for path, model in _making_images(spec):
        for index, deployment in usable(model.deployments):
            place = (*path, "deployments", index)
            workers = deployment.aggregated
            if workers is None:
                continue  # the rules on its stack report a deployment in two phases
            yield from divided(workers, (*place, "aggregated"), model.task)
            if workers.expert_parallel:
                message = "got true, but the engine refuses it for images; remove it"
                yield Finding((*place, "aggregated", "expertParallel"), message)
            scaled_by = workers.scaled_by
            metric = scaled_by.load.metric if scaled_by and scaled_by.load else None
            if metric in _LOADS_OF_TOKENS:
                message = (
                    f"got {quote(metric)}, but images have no tokens that are counted; set 'queueLength', or "
                    "remove it"
                )
                yield Finding((*place, "aggregated", "scaledBy", "load", "metric"), message)


@rule
def queues_of_images_have_no_settings_of_text(spec: Spec) -> Iterator[Finding]:
    """Check that queues and schedules of models that make images have no settings about text."""
    if spec.batch is None:
        return
    making = {model.name for _, model in _making_images(spec)}
    queues = {queue.name for _, queue in usable(spec.batch.queues) if queue.model in making}
    for index, queue in usable(spec.batch.queues):
        if queue.name in queues and queue.load is not None:
            message = (
                f"got a load for {quote(queue.model)}, but quotas are counted for answers in tokens, and "
                "this model makes images; remove it"
            )
            yield Finding(("spec", "batch", "queues", index, "load"), message)
        if queue.name in queues and queue.workload is not None:
            message = (
                f"got lengths in tokens, but model {quote(queue.model)} makes images; remove it: the images "
                "of requests are in the model's 'workload'"
            )
            yield Finding(("spec", "batch", "queues", index, "workload"), message)
    for index, schedule in usable(spec.batch.schedules):
        if schedule.queue in queues and schedule.manifest.signal is not None:
            message = (
                f"got {quote(schedule.manifest.signal)}, but a signal holds text, and jobs of queue "
                f"{quote(schedule.queue)} make images; remove it"
            )
            yield Finding(("spec", "batch", "schedules", index, "manifest", "signal"), message)


def _rounded(pixels: int, side: int) -> int:
    return max(side, pixels // side * side)


def _making_images(spec: Spec) -> Iterator[tuple[Path, Model]]:
    """Yield the models that make images with their places."""
    for index, model in usable(spec.models):
        if model.makes_images:
            yield ("spec", "models", index), model


@rule
def model_reads_images(spec: Spec) -> Iterator[Finding]:
    """Check that a model with images in requests can read images."""
    for path, model, _ in _with_media(spec):
        entry = _entry(model)
        if entry and not (entry.vision and entry.vision.limits_images):
            known = catalog.models().items()
            reading = [name for name, each in known if each.vision and each.vision.limits_images]
            why = "which reads only text" if entry.vision is None else "whose largest image is not known here"
            message = (
                f"got images for {entry.name}, {why}; remove 'media', or serve one of {listing(reading)}"
            )
            yield Finding(path, message)


@rule
def images_go_to_one_worker(spec: Spec) -> Iterator[Finding]:
    """Check that a model with images is not disaggregated."""
    for path, model, _ in _with_media(spec):
        for index, deployment in usable(model.deployments):
            if deployment.disaggregated:
                message = (
                    "got 'disaggregated', but both workers would fetch and encode a request's images; make "
                    "it 'aggregated', or remove 'media'"
                )
                yield Finding((*path[:-1], "deployments", index, "disaggregated"), message)


@rule
def image_has_the_model_s_tokens(spec: Spec) -> Iterator[Finding]:
    """Check that the tokens per image are right if the model scales all images to one size."""
    for path, model, media in _with_media(spec):
        entry = _entry(model)
        fixed = entry.vision.tokens_per_image if entry and entry.vision else 0
        if entry and fixed and media.tokens_per_image != fixed:
            message = (
                f"got {media.tokens_per_image}, but {entry.name} uses {fixed} tokens for every image; "
                f"set {fixed}"
            )
            yield Finding((*path, "tokensPerImage"), message)


@rule
def hosts_are_named(spec: Spec) -> Iterator[Finding]:
    """Check that hosts are names and not IP addresses, which could reach the internal network."""
    for path, _, media in _with_media(spec):
        for index, domain in usable(media.allowed_domains):
            if domain.rpartition(".")[2].isdigit():
                message = f"got {quote(domain)}, an IP address; name the host, such as images.example.com"
                yield Finding((*path, "allowedDomains", index), message)


def _with_media(spec: Spec) -> Iterator[tuple[Path, Model, Media]]:
    """Yield the models with images in requests, with the place of the section."""
    for index, model in usable(spec.models):
        if model.media:
            yield ("spec", "models", index, "media"), model, model.media


def _entry(model: Model) -> catalog.Model | None:
    return model.weights.entry

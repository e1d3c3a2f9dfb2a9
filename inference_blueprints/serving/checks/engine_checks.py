"""Checks of a model's engine and frontends: whether its stack runs it, its image, its options and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic.alias_generators import to_camel

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import changed_config
from inference_blueprints.serving.estimates.request_estimates import busy_cpu, frontend_size
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.traffic import deployment_traffic
from inference_blueprints.serving.weights_loading import STREAMING_ENGINES, can_stream
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.engine_files import RECORDABLE
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.wording import listing, quote, suggestion
from inference_contracts.errors import Finding

_Found = Iterator[tuple[tuple[str, ...], str]]


def engine_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine supports the source of the weights and the tiers of the KV cache.

    model_path: Path of the model in the blueprint.
    Yields: An error for each unsupported feature.
    """
    engine = model.engine.chosen
    if model.weights.s3 and not can_stream(model):
        message = (
            f"the image of {engine} cannot stream weights from S3; set weights.huggingFace, with 'mirror' to "
            f"copy it to S3, or the engine {' or '.join(STREAMING_ENGINES)}"
        )
        yield Finding((*model_path, "weights", "s3"), message)
    for tier in _tiers(model):
        if tier not in ENGINES[engine].kv_cache_tiers:
            keeping = " or ".join(name for name, each in ENGINES.items() if tier in each.kv_cache_tiers)
            message = f"{engine} does not support this tier here; leave it out, or set the engine {keeping}"
            yield Finding((*model_path, "kvCache", tier), message)


def _tiers(model: spec.Model) -> list[str]:
    """Return the used keys of ``kvCache``, spelled as in the YAML file."""
    cache = model.kv_cache
    return [to_camel(name) for name in type(cache).model_fields if getattr(cache, name)] if cache else []


def image_findings(
    model: spec.Model, known: Mapping[str, catalog.Engine], model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check the images of a model.

    known: Recorded releases of its engine.
    Yields: An error for a release that is not recorded or without Dynamo under Dynamo, and for a tag from
        which Dynamo's operator would read another release; a warning for each image without a digest.
    """
    name, image = model.engine.chosen, model.engine.section.image
    path = (*model_path, "engine", name, "image")
    on_dynamo = [release for release, engine in known.items() if engine.on_dynamo] if image else []
    if image and image.release not in known:
        releases = on_dynamo if model.stack.dynamo else [*known]
        recordable = name in RECORDABLE and not model.stack.dynamo
        record = f"; or record it: `blueprints engines record {name}==RELEASE`" if recordable else ""
        message = (
            f"got {quote(image.release)}, whose flags are not recorded"
            f"{suggestion(image.release, releases)}; known are {listing(releases)}{record}"
        )
        yield Finding((*path, "release"), message)
        return
    if image and model.stack.dynamo and image.release not in on_dynamo:
        others = [
            f"'stack: {{{each}: {{}}}}'"
            for each, stack in STACKS.items()
            if stack.runs_own_servers and name in stack.frameworks
        ]
        message = (
            f"got {quote(image.release)}, {name}'s own release, whose image has no Dynamo; set "
            f"{' or '.join(others)}, or {listing(on_dynamo)}"
        )
        yield Finding((*path, "release"), message)
        return
    release = image.release if image else None
    for text, place in _images(model, model_path):
        tag = text.split("@")[0].rpartition(":")[2]
        # Dynamo's operator reads the release from the tag.
        if model.stack.dynamo and release and not tag.startswith(release):
            message = f"got the tag {quote(tag)}, it must begin with the release {quote(release)}"
            yield Finding(place, message)
        elif "@" not in text:
            message = (
                f"got {quote(text)} without a digest, so its content can change; add '@sha256:…', which the "
                "registry shows"
            )
            yield Finding(place, message, severity="warning")


def _images(
    model: spec.Model, model_path: tuple[str | int, ...]
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield each image with its path."""
    image = model.engine.section.image
    if image and image.name:
        yield image.name, (*model_path, "engine", model.engine.chosen, "image", "name")
    if model.frontend and model.frontend.image:
        yield model.frontend.image, (*model_path, "frontend", "image")


def option_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine and the model support the options.

    Yields: An error for each option that would not work.
    """
    for found in (_kv_cache_type(model), _quantization(model), _speculation(model)):
        for path, message in found:
            yield Finding((*model_path, *path), message)


def _kv_cache_type(model: spec.Model) -> _Found:
    chosen, engine = model.kv_cache_type, ENGINES[model.engine.chosen]
    argument = engine.argument_names.kv_cache_type
    if chosen == "auto":
        return
    if chosen not in engine.kv_cache_types:
        allowed = ", ".join(("auto", *engine.kv_cache_types))
        yield ("kvCacheType",), f"got {quote(chosen)}, {model.engine.chosen} supports {allowed}"
    elif argument in model.engine.arguments:
        yield (
            ("kvCacheType",),
            f"got {quote(chosen)}, and the engine argument '{argument}' too; remove one of them",
        )


def _quantization(model: spec.Model) -> _Found:
    if model.quantization is None:
        return
    entry, got = model.weights.entry, f"got {quote(model.quantization)}"
    if model.quantization not in ENGINES[model.engine.chosen].online_types:
        able = " or ".join(name for name, each in ENGINES.items() if each.online_types)
        other = f"serve a quantised repository, or set the engine {able}"
        if model.makes_images or model.weights.gguf:
            other = "remove it, and name a smaller type of file" if model.weights.gguf else "remove it"
        yield (
            ("quantization",),
            f"{got}, but {model.engine.chosen} quantises no weights while it loads them here; {other}",
        )
    elif entry and entry.weight_type != "bf16":
        yield ("quantization",), f"{got}, but the weights are {entry.weight_type} already; remove it"


def _speculation(model: spec.Model) -> _Found:
    if model.speculation is None:
        return
    chosen, entry = model.speculation.chosen, model.weights.entry
    path = ("speculation", chosen)
    if chosen not in ENGINES[model.engine.chosen].speculation_methods:
        able = " or ".join(name for name, each in ENGINES.items() if chosen in each.speculation_methods)
        yield path, f"{model.engine.chosen} does not support it here; leave it out, or set the engine {able}"
    elif chosen == "mtp" and entry and not entry.predicted_layers:
        yield path, f"{entry.name} has no layers for multi-token prediction; remove it, or set nGram"
    if model.kv_cache:
        yield path, "'kvCache' is not supported with speculation here; remove one of them"
    for _, deployment in usable(model.deployments):
        stages = [each.pipeline_parallel_size for each in deployment.workers.values()]
        if deployment.disaggregated or max(stages, default=1) > 1:
            yield (
                path,
                f"the deployment {quote(deployment.name)} has separate workers or pipeline stages, which are "
                "not supported with speculation here; make it 'aggregated' with pipelineParallelSize 1",
            )


def memory_argument_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the memory estimate models every engine argument of a model.

    Otherwise the plan's KV cache, its number of concurrent requests and its prices would be wrong, and the
    engine could run out of memory after it was deployed.
    """
    engine = model.engine.chosen
    unmodelled = catalog.memory_arguments(engine)
    for name, value in model.engine.arguments.items():
        argument = unmodelled.get(name)
        if argument is None or not argument.changes_memory(value):
            continue
        message = (
            f"'{name}' {argument.effect}, and the plan's memory estimate does not model this; "
            f"{argument.remedy}"
        )
        if argument.values:
            message = (
                f"got {value!r}, which {argument.effect}, and the plan's memory estimate models only "
                f"{', '.join(argument.values)}; {argument.remedy}"
            )
        yield Finding((*model_path, "engine", engine, "args", name), message)
    yield from _config_findings(model, model_path)


#: Keys of a config.json from which the catalogue's entries count layers, heads and memory.
_SHAPE_KEYS = (
    *("architectures", "model_type", "num_hidden_layers", "hidden_size", "vocab_size", "layer_types"),
    *("num_attention_heads", "num_key_value_heads", "head_dim", "kv_lora_rank", "sliding_window"),
    *("intermediate_size", "moe_intermediate_size", "num_experts", "num_local_experts", "n_routed_experts"),
)
_FORMAT_KEYS = ("quantization_config", "compression_config")
_TYPES = ("auto", "half", "float16", "bfloat16")


def _config_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check what arguments in JSON change in the repository's config.json, as the plain arguments are."""
    arguments = model.engine.arguments
    changed = changed_config(arguments)
    name = "hf-overrides" if "hf-overrides" in arguments else "json-model-override-args"
    path = (*model_path, "engine", model.engine.chosen, "args", name)
    for key in _FORMAT_KEYS:
        if changed.get(key):
            yield Finding(
                path,
                f"got {quote(key)}, which changes the size of the weights, and the plan's memory estimate "
                "does not model this; set 'quantization' of the model, or serve a repository whose weights "
                "have that type",
            )
    for key in ("dtype", "torch_dtype"):
        if (value := changed.get(key, "auto")) not in _TYPES:
            message = (
                f"got {key} {value!r}, which changes the size of weights and KV cache, and the plan's memory "
                f"estimate models only {', '.join(_TYPES)}; leave it out"
            )
            yield Finding(path, message)
    if shape := [key for key in _SHAPE_KEYS if key in changed]:
        message = (
            f"got {listing(shape)}, which changes the model's layers: memory, speed and prices are those of "
            "its catalogue entry; make an entry from the changed config.json with `blueprints models add`"
        )
        yield Finding(path, message, "warning")


def frontend_findings(
    whole: spec.Spec, model: spec.Model, deployment: spec.Deployment, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Warn if the frontends of a deployment have fewer vCPUs than the peak needs.

    whole: The blueprint's section.
    """
    if model.frontend is None or model.stack.dynamo is None:
        return
    traffic = deployment_traffic(whole, model, deployment)
    size, busy = frontend_size(model, traffic), busy_cpu(traffic)
    if busy > size.replicas * size.cpu:
        message = (
            f"got {size.replicas} x {size.cpu} vCPUs, the peak of 'workload' needs {busy:.1f} in deployment "
            f"'{deployment.name}'; raise 'replicas' or 'cpu', or leave them out"
        )
        yield Finding((*model_path, "frontend"), message, severity="warning")

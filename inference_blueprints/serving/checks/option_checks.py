"""Checks of a model's options: type of the KV cache, quantisation while loading, speculative decoding."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding

_Found = Iterator[tuple[tuple[str, ...], str]]


def option_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine and the model support the options.

    Parameters
    ----------
    model_path
        Path of the model in the blueprint.

    Yields
    ------
    Finding
        An error for each option that would not work.
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

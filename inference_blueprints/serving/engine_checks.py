"""Whether an engine can do what the rest of the model asks of it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from inference_blueprints.errors import Finding
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec import types as spec


def engine_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine reads weights from where they are, and keeps KV cache where it is to be.

    Parameters
    ----------
    model
        The blueprint's section.
    model_path
        Its place in the blueprint.

    Yields
    ------
    Finding
        An error for each thing that it cannot do.
    """
    engine = model.engine.chosen
    if model.weights.is_streamed and not ENGINES[engine].STREAMS_WEIGHTS:
        place = "s3" if model.weights.s3 else "mirror"
        streaming = " or ".join(name for name, module in ENGINES.items() if module.STREAMS_WEIGHTS)
        message = (
            f"the image of {engine} cannot stream weights from S3; set weights.huggingFace without a mirror, "
            f"or the engine {streaming}"
        )
        yield Finding((*model_path, "weights", place), message)
    for tier in _tiers(model):
        if tier not in ENGINES[engine].KV_CACHE_TIERS:
            keeping = " or ".join(name for name, module in ENGINES.items() if tier in module.KV_CACHE_TIERS)
            message = f"{engine} is not set up for it here; leave it out, or set the engine {keeping}"
            yield Finding((*model_path, "kvCache", tier), message)


def _tiers(model: spec.Model) -> list[str]:
    """Return the keys of ``kvCache`` that are given, as the YAML file spells them."""
    cache = model.kv_cache
    return [to_camel(name) for name in type(cache).model_fields if getattr(cache, name)] if cache else []

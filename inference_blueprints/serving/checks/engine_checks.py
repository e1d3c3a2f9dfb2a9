"""Checks that an engine supports what the rest of the model requires."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.weights_loading import STREAMING_ENGINES, can_stream
from inference_blueprints.spec import types as spec
from inference_contracts.errors import Finding


def engine_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine supports the source of the weights and the tiers of the KV cache.

    Parameters
    ----------
    model_path
        Path of the model in the blueprint.

    Yields
    ------
    Finding
        An error for each unsupported feature.
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

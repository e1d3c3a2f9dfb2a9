"""Whether an engine can do what the rest of the model asks of it."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.errors import Finding
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec import types as spec


def engine_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the engine reads weights from where they are.

    Parameters
    ----------
    model
        The blueprint's section.
    model_path
        Its place in the blueprint.

    Yields
    ------
    Finding
        At most one error.
    """
    engine = model.engine.chosen
    if not model.weights.is_streamed or ENGINES[engine].STREAMS_WEIGHTS:
        return
    place = "s3" if model.weights.s3 else "mirror"
    streaming = " or ".join(name for name, module in ENGINES.items() if module.STREAMS_WEIGHTS)
    message = (
        f"the image of {engine} cannot stream weights from S3; set weights.huggingFace without a mirror, or "
        f"the engine {streaming}"
    )
    yield Finding((*model_path, "weights", place), message)

"""Refuses engine arguments that change device memory in a way that the plan does not model."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec import types as spec
from inference_contracts.errors import Finding


def memory_argument_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the memory estimate models every engine argument of a model.

    Otherwise the plan's KV cache, its number of concurrent requests and its prices would be wrong, and the
    engine could run out of memory after it was deployed.

    Parameters
    ----------
    model_path
        Path of the model in the blueprint.
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

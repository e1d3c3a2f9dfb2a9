"""Checks that the frontends that a blueprint sizes itself carry the stated peak."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.serving.estimates.frontend_size import busy_cpu, frontend_size
from inference_blueprints.spec import types as spec
from inference_contracts.errors import Finding


def frontend_findings(
    model: spec.Model, deployment: spec.Deployment, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Warn if the frontends of a deployment have fewer vCPUs than the peak needs.

    Parameters
    ----------
    model_path
        Path of the model in the blueprint.
    """
    if model.frontend is None or model.stack.dynamo is None:
        return
    size, busy = frontend_size(model, deployment), busy_cpu(model, deployment)
    if busy > size.replicas * size.cpu:
        message = (
            f"got {size.replicas} x {size.cpu} vCPUs, the peak of 'workload' needs {busy:.1f} in deployment "
            f"'{deployment.name}'; raise 'replicas' or 'cpu', or leave them out"
        )
        yield Finding((*model_path, "frontend"), message, severity="warning")

"""The certificate of the cluster's Prometheus, and the front door that it reads, as values of its chart."""

from __future__ import annotations

from typing import Any

from inference_blueprints.render.callers.keeper import (
    KEEPER,
    KEEPER_COMMAND,
    KEEPER_MILLICPU,
    READY_COMMAND,
    keeper_environment,
    keeper_image,
    prometheus_tls,
)
from inference_blueprints.render.eks.front_door_values import DOOR_NAMESPACE
from inference_blueprints.serving.stacks.known_callers import KEEPER_MEMORY_MIB
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts.door_identities import FOLDER
from inference_contracts.door_names import DOOR_ROLE, METRICS_PORT


def scraped_door(door: DoorPlan | None) -> dict[str, Any] | None:
    """Return where Prometheus finds the replicas of the front door; None without one."""
    if door is None:
        return None
    return {
        "namespace": DOOR_NAMESPACE,
        "port": METRICS_PORT,
        "role": DOOR_ROLE,
        "tls": prometheus_tls(door.host_name),
    }


def prometheus_certificate(secret_arn: str | None) -> dict[str, Any] | None:
    """Return the container that keeps the certificate, and how Prometheus uses it; None without one.

    secret_arn: ARN of its secret. None without a front door.
    """
    if secret_arn is None:
        return None
    memory = f"{KEEPER_MEMORY_MIB}Mi"
    container = {
        "name": KEEPER,
        "image": keeper_image(),
        "restartPolicy": "Always",
        "command": list(KEEPER_COMMAND),
        "env": [
            {"name": name, "value": value} for name, value in sorted(keeper_environment(secret_arn).items())
        ],
        "startupProbe": {
            "exec": {"command": list(READY_COMMAND)},
            "periodSeconds": 2,
            "failureThreshold": 450,
        },
        "resources": {
            "requests": {"cpu": f"{KEEPER_MILLICPU}m", "memory": memory},
            "limits": {"memory": memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": KEEPER, "mountPath": FOLDER}],
    }
    return {"container": container, "folder": FOLDER, "tls": prometheus_tls()}

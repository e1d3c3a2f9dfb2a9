"""A small plan of a front door."""

from __future__ import annotations

from inference_blueprints.serving.types.front_door import DoorCluster, DoorKeySet, DoorPlan
from inference_contracts.door_configuration import DoorConfiguration


def small_plan(
    key_sets: tuple[DoorKeySet, ...] = (),
    largest_body_bytes: int = 1024 * 1024,
    trace_ratio: float | None = None,
) -> DoorPlan:
    """Return a plan with two clusters."""
    configuration = DoorConfiguration(
        platform="example", models=(), teams=(), budgets=(), issuers=(), api_keys=True
    )
    return DoorPlan(
        host_name="api.example.com",
        configuration=configuration,
        clusters=tuple(DoorCluster(name, name, "main", 8000) for name in ("one", "two")),
        key_sets=key_sets,
        replicas=2,
        vcpus=1.0,
        memory_mib=1024,
        largest_body_bytes=largest_body_bytes,
        trace_ratio=trace_ratio,
    )

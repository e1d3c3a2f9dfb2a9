"""Workers on a node, and what stops the next one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.report.plan.sections.fits import pod_fit
from tests.unit.plan_samples import ChangedScene


@pytest.mark.parametrize(
    ("changes", "workers", "limited_by", "stranded"),
    [
        # g6e.48xlarge: 8 devices, 191 vCPUs for workers.
        ({"cpu": 4}, 8, "devices", 0),
        # 191 // 60 = 3 workers: 5 devices without one.
        ({"cpu": 60}, 3, "vCPUs", 5),
        # About 1.4 million MiB // 400,000 = 3.
        ({"memory_mib": 400_000}, 3, "memory", 5),
        # 4 interfaces // 2 = 2.
        ({"efa_interfaces": 2}, 2, "EFA interfaces", 6),
    ],
)
def test_what_stops_the_next_worker(
    changed: ChangedScene, changes: dict[str, Any], workers: int, limited_by: str, stranded: int
) -> None:
    scene = changed(lambda spec: spec)
    process = scene.plan.models[0].deployments[0].processes[1]
    resources = dataclasses.replace(process.resources, **({"cpu": 1, "memory_mib": 1024} | changes))
    process = dataclasses.replace(process, resources=resources)
    fit = pod_fit("l40s", "m", "main", process, catalog.instance_type("g6e.48xlarge"))
    assert (fit.workers_per_node, fit.limited_by, fit.stranded_devices) == (workers, limited_by, stranded)


def test_a_plan_strands_nothing_by_its_own_sizes(scene: Scene) -> None:
    for model in scene.plan.models:
        for deployment in model.deployments:
            for process in deployment.processes:
                if process.pool:
                    pool = next(each for each in scene.blueprint.spec.pools if each.name == process.pool)
                    kinds = map(catalog.instance_type, pool.instance_types)
                    fits = [pod_fit(pool.name, model.name, deployment.name, process, kind) for kind in kinds]
                    assert [fit.stranded_devices for fit in fits] == [0] * len(fits)

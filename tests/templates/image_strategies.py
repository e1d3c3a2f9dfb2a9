"""How the nodes of drawn pools get their images."""

from __future__ import annotations

from typing import Any

from inference_catalog.catalogue import shipped

Document = dict[str, Any]

FROM_SNAPSHOT = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
IMAGE_ACCELERATIONS = [{"sociParallelPull": {}}, {"ebsSnapshot": {}}, FROM_SNAPSHOT]


def pull_where_no_snapshot_can_be(pools: list[Document], models: list[Document]) -> None:
    """Take the snapshot from pools whose nodes may need AL2023, which starts from none.

    These have EFA and separate roles, or types that Bottlerocket does not boot on.
    """
    apart = {
        workers["pool"]
        for model in models
        for deployment in model["deployments"]
        for workers in deployment.get("disaggregated", {}).values()
    }
    for pool in pools:
        families = {name.split(".")[0] for name in pool["instanceTypes"]}
        moves = pool.get("efa") and pool["name"] in apart
        needs_al2023 = moves or families & shipped().bottlerocket.unbootable_families.keys()
        if needs_al2023 and "ebsSnapshot" in pool.get("imageAcceleration", {}):
            pool["imageAcceleration"] = {"sociParallelPull": {}}

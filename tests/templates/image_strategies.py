"""How the nodes of drawn pools get their images."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

FROM_SNAPSHOT = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
IMAGE_ACCELERATIONS = [{"sociParallelPull": {}}, {"ebsSnapshot": {}}, FROM_SNAPSHOT]


def pull_where_kv_cache_moves(pools: list[Document], models: list[Document]) -> None:
    """Take the snapshot from pools with EFA and separate roles: they may need nodes that start from none."""
    apart = {
        workers["pool"]
        for model in models
        for deployment in model["deployments"]
        for workers in deployment.get("disaggregated", {}).values()
    }
    for pool in pools:
        if pool.get("efa") and pool["name"] in apart and "ebsSnapshot" in pool.get("imageAcceleration", {}):
            pool["imageAcceleration"] = {"sociParallelPull": {}}

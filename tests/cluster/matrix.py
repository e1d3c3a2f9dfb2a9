"""One blueprint of every kind of pool, in a network that was there before: a row a pool, with its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NAME = "every-kind-of-pool"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
_REVISION = "b968826d9c46dd6066d109eabc6255188de91218"
#: As many as a model may have.
_DEPLOYMENTS_OF_A_MODEL = 5


@dataclass(frozen=True, slots=True)
class Pool:
    """A row."""

    fields: dict[str, Any]
    """The blueprint's, beside name and nodes."""
    workers: dict[int, int]
    """Replicas by the accelerators of one."""
    nodes: dict[str, int]
    """Of the blueprint."""
    disaggregated: bool = False
    """Whether as many workers do prefill as decode, and KV cache moves between them."""

    @property
    def is_reserved(self) -> bool:
        """Whether its nodes come out of reserved capacity alone."""
        return bool({"reservation", "capacityBlock"} & set(self.fields.get("purchase", {})))


def _pool(*types: str, workers: dict[int, int], nodes: dict[str, int] | None = None, **fields: Any) -> Pool:
    return Pool({"instanceTypes": list(types), **fields}, workers, nodes or {"max": 2})


POOLS = {
    "g6": _pool("g6.12xlarge", workers={2: 2}),
    "g6e": _pool("g6e.2xlarge", workers={1: 2}),
    "g6e-mixed": _pool("g6e.12xlarge", "g6e.24xlarge", workers={2: 2}),
    "g6e-spot": _pool("g6e.4xlarge", workers={1: 2}, purchase={"spot": {}}),
    "g6e-spot-first": _pool(
        "g6e.xlarge", "g6e.2xlarge", workers={1: 2}, purchase={"spot": {"onDemandFallback": True}}
    ),
    "g6e-efa": _pool("g6e.24xlarge", workers={2: 2}, efa=True, availabilityZone=ZONES[0]),
    "g6e-in-a-zone": _pool("g6e.2xlarge", workers={1: 2}, availabilityZone=ZONES[2]),
    "g6e-kept": _pool("g6e.2xlarge", workers={1: 3}, nodes={"min": 1, "max": 3}),
    "g6e-marked": _pool(
        "g6e.2xlarge",
        workers={1: 2},
        labels={"team": "ads"},
        taints=[{"key": "team", "value": "ads"}, {"key": "slow", "effect": "PreferNoSchedule"}],
    ),
    "g7e": _pool("g7e.2xlarge", workers={1: 2}),
    "p4d": _pool("p4d.24xlarge", workers={4: 2}),
    "p5": _pool("p5.48xlarge", workers={4: 2}),
    "p5-block": _pool(
        "p5.48xlarge",
        workers={8: 2},
        nodes={"min": 2, "max": 2},
        purchase={"capacityBlock": {"id": "cr-0a1b2c3d4e5f60718"}},
        availabilityZone=ZONES[1],
        efa=True,
    ),
    "p5-one": _pool("p5.4xlarge", workers={1: 2}),
    "p5e": _pool("p5e.48xlarge", workers={1: 6, 2: 5, 4: 2}, nodes={"max": 3}),
    "p5en": _pool("p5en.48xlarge", workers={1: 12, 4: 1}),
    "p5en-disaggregated": Pool(
        {"instanceTypes": ["p5en.48xlarge"], "efa": True, "availabilityZone": ZONES[0]},
        workers={2: 2},
        nodes={"max": 2},
        disaggregated=True,
    ),
    "p5en-reserved": _pool(
        "p5en.48xlarge",
        workers={4: 2},
        purchase={"reservation": {"tags": {"team": "ads"}}},
        availabilityZone=ZONES[1],
        efa=True,
    ),
    "p5en-snapshot": _pool(
        "p5en.48xlarge",
        workers={4: 2},
        imageAcceleration={"ebsSnapshot": {"id": "snap-0a1b2c3d4e5f60718"}},
    ),
    "p6-b200": _pool("p6-b200.48xlarge", workers={4: 2}),
    "p6-b300": _pool("p6-b300.48xlarge", workers={4: 2}, efa=True, availabilityZone=ZONES[0]),
}


def document() -> dict[str, Any]:
    """The blueprint: workers on every pool; the first model is mirrored to the platform's bucket."""
    deployments = [
        {"name": f"{name}-{size}", **_topology(pool, name, size, replicas)}
        for name, pool in POOLS.items()
        for size, replicas in pool.workers.items()
    ]
    starts = range(0, len(deployments), _DEPLOYMENTS_OF_A_MODEL)
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "matrix"},
        "spec": {
            "environment": {"region": "us-west-2", "availabilityZones": list(ZONES)},
            "network": {
                "existing": {
                    "vpcId": "vpc-0a1b2c3d",
                    "vpcCidr": "10.0.0.0/16",
                    "privateSubnetIds": [f"subnet-0a1b2c3{number}" for number in range(len(ZONES))],
                },
                "domain": "models.example.com",
            },
            "cluster": {"eks": {"version": "1.35"}},
            "queueing": {"kueue": {"borrowing": {}}},
            "pools": [{"name": name, "nodes": pool.nodes, **pool.fields} for name, pool in POOLS.items()],
            "models": [
                _model(number, deployments[start : start + _DEPLOYMENTS_OF_A_MODEL])
                for number, start in enumerate(starts)
            ],
        },
    }


def _topology(pool: Pool, name: str, size: int, replicas: int) -> dict[str, Any]:
    workers = {"pool": name, "replicas": replicas, "tensorParallelSize": size}
    if not pool.disaggregated:
        return {"aggregated": workers}
    return {"disaggregated": {"prefill": workers, "decode": workers}}


def _model(number: int, deployments: list[dict[str, Any]]) -> dict[str, Any]:
    mirror: dict[str, Any] = {"mirror": {}} if number == 0 else {}
    return {
        "name": f"model-{number}",
        "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": _REVISION, **mirror},
        "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
        "deployments": deployments,
    }

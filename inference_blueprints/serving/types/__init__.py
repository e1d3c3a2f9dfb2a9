"""The serving plan: every process that serves a model, decided once and independent of where it runs.

Chart values, ECS task definitions and local processes are renderings of these types. Discovery and addresses
are the target's business: a process only says that it needs its own address or that of a peer.
"""

from __future__ import annotations

from inference_blueprints.serving.types.plan import (
    DeploymentPlan,
    EndpointPicker,
    KvTransfer,
    ModelPlan,
    ServingPlan,
    SharedKvCachePlan,
    WeightsMirror,
)
from inference_blueprints.serving.types.process import (
    Accelerators,
    Architecture,
    EngineSettings,
    HttpProbe,
    Neighbour,
    Port,
    Probes,
    Process,
    Resources,
    Role,
    Rollout,
    Sidecar,
    Toleration,
)
from inference_blueprints.serving.types.values import (
    EnvironmentValue,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    SecretValue,
    WeightsBucket,
)

__all__ = [
    "Accelerators",
    "Architecture",
    "DeploymentPlan",
    "EndpointPicker",
    "EngineSettings",
    "EnvironmentValue",
    "HttpProbe",
    "KvCacheBucket",
    "KvTransfer",
    "ModelPlan",
    "Neighbour",
    "OwnAddress",
    "PeerAddress",
    "Port",
    "Probes",
    "Process",
    "Resources",
    "Role",
    "Rollout",
    "SecretValue",
    "ServingPlan",
    "SharedKvCachePlan",
    "Sidecar",
    "Toleration",
    "WeightsBucket",
    "WeightsMirror",
]

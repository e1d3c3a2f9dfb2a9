"""The serving plan: every process that serves a model, independent of the target that runs it.

Chart values and local processes are rendered from these types. The target adds discovery and addresses: the
plan only contains placeholders for a process's own address and for the address of a peer.
"""

from __future__ import annotations

from inference_blueprints.serving.types.kept_artefacts import CompiledArtefacts
from inference_blueprints.serving.types.ports import EnginePort, Port
from inference_blueprints.serving.types.process import (
    Accelerators,
    Architecture,
    Capability,
    EngineSettings,
    HttpProbe,
    Neighbour,
    NodeCache,
    NodeCacheBase,
    Probes,
    Process,
    ProcessBase,
    Resources,
    Role,
    Rollout,
    Sidecar,
    Toleration,
)
from inference_blueprints.serving.types.scaling import MetricType, ReplicaFloor, ScaleTrigger, Scaling
from inference_blueprints.serving.types.serving_plan import (
    ApproximatePicker,
    DeploymentPlan,
    EndpointPicker,
    KvTransfer,
    ModelPlan,
    PrecisePicker,
    ServingPlan,
    SharedKvCachePlan,
    WeightsMirrorPlan,
)
from inference_blueprints.serving.types.values import (
    EnvironmentValue,
    FilePath,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    SecretValue,
    WeightsBucket,
)

__all__ = [
    "Accelerators",
    "ApproximatePicker",
    "Architecture",
    "Capability",
    "CompiledArtefacts",
    "DeploymentPlan",
    "EndpointPicker",
    "EnginePort",
    "EngineSettings",
    "EnvironmentValue",
    "FilePath",
    "HttpProbe",
    "KvCacheBucket",
    "KvTransfer",
    "MetricType",
    "ModelPlan",
    "Neighbour",
    "NodeCache",
    "NodeCacheBase",
    "OwnAddress",
    "PeerAddress",
    "Port",
    "PrecisePicker",
    "Probes",
    "Process",
    "ProcessBase",
    "ReplicaFloor",
    "Resources",
    "Role",
    "Rollout",
    "ScaleTrigger",
    "Scaling",
    "SecretValue",
    "ServingPlan",
    "SharedKvCachePlan",
    "Sidecar",
    "Toleration",
    "WeightsBucket",
    "WeightsMirrorPlan",
]

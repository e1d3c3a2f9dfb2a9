"""The blueprint's types: what a YAML file may say, and nothing more.

A section that is not named is off. Choices are one-of by key (``eks``, ``aggregated``), never a type field.
Defaults that production needs are on. Keys are camelCase in YAML and snake_case here.
"""

from __future__ import annotations

from typing import Literal

from inference_blueprints.spec.types.blueprint import Blueprint, Spec
from inference_blueprints.spec.types.environment import (
    Cluster,
    EksCluster,
    Environment,
    ExistingNetwork,
    Metadata,
    Network,
)
from inference_blueprints.spec.types.models import (
    Deployment,
    Disaggregated,
    DynamoStack,
    Engine,
    KvAwareRouting,
    Mirror,
    Model,
    Objectives,
    RoundRobinRouting,
    Routing,
    Stack,
    VllmEngine,
    Weights,
    Workers,
    Workload,
)
from inference_blueprints.spec.types.pools import (
    Disk,
    NodeCount,
    OnDemand,
    Pool,
    Purchase,
    ReservedCapacity,
    Spot,
    Taint,
)
from inference_blueprints.spec.types.queueing import Borrowing, Kueue, Queueing
from inference_blueprints.spec.types.section import (
    AccountId,
    ArgumentValue,
    AvailabilityZone,
    CapacityReservationId,
    CertificateArn,
    Choice,
    Cidr,
    Domain,
    HuggingFaceRepository,
    InstanceTypeName,
    KubernetesVersion,
    LabelValue,
    Name,
    QualifiedName,
    Region,
    Revision,
    S3Prefix,
    SecretArn,
    Section,
    SubnetId,
    VpcId,
)

API_VERSION: Literal["inference-blueprints/v1alpha1"] = "inference-blueprints/v1alpha1"
KIND: Literal["Blueprint"] = "Blueprint"

__all__ = [
    "API_VERSION",
    "KIND",
    "AccountId",
    "ArgumentValue",
    "AvailabilityZone",
    "Blueprint",
    "Borrowing",
    "CapacityReservationId",
    "CertificateArn",
    "Choice",
    "Cidr",
    "Cluster",
    "Deployment",
    "Disaggregated",
    "Disk",
    "Domain",
    "DynamoStack",
    "EksCluster",
    "Engine",
    "Environment",
    "ExistingNetwork",
    "HuggingFaceRepository",
    "InstanceTypeName",
    "KubernetesVersion",
    "Kueue",
    "KvAwareRouting",
    "LabelValue",
    "Metadata",
    "Mirror",
    "Model",
    "Name",
    "Network",
    "NodeCount",
    "Objectives",
    "OnDemand",
    "Pool",
    "Purchase",
    "QualifiedName",
    "Queueing",
    "Region",
    "ReservedCapacity",
    "Revision",
    "RoundRobinRouting",
    "Routing",
    "S3Prefix",
    "SecretArn",
    "Section",
    "Spec",
    "Spot",
    "Stack",
    "SubnetId",
    "Taint",
    "VllmEngine",
    "VpcId",
    "Weights",
    "Workers",
    "Workload",
]

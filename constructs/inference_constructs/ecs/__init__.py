"""Workers that run as Amazon ECS tasks."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.ecs.discovery_certificates import DiscoveryCertificates
    from inference_constructs.ecs.discovery_member import (
        DiscoveryFiles,
        DiscoveryMember,
        MemberPlace,
    )
    from inference_constructs.ecs.discovery_roles import DiscoveryRoles
    from inference_constructs.ecs.group_capacity import GroupCapacity
    from inference_constructs.ecs.host_launch_template import HostLaunchTemplate, HostProperties
    from inference_constructs.ecs.host_role import HostRole
    from inference_constructs.ecs.host_start import host_user_data
    from inference_constructs.ecs.inference_ecs_cluster import InferenceEcsCluster
    from inference_constructs.ecs.managed_capacity import ManagedCapacity, ManagedHostRoles
    from inference_constructs.ecs.serving_service import (
        HostService,
        LoadTarget,
        RoleScaling,
        ServiceNetwork,
        ServiceProperties,
        ServiceTarget,
        ServingService,
        TaskFloor,
    )
    from inference_constructs.ecs.task_roles import ExecutionRole, TaskRole, execute_command
    from inference_constructs.ecs.task_scaling import TaskScaling
    from inference_constructs.ecs.weights_mirror_build import WeightsMirrorBuild
    from inference_constructs.ecs.worker_service import WorkerCluster, WorkerService
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "DiscoveryCertificates",
    "DiscoveryFiles",
    "DiscoveryMember",
    "DiscoveryRoles",
    "ExecutionRole",
    "GroupCapacity",
    "HostLaunchTemplate",
    "HostProperties",
    "HostRole",
    "HostService",
    "InferenceEcsCluster",
    "LoadTarget",
    "ManagedCapacity",
    "ManagedHostRoles",
    "MemberPlace",
    "RoleScaling",
    "ServiceNetwork",
    "ServiceProperties",
    "ServiceTarget",
    "ServingService",
    "TaskFloor",
    "TaskRole",
    "TaskScaling",
    "WeightsMirrorBuild",
    "WorkerCluster",
    "WorkerService",
    "execute_command",
    "host_user_data",
]

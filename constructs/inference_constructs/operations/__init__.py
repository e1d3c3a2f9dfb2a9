"""Operations: the controllers that watch a platform and change it, on EKS and on ECS."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.operations.controlled_cluster import ControlledCluster
    from inference_constructs.operations.controller_alarms import ControllerAlarms
    from inference_constructs.operations.controller_function import ShiftController
    from inference_constructs.operations.controller_place import ControllerPlace
    from inference_constructs.operations.ecs_controlled_cluster import EcsControlledCluster
    from inference_constructs.operations.eks_controlled_cluster import EksControlledCluster
    from inference_constructs.operations.health_controller import HealthController
    from inference_constructs.operations.operations_dashboard import OperationsDashboard
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "ControlledCluster",
    "ControllerAlarms",
    "ControllerPlace",
    "EcsControlledCluster",
    "EksControlledCluster",
    "HealthController",
    "OperationsDashboard",
    "ShiftController",
]

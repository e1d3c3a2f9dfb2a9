"""Operations: what the controllers of a platform share, and GPU health."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.operations.controlled_cluster import ControlledCluster, EcsControlledCluster
    from inference_constructs.operations.controller_alarms import ControllerAlarms
    from inference_constructs.operations.controller_place import ControllerPlace
    from inference_constructs.operations.health_controller import HealthController
    from inference_constructs.operations.host_access import HostAccess
    from inference_constructs.operations.node_access import NodeAccess
    from inference_constructs.operations.operations_dashboard import OperationsDashboard
    from inference_constructs.operations.shift_controller import ShiftController
    from inference_constructs.operations.shift_function import SHIFT_DOCUMENT, ShiftFunction
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "SHIFT_DOCUMENT",
    "ControlledCluster",
    "ControllerAlarms",
    "ControllerPlace",
    "EcsControlledCluster",
    "HealthController",
    "HostAccess",
    "NodeAccess",
    "OperationsDashboard",
    "ShiftController",
    "ShiftFunction",
]

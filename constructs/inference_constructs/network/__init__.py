"""The VPC, its endpoints, and the models' load balancer."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.network.cluster_vpc import ClusterVpc
    from inference_constructs.network.load_balancer_controller_identity import LoadBalancerControllerIdentity
    from inference_constructs.network.model_load_balancer import Gateway, ModelLoadBalancer
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = ["ClusterVpc", "Gateway", "LoadBalancerControllerIdentity", "ModelLoadBalancer"]

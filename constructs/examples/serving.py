"""A model on Kubernetes: its pods may read its weights, and its host name leads to them."""

import aws_cdk as cdk

from inference_constructs.eks import KubectlAccess
from inference_constructs.network import Gateway
from inference_constructs.serving import Backend, ModelRoute, WeightsIdentity

app = cdk.App()
stack = cdk.Stack(app, "Model", env=cdk.Environment(account="111122223333", region="us-west-2"))

access = KubectlAccess(
    cluster_name="search",
    service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
    handler_role_arn="arn:aws:iam::111122223333:role/kubectl",
)
WeightsIdentity(
    stack,
    "Weights",
    cluster_name="search",
    namespace="models",
    service_accounts=["qwen3-8b"],
    s3_prefix="s3://weights-111122223333/qwen3-8b",
)
# In the stack of the network: gateway = ModelLoadBalancer(...).gateway
gateway = Gateway(
    vpc_id="vpc-0123456789abcdef0",
    listener_arn="arn:aws:elasticloadbalancing:us-west-2:111122223333:listener/app/models/0123/4567",
    zone_name="models.internal",
    scheme="http",
    security_group_id="sg-0123456789abcdef0",
)
ModelRoute(
    stack,
    "Route",
    cluster=access.import_cluster(stack),
    namespace="models",
    host_name="qwen3-8b.models.internal",
    gateway=gateway,
    priority=1,
    backends=[
        Backend(
            name="main",
            port=8000,
            health_path="/health",
            weight=100,
            drain_seconds=300,
            release="qwen3-8b-main",
            service="qwen3-8b-main",
        )
    ],
)

app.synth()

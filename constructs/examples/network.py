"""A VPC for models, and their load balancer: every name below models.internal leads to it."""

import aws_cdk as cdk

from inference_constructs.network import ClusterVpc, ModelLoadBalancer
from inference_constructs.storage import LogBucket

app = cdk.App()
stack = cdk.Stack(app, "Network", env=cdk.Environment(account="111122223333", region="us-west-2"))

logs = LogBucket(stack, "Logs")
vpc = ClusterVpc(
    stack,
    "Vpc",
    cidr="10.0.0.0/16",
    availability_zones=["us-west-2a", "us-west-2b", "us-west-2c"],
    log_bucket=logs,
)
models = ModelLoadBalancer(stack, "Models", vpc=vpc, zone_name="models.internal", log_bucket=logs)
cdk.CfnOutput(stack, "ListenerArn", value=models.gateway.listener_arn)

app.synth()

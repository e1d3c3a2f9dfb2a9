"""The smallest CDK app that creates an EKS cluster with a node group and one chart, as a baseline."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer


def main() -> None:
    """Synthesise the app into ``CDK_OUTDIR``."""
    app = cdk.App()
    stack = cdk.Stack(app, "Minimal")
    cluster = eks.Cluster(
        stack,
        "Cluster",
        version=eks.KubernetesVersion.V1_35,
        vpc=ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=1),
        default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
        default_capacity=0,
        kubectl_provider_options=eks.KubectlProviderOptions(
            kubectl_layer=KubectlV35Layer(stack, "KubectlLayer")
        ),
    )
    cluster.add_nodegroup_capacity("System", instance_types=[ec2.InstanceType("m7i.large")], min_size=2)
    cluster.add_helm_chart(
        "Karpenter",
        chart="karpenter",
        repository="oci://public.ecr.aws/karpenter/karpenter",
        version="1.15.1",
        namespace="kube-system",
    )
    app.synth()


if __name__ == "__main__":
    main()

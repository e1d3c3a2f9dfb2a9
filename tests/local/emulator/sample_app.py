"""A small CDK app with everything that the emulator's handlers and the Kubernetes seam must take."""

from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct

ACCOUNT = "123456789012"
REGION = "us-west-2"
ENVIRONMENT = cdk.Environment(account=ACCOUNT, region=REGION)
CHART = Path(__file__).parent / "chart"
CONTEXT = {
    "@aws-cdk/core:defaultCrossStackReferences": "weak",
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": True,
    "aws:cdk:disable-asset-staging": True,
    f"availability-zones:account={ACCOUNT}:region={REGION}": ["us-west-2a", "us-west-2b"],
}


class ClusterStack(cdk.Stack):
    """Network and cluster, with add-on, access entry, Pod Identity and a bucket that empties itself."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, env=ENVIRONMENT)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)
        self.vpc.add_flow_log("FlowLog")
        layer = KubectlV35Layer(self, "Kubectl")
        made = eks.Cluster(
            self,
            "Cluster",
            version=eks.KubernetesVersion.V1_35,
            vpc=self.vpc,
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            kubectl_provider_options=eks.KubectlProviderOptions(kubectl_layer=layer),
        )
        # aws-cdk-lib declares ICluster.kubectl_provider_options, and not that its own Cluster has it.
        self.cluster = cast("eks.ICluster", made)
        made.add_nodegroup_capacity("System", instance_types=[ec2.InstanceType("m7i.large")])
        eks.Addon(self, "CoreDns", cluster=self.cluster, addon_name="coredns")
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
        eks.AccessEntry(self, "Entry", cluster=self.cluster, principal=role.role_arn, access_policies=[])
        eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=self.cluster.cluster_name,
            namespace="web",
            role_arn=role.role_arn,
            service_account="web",
        )
        group = ec2.SecurityGroup(self, "Group", vpc=self.vpc)
        ec2.CfnSecurityGroupEgress(
            self,
            "SelfEgress",
            group_id=group.security_group_id,
            ip_protocol="-1",
            destination_security_group_id=group.security_group_id,
        )
        bucket = s3.Bucket(self, "Bucket", auto_delete_objects=True, removal_policy=cdk.RemovalPolicy.DESTROY)
        cdk.CfnOutput(self, "BucketName", value=bucket.bucket_name)
        cdk.CfnOutput(self, "ClusterName", value=self.cluster.cluster_name)


class PlatformStack(cdk.Stack):
    """What is put into the cluster: a manifest, a chart of our own and a chart of a registry."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: ClusterStack, replicas: int, extra: bool
    ) -> None:
        super().__init__(scope, construct_id, env=ENVIRONMENT)
        objects = [_config_map("network", vpc=cluster.vpc.vpc_id)]
        if extra:
            objects.append(_config_map("extra"))
        eks.KubernetesManifest(self, "ConfigMap", cluster=cluster.cluster, manifest=objects, prune=True)
        eks.HelmChart(
            self,
            "Web",
            cluster=cluster.cluster,
            chart_asset=assets.Asset(self, "WebChart", path=str(CHART)),
            release="web",
            namespace="web",
            values={"replicas": replicas},
        )
        eks.HelmChart(
            self,
            "Karpenter",
            cluster=cluster.cluster,
            repository="oci://public.ecr.aws/karpenter/karpenter",
            chart="karpenter",
            version="1.15.1",
            release="karpenter",
            namespace="kube-system",
            values={"settings": {"clusterName": cluster.cluster.cluster_name}},
        )


def _config_map(name: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def synthesise(outdir: Path, *, replicas: int, extra: bool) -> Path:
    """Write the cloud assembly of one variant of the app and return its folder."""
    app = cdk.App(outdir=str(outdir), context=CONTEXT)
    cluster = ClusterStack(app, "sample-Cluster")
    PlatformStack(app, "sample-Platform", cluster=cluster, replicas=replicas, extra=extra)
    app.synth()
    return outdir

"""A small CDK app with everything that the emulator's handlers and the Kubernetes seam must take.

Options come from the CDK context, so that each test deploys one variant: ``replicas``, ``configMapData``,
``unknownField`` (a manifest that strict validation refuses) and ``queue`` (an added resource).
"""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_sqs as sqs
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct

ACCOUNT = "123456789012"
REGION = "us-west-2"
ENVIRONMENT = cdk.Environment(account=ACCOUNT, region=REGION)
CHART = Path(__file__).parent / "chart"


class ClusterStack(cdk.Stack):
    """Network and cluster, with add-on, access entry and Pod Identity."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, env=ENVIRONMENT)
        self.node.set_context(
            f"availability-zones:account={ACCOUNT}:region={REGION}", ["us-west-2a", "us-west-2b"]
        )
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)
        self.vpc.add_flow_log("FlowLog")
        self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        self.cluster = eks.Cluster(
            self,
            "Cluster",
            version=eks.KubernetesVersion.V1_35,
            vpc=self.vpc,
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            kubectl_provider_options=eks.KubectlProviderOptions(kubectl_layer=KubectlV35Layer(self, "Kubectl")),
        )
        self.cluster.add_nodegroup_capacity(
            "System", instance_types=[ec2.InstanceType("m7i.large")], min_size=2, desired_size=2
        )
        eks.Addon(self, "CoreDns", cluster=self.cluster, addon_name="coredns")
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
        eks.AccessEntry(
            self, "Entry", cluster=self.cluster, principal=role.role_arn, access_policies=[],
            access_entry_type=eks.AccessEntryType.EC2_LINUX,
        )  # fmt: skip
        eks.CfnPodIdentityAssociation(
            self, "Identity", cluster_name=self.cluster.cluster_name, namespace="web", role_arn=role.role_arn,
            service_account="web",
        )  # fmt: skip
        group = ec2.SecurityGroup(self, "Group", vpc=self.vpc)
        ec2.CfnSecurityGroupEgress(
            self, "SelfEgress", group_id=group.security_group_id, ip_protocol="-1",
            destination_security_group_id=group.security_group_id,
        )  # fmt: skip
        s3.Bucket(self, "Bucket", auto_delete_objects=True, removal_policy=cdk.RemovalPolicy.DESTROY)


class PlatformStack(cdk.Stack):
    """What is put into the cluster: a manifest, a chart of our own and a chart of a registry."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: ClusterStack) -> None:
        super().__init__(scope, construct_id, env=ENVIRONMENT)
        option = self.node.try_get_context
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "network", "namespace": "default"},
            "data": {"vpc": cluster.vpc.vpc_id, "text": option("configMapData") or "first"},
        }
        if option("unknownField"):
            config_map["dataa"] = {}
        eks.KubernetesManifest(self, "ConfigMap", cluster=cluster.cluster, manifest=[config_map])
        eks.HelmChart(
            self,
            "Web",
            cluster=cluster.cluster,
            chart_asset=assets.Asset(self, "WebChart", path=str(CHART)),
            release="web",
            namespace="web",
            values={"replicas": int(option("replicas") or 2)},
        )
        eks.HelmChart(
            self,
            "Karpenter",
            cluster=cluster.cluster,
            chart="karpenter",
            repository="oci://public.ecr.aws/karpenter/karpenter",
            version="1.14.1",
            release="karpenter",
            namespace="kube-system",
            values={"settings": {"clusterName": cluster.cluster.cluster_name}},
        )
        if option("queue"):
            sqs.Queue(self, "Queue")


def build(outdir: Path, **options: object) -> Path:
    """Synthesise the app into a folder."""
    context = {"@aws-cdk/core:defaultCrossStackReferences": "weak", **options}
    app = cdk.App(outdir=str(outdir), context=context)
    cluster = ClusterStack(app, "sample-Cluster")
    PlatformStack(app, "sample-Platform", cluster=cluster)
    app.synth()
    return outdir

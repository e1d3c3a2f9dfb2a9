"""The EKS cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from inference_catalog.log_groups import control_plane_log_group
from inference_constructs.code_staging import bundled_by
from inference_constructs.findings import (
    acknowledge,
    acknowledge_managed_policies,
    acknowledge_wildcards,
)
from inference_constructs.observability.kept_log_group import KeptLogGroup

# Lets Helm overwrite fields of its charts that somebody else has set.
#
# Helm 4 applies charts on the server. If a field of a chart was set by somebody else in the meantime, such as
# a person with ``kubectl scale`` or a controller, the API server refuses the whole upgrade, and
# CloudFormation cannot roll it back either: the former values conflict as well (k3s-io/helm-controller#343,
# NVIDIA/aicr#934, kedacore/keda#7306). ``--force-conflicts`` gives the field back to the chart
# (https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts), and Helm accepts it only with
# ``--server-side=true`` (helm/helm, pkg/kube/client.go: "forceConflicts enabled when serverSideApply
# disabled"). CDK's handler passes neither (aws-cdk-lib 2.275.0, custom-resource-handlers,
# aws-eks-v2/kubectl-handler/helm).
#
# So a layer brings a program `helm` that adds both options. CDK's handler finds it first: its modules put
# ``/opt/kubectl`` before ``/opt/helm`` in the path.

#: Place of Helm in the layer of CDK, as Lambda unpacks it.
LAYER_HELM: Final = "/opt/helm/helm"
#: Place of the program in its own layer.
PROGRAM_PATH: Final = "kubectl/helm"
#: The program.
PROGRAM: Final = f"""\
#!/bin/sh
case "$1" in
  upgrade) set -- "$@" --server-side=true --force-conflicts ;;
esac
exec {LAYER_HELM} "$@"
"""


@jsii.implements(cdk.ILocalBundling)
class _Writing:
    """Writes the program into the layer."""

    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002 - jsii's
        """Write the program into the folder."""
        program = Path(output_dir, PROGRAM_PATH)
        program.parent.mkdir()
        program.write_text(PROGRAM, "utf-8")
        program.chmod(0o755)
        return True


class ForcingHelm(lambda_.LayerVersion):
    """A layer for CDK's kubectl handler, with which Helm overwrites what others set in fields of a chart."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(
            scope,
            construct_id,
            code=lambda_.Code.from_asset(
                str(Path(__file__).parent),
                asset_hash_type=cdk.AssetHashType.OUTPUT,
                bundling=bundled_by(_Writing()),
            ),
            description="helm upgrade --force-conflicts",
        )


_CONTROL_PLANE_LOGS = [
    eks.ClusterLoggingTypes.API,
    eks.ClusterLoggingTypes.AUDIT,
    eks.ClusterLoggingTypes.AUTHENTICATOR,
    eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
    eks.ClusterLoggingTypes.SCHEDULER,
]
_LIBRARY_POLICIES = (
    "AmazonEKSClusterPolicy",
    "AmazonEC2ContainerRegistryReadOnly",
    "service-role/AWSLambdaBasicExecutionRole",
    "service-role/AWSLambdaVPCAccessExecutionRole",
)


class InferenceCluster(eks.Cluster):
    """A control plane with API authentication, encrypted secrets, all control plane logs, and no nodes.

    The creator does not become administrator. The handler that applies charts and manifests has an access
    entry. Add access entries for people.

    Parameters
    ----------
    cluster_name
        A plain string without CDK tokens, because keys of IAM conditions cannot contain references.
    version
        Kubernetes version, such as ``1.35``.
    vpc
        VPC whose private subnets have the control plane's network interfaces and the handler.
    secrets_key
        KMS key of Kubernetes secrets.
    public_endpoint
        Whether the Kubernetes API also has a public endpoint.
    extended_support
        Whether the Kubernetes version stays, at a higher price, after its standard support has ended.
    log_retention_days
        Days for which logs of the control plane are kept under the key of its secrets. None for 90 days
        under the key of CloudWatch Logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        version: str,
        vpc: ec2.IVpc,
        secrets_key: kms.IKey,
        public_endpoint: bool = False,
        extended_support: bool = False,
        log_retention_days: int | None = None,
    ) -> None:
        # Importing it calls Node, and modules are imported while Node is busy with another call.
        from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer  # noqa: PLC0415

        super().__init__(
            scope,
            construct_id,
            bootstrap_cluster_creator_admin_permissions=False,
            bootstrap_self_managed_addons=False,
            cluster_logging=_CONTROL_PLANE_LOGS,
            cluster_name=cluster_name,
            default_capacity=0,
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            endpoint_access=eks.EndpointAccess.PUBLIC_AND_PRIVATE
            if public_endpoint
            else eks.EndpointAccess.PRIVATE,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=KubectlV35Layer(scope, "KubectlLayer")
            ),
            output_config_command=False,
            secrets_encryption_key=secrets_key,
            version=eks.KubernetesVersion.of(version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=vpc.private_subnets)],
        )
        cdk.Annotations.of(self).acknowledge_warning(
            "@aws-cdk/aws-eks:clusterMustManuallyTagSubnet",
            "Kubernetes creates no load balancers, so the subnets of an existing VPC need no tags for them.",
        )
        self._set_support(extended=extended_support)
        self._expire_control_plane_logs(cluster_name, log_retention_days, secrets_key)
        self._let_handler_read_charts()
        self._let_helm_overwrite()
        self._take_handler_logs_along()
        self._acknowledge_library(public_endpoint=public_endpoint)

    def _set_support(self, *, extended: bool) -> None:
        """Choose what happens at the end of standard support. EKS's own default is extended support.

        aws-cdk-lib has no property for it (AWS CloudFormation Template Reference, AWS::EKS::Cluster
        UpgradePolicy).
        """
        cluster = cast("eks.CfnCluster", self.node.find_child("Resource"))
        support = "EXTENDED" if extended else "STANDARD"
        cluster.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type=support)

    def _expire_control_plane_logs(self, cluster_name: str, days: int | None, key: kms.IKey) -> None:
        """Create the log group of the control plane before EKS does, which would keep its logs forever.

        The name is EKS's (Amazon EKS User Guide, "Send control plane logs to CloudWatch Logs").
        """
        name = control_plane_log_group(cluster_name)
        log = (
            logs.LogGroup(
                self,
                "ControlPlaneLog",
                log_group_name=name,
                removal_policy=cdk.RemovalPolicy.DESTROY,
                retention=logs.RetentionDays.THREE_MONTHS,
            )
            if days is None
            else KeptLogGroup(self, "ControlPlaneLog", name=name, retention_days=days, encryption_key=key)
        )
        self.node.find_child("Resource").node.add_dependency(log)

    def _let_handler_read_charts(self) -> None:
        """Let the handler read the charts of all stacks, so that models' stacks do not change this stack."""
        stack = cdk.Stack.of(self)
        bucket = f"cdk-{stack.synthesizer.bootstrap_qualifier}-assets-{stack.account}-{stack.region}"
        statement = {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": f"arn:{stack.partition}:s3:::{bucket}/*.zip",
        }
        provider = self.kubectl_provider
        if provider is None or provider.role is None:
            raise ValueError(f"{self.node.path} has no kubectl provider")
        provider.role.add_to_principal_policy(iam.PolicyStatement.from_json(statement))
        acknowledge_wildcards(self, [statement], "The names of chart assets are hashes of their content.")

    def _let_helm_overwrite(self) -> None:
        """Let charts have their fields back from whoever set them: otherwise no later deployment succeeds."""
        provider = self.node.find_child("KubectlProvider")
        handler = cast("lambda_.Function", provider.node.find_child("Handler"))
        handler.add_layers(ForcingHelm(self, "ForcingHelm"))

    def _take_handler_logs_along(self) -> None:
        """Delete the handler's logs with it. By default they would stay in the account and cost money."""
        for element in self.node.find_all():
            if isinstance(element, logs.CfnLogGroup):
                element.apply_removal_policy(cdk.RemovalPolicy.DESTROY)

    def _acknowledge_library(self, *, public_endpoint: bool) -> None:
        """Acknowledge the findings that aws-cdk-lib's own constructs cause."""
        handler = self._logical_id("KubectlProvider/Handler/Resource")
        registry = self._logical_id("KubectlProvider/Handler/HasEcrPublic")
        prefix = "arn:<AWS::Partition>:iam::aws:policy/"
        public_registry = (
            f'{{"Fn::If":["{registry}",{{"Fn::Join":["",["arn:",{{"Ref":"AWS::Partition"}},'
            '":iam::aws:policy/AmazonElasticContainerRegistryPublicReadOnly"]]},{"Ref":"AWS::NoValue"}]}'
        )
        acknowledge_managed_policies(
            self,
            [*(f"{prefix}{policy}" for policy in _LIBRARY_POLICIES), public_registry],
            "aws-cdk-lib attaches AWS managed policies for the control plane, Lambda and charts from ECR.",
        )
        acknowledge(
            self,
            {
                f"IAM5[Resource::<{handler}.Arn>:*]": "The provider framework invokes handler versions.",
                "L1": "aws-cdk-lib chooses the runtime with which its handler is tested.",
            },
        )
        if public_endpoint:
            acknowledge(self, {"EKS1": "The blueprint sets endpointAccess: publicAndPrivate."})

    def _logical_id(self, path: str) -> str:
        """Return the logical ID of a resource that aws-cdk-lib creates below this construct."""
        element: IConstruct = self
        for part in path.split("/"):
            element = element.node.find_child(part)
        return str(cdk.Stack.of(self).resolve(cast("cdk.CfnElement", element).logical_id))

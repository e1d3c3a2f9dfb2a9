"""Steps of a deployment for which CloudFormation has no resource: brokers, configurations, start."""

from __future__ import annotations

from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.code_staging import function_code
from inference_constructs.streaming.event_cluster import EventCluster
from inference_constructs.streaming.streaming_store import StreamingStore
from inference_contracts.streaming_job import JOB_DOCUMENTS_PREFIX
from inference_runtime import runtime_directory

#: Packages that Lambda does not provide.
_PACKAGES: Final = ("kafka", "valkey")
_TIMEOUT_SECONDS: Final = 900


class StreamingSetup(Construct):
    """The function `streaming.setup.handle`, and the custom resources that it serves.

    Parameters
    ----------
    store
        Takes the configurations.
    role_path
        IAM path of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        store: StreamingStore,
        role_path: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self._store = store
        runtime = runtime_directory()
        #: Code of this function and of the tools of jobs.
        self.code = function_code(runtime / "streaming", runtime / "signals", packages=_PACKAGES)
        self._function = add_function(
            self,
            "Steps",
            code=self.code,
            handler="streaming.setup.handle",
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=256,
            environment={},
            role_path=role_path,
        )
        self._role = cast("iam.IRole", self._function.role)  # add_function gives every function a role
        store.grant_write_document(self._role)

    def find_brokers(self, cluster: EventCluster) -> str:
        """Return the brokers of a cluster for clients with IAM access control.

        Parameters
        ----------
        cluster
            The cluster.
        """
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonmanagedstreamingforapachekafka.html
        iam.Grant.add_to_principal(
            grantee=self._function, actions=["kafka:GetBootstrapBrokers"], resource_arns=[cluster.arn]
        )
        step = self._step("Brokers", "Custom::KafkaBrokers", {"ClusterArn": cluster.arn})
        return step.get_att_string("Servers")

    def write_document(self, job: str, document: str, construct_id: str | None = None) -> tuple[str, str]:
        """Write the configuration of a job, and return its address and its key.

        Parameters
        ----------
        job
            Name of the job.
        construct_id
            Construct ID; None for one that follows from the job.
        document
            The configuration. It may have references that the deployment resolves.
        """
        step = self._step(
            construct_id or f"Document-{job}",
            "Custom::JobConfiguration",
            {
                "Bucket": self._store.bucket_name,
                "Prefix": f"{JOB_DOCUMENTS_PREFIX}{job}/",
                "Document": document,
            },
        )
        return step.get_att_string("Address"), step.get_att_string("Key")

    def start(self, application_name: str, *after: Construct) -> None:
        """Start an application when it is new, and wait until it runs.

        Parameters
        ----------
        application_name
            Name of the application.
        *after
            What must be there before it starts.
        """
        arn = cdk.Stack.of(self).format_arn(
            service="kinesisanalytics", resource="application", resource_name=application_name
        )
        iam.Grant.add_to_principal(
            grantee=self._function,
            actions=["kinesisanalytics:DescribeApplication", "kinesisanalytics:StartApplication"],
            resource_arns=[arn],
        )
        step = self._step(
            f"Start-{application_name}", "Custom::StartedApplication", {"Application": application_name}
        )
        step.node.add_dependency(*after)

    def _step(self, construct_id: str, resource_type: str, properties: dict[str, str]) -> cdk.CustomResource:
        step = cdk.CustomResource(
            self,
            construct_id,
            resource_type=resource_type,
            service_token=self._function.function_arn,
            properties=properties,
        )
        # The function's permissions come before its first call.
        step.node.add_dependency(self._role)
        return step

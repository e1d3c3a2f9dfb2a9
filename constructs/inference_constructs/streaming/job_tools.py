"""The functions around a job: the probe of `blueprints verify`, and the redrive of dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.findings import acknowledge_grants
from inference_constructs.network.function_interfaces import INTERFACE_ACTIONS
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.streaming.event_cluster import JobEvents
from inference_constructs.streaming.streaming_store import StreamingStore
from inference_contracts.streaming_job import JOB_DOCUMENT, PROBE, REDRIVE

if TYPE_CHECKING:  # jobs without a front door need not import the services that it uses
    from inference_constructs.front_door import PlatformKeySecret

#: Lambda's longest run. A call of the redrive ends by itself after ten minutes.
_TIMEOUT_SECONDS: Final = 900


class JobTools(Construct):
    """Two functions in the VPC, each with a role of its own.

    The probe may write events and read signals. The redrive may read dead letters, write the job's signals,
    add answers to its history, and write events again that the job could not read.

    Parameters
    ----------
    code
        Code of the functions.
    job
        Name of the job.
    document, document_access
        Address of the job's configuration, and the bucket that has it and the history.
    events
        Its topics.
    signals
        Access to the signal store.
    role_path
        IAM path of the roles.
    vpc
        VPC whose private subnets the functions run in.
    security_group
        Security group of the functions.
    key_secret
        The job's key for a front door; None without one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        job: str,
        document: str,
        document_access: StreamingStore,
        events: JobEvents,
        signals: SignalAccess,
        role_path: str,
        vpc: ec2.IVpc,
        security_group: ec2.ISecurityGroup,
        key_secret: PlatformKeySecret | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._vpc, self._group = vpc, security_group
        probe = self._add(
            "Probe",
            code,
            handler="streaming.probe.handle",
            environment={JOB_DOCUMENT: document, "SIGNALS_USER": signals.reader},
            role_path=role_path,
        )
        redrive = self._add(
            "Redrive",
            code,
            handler="streaming.redrive.handle",
            environment={JOB_DOCUMENT: document, "SIGNALS_USER": signals.stream_writer(job)},
            role_path=role_path,
        )
        for function in (probe, redrive):
            document_access.grant_document(_role(function), job)
        events.grant_write(probe)
        signals.grant_read(probe)
        events.grant_read_dead_letters(redrive)
        events.grant_write(redrive)
        document_access.grant_redriven(_role(redrive), job)
        signals.grant_stream(redrive, job)
        if key_secret:
            key_secret.grant_read(redrive)
        #: Names of the functions by what they do.
        self.names: Mapping[str, str] = {PROBE: probe.function_name, REDRIVE: redrive.function_name}

    def _add(
        self,
        construct_id: str,
        code: lambda_.Code,
        *,
        handler: str,
        environment: Mapping[str, str],
        role_path: str,
    ) -> lambda_.Function:
        """Add a function. Lambda connects it to the VPC with its role, but its own code must not do so."""
        function = add_function(
            self,
            construct_id,
            code=code,
            handler=handler,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=512,
            environment=environment,
            role_path=role_path,
            # Two people who redrive at the same time would call the model twice.
            reserved=1,
            vpc=self._vpc,
            security_groups=[self._group],
        )
        role = _role(function)
        grant = iam.Grant.add_to_principal(
            grantee=function, actions=list(INTERFACE_ACTIONS), resource_arns=["*"]
        )
        acknowledge_grants(role, [grant], "Lambda creates and names the network interfaces.")
        iam.ManagedPolicy(
            self,
            f"{construct_id}NoInterfaces",
            roles=[role],
            statements=[
                iam.PolicyStatement(
                    effect=iam.Effect.DENY,
                    actions=list(INTERFACE_ACTIONS),
                    conditions={"ArnEquals": {"lambda:SourceFunctionArn": function.function_arn}},
                    resources=["*"],
                )
            ],
        )
        return function


def _role(function: lambda_.Function) -> iam.IRole:
    return cast("iam.IRole", function.role)  # add_function gives every function a role

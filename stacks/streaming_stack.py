"""Near real time: the Kafka cluster, and the jobs that turn its events into signals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.serving.streaming import DEAD_LETTER_PARTITIONS, job_size, topic_partitions
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.serving.traffic import way_address
from inference_blueprints.spec.types import Alarms, Kafka, Spec, StreamingJob
from inference_constructs.network import Gateway
from inference_constructs.signals import PORT, SignalAccess
from inference_constructs.streaming import (
    IAM_PORT,
    ApplicationSize,
    EnrichmentApplication,
    EventCluster,
    ExpressCluster,
    JobEvents,
    JobProgram,
    JobTools,
    ShownStream,
    StreamAlarms,
    StreamDashboard,
    StreamingSetup,
    StreamingStore,
    StreamMetrics,
)
from inference_contracts.platform_keys import way_model
from inference_contracts.streaming_job import (
    JOB_FUNCTIONS_OUTPUT,
    JobDoor,
    JobShard,
    JobSignalStore,
    flink_applications,
    kafka_cluster_name,
    streaming_role_path,
)
from stacks.shared_parts import people_topic

if TYPE_CHECKING:  # platforms without a front door need not import the services that it uses
    from inference_constructs.front_door import PlatformKeySecret

#: Time to notice dead letters and to redrive them.
_DEAD_LETTER_HOURS: Final = 14 * 24
_HTTPS: Final = 443


@dataclass(frozen=True)
class StreamingDoor:
    """The front door, through which jobs send their requests."""

    host_name: str
    key_secrets: Mapping[str, PlatformKeySecret]
    """The secret with the key of each job."""


class StreamingStack(cdk.Stack):
    """The Kafka cluster with its topics; the applications, tools and alarms of each job; a dashboard.

    platform: `metadata.name`.
    spec, kafka, alarms: Sections of the blueprint. No `alarms`: nobody is told, and the topic has no
        subscription.
    vpc, vpc_cidr: VPC of brokers and jobs, and its IPv4 range.
    gateway: The models' load balancer.
    signals: Access to the signal store.
    door: The front door. None if jobs call the models.
    encryption_key: KMS key of events, programs, configurations and logs.
    retention_days: Days for which logs are kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        spec: Spec,
        kafka: Kafka,
        alarms: Alarms | None,
        vpc: ec2.IVpc,
        vpc_cidr: str,
        gateway: Gateway,
        signals: SignalAccess,
        door: StreamingDoor | None,
        encryption_key: kms.IKey,
        retention_days: int,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._spec, self._platform, self._vpc, self._vpc_cidr = spec, platform, vpc, vpc_cidr
        self._gateway, self._door = gateway, door
        self._signals, self._key, self._retention_days = signals, encryption_key, retention_days
        self._store = StreamingStore(signals.history_bucket_name, encryption_key)
        #: Partitions of the topics of events that this stack declares, and those that it has declared.
        self._partitions = topic_partitions(spec.streaming) if kafka.express else {}
        self._topics: dict[str, Construct] = {}
        self._cluster = self._add_cluster(kafka)
        self._people = people_topic(self, alarms)
        self._program = JobProgram(
            self,
            "Program",
            store=self._store,
            encryption_key=encryption_key,
        )
        self._setup = StreamingSetup(
            self,
            "Setup",
            store=self._store,
            role_path=f"/inference-blueprints/{platform}/streaming/",
        )
        self._group = self._add_security_group(kafka)
        self._brokers = (
            kafka.existing.bootstrap_servers if kafka.existing else self._setup.find_brokers(self._cluster)
        )
        self._shown: list[ShownStream] = []
        functions = {job.name: self._add_job(job) for job in spec.streaming}
        StreamDashboard(self, "Dashboard", jobs=self._shown)
        cdk.CfnOutput(self, JOB_FUNCTIONS_OUTPUT, value=self.to_json_string(functions))
        cdk.CfnOutput(self, "KafkaServers", value=self._brokers)

    def _add_cluster(self, kafka: Kafka) -> EventCluster:
        if kafka.existing:
            return EventCluster.existing(kafka.existing.cluster_arn, kafka.existing.security_group_id)
        if kafka.express is None:
            raise ValueError("the section `kafka` is empty")
        return ExpressCluster(
            self,
            "Kafka",
            name=kafka_cluster_name(self._platform),
            vpc=self._vpc,
            vpc_cidr=self._vpc_cidr,
            brokers=kafka.express.brokers,
            instance_type=kafka.express.instance_type,
            encryption_key=self._key,
            retention_days=self._retention_days,
        ).cluster

    def _add_security_group(self, kafka: Kafka) -> ec2.SecurityGroup:
        """Let jobs and their tools reach brokers, models, the signal store and AWS's services only."""
        group = ec2.SecurityGroup(
            self, "Group", vpc=self._vpc, allow_all_outbound=False, description="Streaming jobs"
        )
        cidr = ec2.Peer.ipv4(self._vpc_cidr)
        if kafka.existing:
            group.add_egress_rule(
                ec2.Peer.security_group_id(self._cluster.security_group_id), ec2.Port.tcp(IAM_PORT), "Kafka"
            )
            self._admit("KafkaIngress", self._cluster.security_group_id, group, IAM_PORT)
        else:
            group.add_egress_rule(cidr, ec2.Port.tcp(IAM_PORT), "Kafka")
        group.add_egress_rule(cidr, ec2.Port.tcp(PORT), "Valkey")
        if self._gateway.port != _HTTPS:
            group.add_egress_rule(cidr, ec2.Port.tcp(self._gateway.port), "Models")
        # Services are reached through endpoints of the VPC or a NAT gateway; some have public addresses.
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "AWS")
        self._admit("ModelsIngress", self._gateway.security_group_id, group, self._gateway.port)
        return group

    def _admit(self, construct_id: str, group_id: str, source: ec2.SecurityGroup, port: int) -> None:
        ec2.CfnSecurityGroupIngress(
            self,
            construct_id,
            description="Streaming jobs",
            from_port=port,
            to_port=port,
            group_id=group_id,
            ip_protocol="tcp",
            source_security_group_id=source.security_group_id,
        )

    def _add_job(self, job: StreamingJob) -> Mapping[str, str]:
        """Add the topics, the application, the tools and the alarms of a job. Return the tools' names."""
        scope = Construct(self, f"Job-{job.name}")
        events = JobEvents(self._cluster, job.name, *job.topic_names)
        declared = self._add_topics(scope, job, events)
        names = flink_applications(self._platform, job.name, job.shards)
        documents = [
            self._add_application(scope, job, events, declared, name=name, index=index)
            for index, name in enumerate(names)
        ]
        tools = JobTools(
            scope,
            "Tools",
            code=self._setup.code,
            job=job.name,
            document=documents[0],
            document_access=self._store,
            events=events,
            signals=self._signals,
            role_path=streaming_role_path(self._platform, job.name),
            vpc=self._vpc,
            security_group=self._group,
            key_secret=self._key_secret(job),
        )
        return tools.names

    def _key_secret(self, job: StreamingJob) -> PlatformKeySecret | None:
        """Return the secret with a job's key for the front door."""
        return self._door.key_secrets[job.name] if self._door else None

    def _add_application(
        self,
        scope: Construct,
        job: StreamingJob,
        events: JobEvents,
        declared: Sequence[Construct],
        *,
        name: str,
        index: int,
    ) -> str:
        """Add an application of a job with its alarms. Return the address of its configuration.

        declared: Topics that must exist before it starts.
        name, index: Its name, and its number from 0.
        """
        shard = JobShard(index=index, count=job.shards) if job.shards > 1 else None
        suffix = f"-{index + 1}-of-{job.shards}" if shard else ""
        document, _ = self._setup.write_document(
            job.name, self._document(job, shard), f"Document-{job.name}{suffix}"
        )
        size = job_size(job)
        application = EnrichmentApplication(
            scope,
            f"Flink{suffix}",
            name=name,
            job=job.name,
            program_key=self._program.key,
            document=document,
            size=ApplicationSize(size.parallelism, size.parallelism_per_kpu),
            events=events,
            signals=self._signals,
            store=self._store,
            role_path=streaming_role_path(self._platform, job.name),
            vpc=self._vpc,
            security_group=self._group,
            encryption_key=self._key,
            retention_days=self._retention_days,
            key_secret=self._key_secret(job),
        )
        application.application.node.add_dependency(self._program.build)
        self._setup.start(name, application, *declared)
        metrics = StreamMetrics(name, job.name, self._cluster.name, events.events, events.more_events)
        alarms = StreamAlarms(scope, f"Alarms{suffix}", metrics=metrics, people=self._people)
        self._shown.append(ShownStream(job.name + suffix, metrics, alarms.alarms))
        return document

    def _add_topics(self, scope: Construct, job: StreamingJob, events: JobEvents) -> list[Construct]:
        """Declare the dead letters' topic, and the topics of events of the platform's own cluster.

        The first of several jobs that read a topic declares it: a name exists once in a cluster.
        """
        declared: list[Construct] = [
            events.add_dead_letters(
                scope,
                "DeadLetters",
                partitions=DEAD_LETTER_PARTITIONS,
                retention_hours=_DEAD_LETTER_HOURS,
            )
        ]
        for topic in (events.events, *events.more_events):
            if topic not in self._partitions:
                continue
            if topic not in self._topics:
                self._topics[topic] = self._cluster.add_topic(
                    scope,
                    "Events" if topic == events.events else f"Events-{topic}",
                    topic=topic,
                    partitions=self._partitions[topic],
                    retention_hours=job.events.retention_hours,
                )
            declared.append(self._topics[topic])
        return declared

    def _document(self, job: StreamingJob, shard: JobShard | None) -> str:
        """Return the configuration of a job, in ASCII as templates of CloudFormation should be."""
        signals, secret = self._signals, self._key_secret(job)
        asked = way_model("streaming", job.name)
        configuration = job_configuration(
            job,
            platform=self._platform,
            bootstrap_servers=self._brokers,
            kafka_authentication="iam",
            endpoint_url=self._address(job),
            store=JobSignalStore(
                host=signals.host,
                port=PORT,
                tls=True,
                user=signals.stream_writer(job.name),
                authentication="iam",
                cluster=True,
                cache_name=signals.cache_name,
                region=self.region,
            ),
            history_uri=self._store.history(job.name),
            shard=shard,
            door=JobDoor(model=asked, team=job.team, secret=secret.arn) if secret else None,
        )
        return json.dumps(json.loads(configuration.to_json()), separators=(",", ":"))

    def _address(self, job: StreamingJob) -> str:
        """Return the address of the OpenAI API that a job asks."""
        if self._door:
            return f"https://{self._door.host_name}"
        return f"{self._gateway.scheme}://{way_address(self._spec, job)}.{self._gateway.zone_name}"

"""The Kafka cluster of the platform, or one that exists.

It uses CloudFormation's resources directly: CDK's construct for Amazon MSK, ``aws-cdk.aws-msk-alpha``, may
change in any release and does not know Express brokers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_msk as msk
from constructs import Construct

from inference_catalog.log_groups import kafka_log_group
from inference_constructs.findings import acknowledge
from inference_constructs.observability.kept_log_group import KeptLogGroup

#: Brokers' port for clients with IAM access control
#: (https://docs.aws.amazon.com/msk/latest/developerguide/port-info.html).
IAM_PORT: Final = 9098
#: The version that AWS recommends
#: (https://docs.aws.amazon.com/msk/latest/developerguide/supported-kafka-versions.html).
_KAFKA_VERSION: Final = "3.8.x"
# Express brokers are spread over three zones, and topics have three replicas
# (https://docs.aws.amazon.com/msk/latest/developerguide/msk-configuration-express-read-only.html).
_ZONES: Final = 3
_REPLICAS: Final = 3


class EventCluster:
    """A Kafka cluster: how clients reach it, and what its resources are called in policies.

    Parameters
    ----------
    arn
        ARN of the cluster.
    name
        Its name, which is a dimension of its metrics.
    head
        ``arn:<partition>:kafka:<region>:<account>`` of the cluster.
    security_group_id
        Security group of the brokers.
    """

    def __init__(self, *, arn: str, name: str, head: str, security_group_id: str) -> None:
        self.arn, self.name, self._head, self.security_group_id = arn, name, head, security_group_id

    @classmethod
    def existing(cls, arn: str, security_group_id: str) -> Self:
        """Return a cluster of the account.

        Parameters
        ----------
        arn
            ``arn:<partition>:kafka:<region>:<account>:cluster/<name>/<id>``.
        security_group_id
            Security group of its brokers.
        """
        head, _, rest = arn.partition(":cluster/")
        return cls(arn=arn, name=rest.split("/")[0], head=head, security_group_id=security_group_id)

    def topic_arn(self, topic: str) -> str:
        """Return the ARN of a topic in policies.

        https://docs.aws.amazon.com/msk/latest/developerguide/kafka-actions.html

        Parameters
        ----------
        topic
            Name of the topic.
        """
        return self._resource("topic", topic)

    def group_arn(self, group: str) -> str:
        """Return the ARN of a consumer group in policies.

        Parameters
        ----------
        group
            Name of the group.
        """
        return self._resource("group", group)

    def _resource(self, kind: str, name: str) -> str:
        """Return ``…:<kind>/<cluster>/<id>/<name>``; the ID may be known at deployment only."""
        head, identifier = self._head, cdk.Fn.select(2, cdk.Fn.split("/", self.arn))
        return f"{head}:{kind}/{self.name}/{identifier}/{name}"

    def grant_read(self, grantee: iam.IGrantable, topic: str, group: str | None = None) -> None:
        """Allow reading a topic.

        Parameters
        ----------
        grantee
            Role of the reader.
        topic
            Name of the topic.
        group
            Its consumer group; None if it has none.
        """
        self._grant(grantee, ["Connect"], self.arn)
        self._grant(grantee, ["DescribeTopic", "ReadData"], self.topic_arn(topic))
        if group is not None:
            self._grant(grantee, ["AlterGroup", "DescribeGroup"], self.group_arn(group))

    def grant_write(self, grantee: iam.IGrantable, topic: str, *, idempotent: bool = False) -> None:
        """Allow writing to a topic.

        Parameters
        ----------
        grantee
            Role of the writer.
        topic
            Name of the topic.
        idempotent
            Whether it writes as Kafka's Java client does by default.
        """
        self._grant(grantee, ["Connect", *(["WriteDataIdempotently"] if idempotent else [])], self.arn)
        self._grant(grantee, ["DescribeTopic", "WriteData"], self.topic_arn(topic))

    @staticmethod
    def _grant(grantee: iam.IGrantable, actions: Sequence[str], resource: str) -> None:
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=[f"kafka-cluster:{action}" for action in actions],
            resource_arns=[resource],
        )

    def add_topic(
        self, scope: Construct, construct_id: str, *, topic: str, partitions: int, retention_hours: int
    ) -> msk.CfnTopic:
        """Declare a topic. Its partitions can grow and its retention can change while it is used.

        MSK takes the topic's settings as a Base64 string of a JSON object
        (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-msk-topic.html).
        A new name creates a new topic. Deleting the resource deletes the topic with its records.

        Parameters
        ----------
        scope, construct_id
            Parent and construct ID.
        topic
            Name of the topic.
        partitions
            Number of partitions.
        retention_hours
            Hours for which records are kept.
        """
        settings: Mapping[str, Any] = {"retention.ms": str(retention_hours * 3_600_000)}
        return msk.CfnTopic(
            scope,
            construct_id,
            cluster_arn=self.arn,
            configs=base64.b64encode(json.dumps(settings).encode()).decode(),
            partition_count=partitions,
            replication_factor=_REPLICAS,
            topic_name=topic,
        )


@dataclass(frozen=True)
class JobEvents:
    """The topics of a job, which is their consumer group too."""

    cluster: EventCluster
    job: str
    """Name of the job."""
    events: str
    dead_letters: str
    """`events`, `dead_letters`: Names of the topics."""
    more_events: Sequence[str] = ()
    """Names of further topics of events."""

    def add_dead_letters(
        self, scope: Construct, construct_id: str, *, partitions: int, retention_hours: int
    ) -> msk.CfnTopic:
        """Declare the topic of dead letters; `EventCluster.add_topic` has the parameters."""
        return self.cluster.add_topic(
            scope,
            construct_id,
            topic=self.dead_letters,
            partitions=partitions,
            retention_hours=retention_hours,
        )

    def grant_job(self, grantee: iam.IGrantable) -> None:
        """Allow what the job does: read events, and write dead letters as Kafka's Java client does."""
        for topic in (self.events, *self.more_events):
            self.cluster.grant_read(grantee, topic, self.job)
        self.cluster.grant_write(grantee, self.dead_letters, idempotent=True)

    def grant_write(self, grantee: iam.IGrantable) -> None:
        """Allow writing events to the first topic."""
        self.cluster.grant_write(grantee, self.events)

    def grant_read_dead_letters(self, grantee: iam.IGrantable) -> None:
        """Allow reading dead letters."""
        self.cluster.grant_read(grantee, self.dead_letters)


class ExpressCluster(Construct):
    """An Amazon MSK cluster with Express brokers, which only takes clients with TLS and IAM access control.

    Three replicas of each record, of which two must have it, are fixed by Express brokers. Topics are not
    created by clients.

    Parameters
    ----------
    name
        Name of the cluster.
    vpc
        VPC of the brokers.
    brokers
        Number of brokers, a multiple of three.
    instance_type
        Size of the brokers, such as ``express.m7g.large``.
    encryption_key
        KMS key of the records and of the brokers' log.
    vpc_cidr
        IPv4 range of the VPC; None for the one that the VPC knows. The whole range may connect: IAM
        authenticates the clients.
    retention_days
        Days for which the brokers' log is kept.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        brokers: int,
        instance_type: str,
        encryption_key: kms.IKey,
        vpc_cidr: str | None = None,
        retention_days: int = 90,
    ) -> None:
        super().__init__(scope, construct_id)
        group = ec2.SecurityGroup(
            self, "Brokers", vpc=vpc, allow_all_outbound=False, description="Kafka from the VPC"
        )
        group.add_ingress_rule(
            ec2.Peer.ipv4(vpc_cidr or vpc.vpc_cidr_block), ec2.Port.tcp(IAM_PORT), "Clients with IAM"
        )
        # Logs that a service delivers go below this prefix, as those of state machines do.
        log = KeptLogGroup(
            self,
            "BrokerLog",
            name=kafka_log_group(name),
            retention_days=retention_days,
            encryption_key=encryption_key,
        )
        cluster = msk.CfnCluster(
            self,
            "Cluster",
            broker_node_group_info=msk.CfnCluster.BrokerNodeGroupInfoProperty(
                # Storage of Express brokers is not chosen.
                client_subnets=[subnet.subnet_id for subnet in vpc.private_subnets[:_ZONES]],
                instance_type=instance_type,
                security_groups=[group.security_group_id],
            ),
            client_authentication=msk.CfnCluster.ClientAuthenticationProperty(
                sasl=msk.CfnCluster.SaslProperty(
                    iam=msk.CfnCluster.IamProperty(enabled=True),
                    scram=msk.CfnCluster.ScramProperty(enabled=False),
                ),
                unauthenticated=msk.CfnCluster.UnauthenticatedProperty(enabled=False),
            ),
            cluster_name=name,
            encryption_info=msk.CfnCluster.EncryptionInfoProperty(
                encryption_at_rest=msk.CfnCluster.EncryptionAtRestProperty(
                    data_volume_kms_key_id=encryption_key.key_arn
                ),
                encryption_in_transit=msk.CfnCluster.EncryptionInTransitProperty(
                    client_broker="TLS", in_cluster=True
                ),
            ),
            kafka_version=_KAFKA_VERSION,
            logging_info=msk.CfnCluster.LoggingInfoProperty(
                broker_logs=msk.CfnCluster.BrokerLogsProperty(
                    cloud_watch_logs=msk.CfnCluster.CloudWatchLogsProperty(
                        enabled=True, log_group=log.log_group_name
                    )
                )
            ),
            number_of_broker_nodes=brokers,
        )
        acknowledge(group, {"EC23": "Only the VPC's own range, and IAM authenticates every client."})
        stack = cdk.Stack.of(self)
        self.cluster = EventCluster(
            arn=cluster.attr_arn,
            name=name,
            head=f"arn:{stack.partition}:kafka:{stack.region}:{stack.account}",
            security_group_id=group.security_group_id,
        )

"""`AWS::MSK::Cluster`, which the emulator has in its API but not in its CloudFormation. No broker runs."""

from __future__ import annotations

import json
from typing import Any

from ministack.services import msk

from inference_local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    handled_types,
    register,
)

RESOURCE_TYPE = "AWS::MSK::Cluster"
#: Properties without which AWS refuses the resource
#: (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-msk-cluster.html).
_REQUIRED = ("BrokerNodeGroupInfo", "ClusterName", "KafkaVersion", "NumberOfBrokerNodes")


class KafkaClusterHandler:
    """Creates and deletes the cluster through the emulator's API."""

    def create(self, request: ResourceRequest) -> Made:
        """Create the cluster, and return its ARN."""
        properties = request.properties
        missing = [name for name in _REQUIRED if name not in properties]
        if missing:
            raise ValueError(f"{RESOURCE_TYPE}: required properties are missing: {', '.join(missing)}")
        body = {
            "clusterName": properties["ClusterName"],
            "brokerNodeGroupInfo": properties["BrokerNodeGroupInfo"],
            "clientAuthentication": properties.get("ClientAuthentication", {}),
            "encryptionInfo": properties.get("EncryptionInfo", {}),
            "kafkaVersion": properties["KafkaVersion"],
            "loggingInfo": properties.get("LoggingInfo", {}),
            "numberOfBrokerNodes": int(properties["NumberOfBrokerNodes"]),
        }
        arn = _answer(msk._create_cluster(json.dumps(body)))["clusterArn"]
        return arn, {"Arn": arn}

    def update(self, request: ResourceRequest) -> Made:
        """Keep the cluster: its brokers, which do not run, are all that can change."""
        return request.physical_id, {"Arn": request.physical_id}

    def delete(self, request: ResourceRequest) -> None:
        """Delete the cluster."""
        _answer(msk._delete_cluster(request.physical_id))


def _answer(answer: tuple[int, Any, Any]) -> dict[str, Any]:
    status, _, body = answer
    content: dict[str, Any] = json.loads(body)
    if status != 200:  # noqa: PLR2004 - the status of success
        raise ValueError(f"{RESOURCE_TYPE}: {content.get('message', content)}")
    return content


def register_kafka_clusters() -> None:
    """Register the handler in the emulator's CloudFormation.

    Raises RuntimeError if the emulator handles the type itself.
    """
    if RESOURCE_TYPE in handled_types():
        raise RuntimeError(f"the emulator handles {RESOURCE_TYPE} itself; delete this handler")
    register(RESOURCE_TYPE, KafkaClusterHandler())

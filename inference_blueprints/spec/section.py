"""Base classes of all sections, and types of texts with a certain form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from inference_blueprints.spec import formats

Name = Annotated[str, StringConstraints(pattern=formats.NAME)]
Region = Annotated[str, StringConstraints(pattern=formats.REGION)]
AvailabilityZone = Annotated[str, StringConstraints(pattern=formats.AVAILABILITY_ZONE)]
AccountId = Annotated[str, StringConstraints(pattern=formats.ACCOUNT_ID)]
Cidr = Annotated[str, StringConstraints(pattern=formats.CIDR)]
InstanceTypeName = Annotated[str, StringConstraints(pattern=formats.INSTANCE_TYPE)]
VpcId = Annotated[str, StringConstraints(pattern=formats.VPC_ID)]
SubnetId = Annotated[str, StringConstraints(pattern=formats.SUBNET_ID)]
SecretArn = Annotated[str, StringConstraints(pattern=formats.SECRET_ARN)]
CertificateArn = Annotated[str, StringConstraints(pattern=formats.CERTIFICATE_ARN)]
TopicArn = Annotated[str, StringConstraints(pattern=formats.TOPIC_ARN)]
EmailAddress = Annotated[str, StringConstraints(pattern=formats.EMAIL_ADDRESS)]
Domain = Annotated[str, StringConstraints(pattern=formats.DOMAIN)]
CapacityReservationId = Annotated[str, StringConstraints(pattern=formats.CAPACITY_RESERVATION_ID)]
UtcTime = Annotated[str, StringConstraints(pattern=formats.UTC_TIME)]
SnapshotId = Annotated[str, StringConstraints(pattern=formats.SNAPSHOT_ID)]
QualifiedName = Annotated[str, StringConstraints(pattern=formats.QUALIFIED_NAME)]
LabelValue = Annotated[str, StringConstraints(pattern=formats.LABEL_VALUE)]
KubernetesVersion = Annotated[str, StringConstraints(pattern=formats.KUBERNETES_VERSION)]
HuggingFaceRepository = Annotated[str, StringConstraints(pattern=formats.HUGGING_FACE_REPOSITORY)]
Revision = Annotated[str, StringConstraints(pattern=formats.REVISION)]
ParserName = Annotated[str, StringConstraints(pattern=formats.PARSER_NAME)]
ContainerImage = Annotated[str, StringConstraints(pattern=formats.CONTAINER_IMAGE)]
S3Prefix = Annotated[str, StringConstraints(pattern=formats.S3_PREFIX)]
S3Folder = Annotated[str, StringConstraints(pattern=formats.S3_FOLDER)]
S3Object = Annotated[str, StringConstraints(pattern=formats.S3_OBJECT)]
CronExpression = Annotated[str, StringConstraints(pattern=formats.CRON_EXPRESSION)]
CronTime = Annotated[str, StringConstraints(pattern=formats.CRON_TIME)]
TimeZone = Annotated[str, StringConstraints(pattern=formats.TIME_ZONE)]
PrincipalArn = Annotated[str, StringConstraints(pattern=formats.PRINCIPAL_ARN)]
KafkaTopic = Annotated[str, StringConstraints(pattern=formats.KAFKA_TOPIC)]
EventField = Annotated[str, StringConstraints(pattern=formats.EVENT_FIELD)]
BrokerType = Annotated[str, StringConstraints(pattern=formats.BROKER_TYPE)]
MskClusterArn = Annotated[str, StringConstraints(pattern=formats.MSK_CLUSTER_ARN)]
BootstrapServers = Annotated[str, StringConstraints(pattern=formats.BOOTSTRAP_SERVERS)]
SecurityGroupId = Annotated[str, StringConstraints(pattern=formats.SECURITY_GROUP_ID)]
ArgumentValue = str | int | float | bool


class Section(BaseModel):
    """A mapping of the blueprint. Unknown keys are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        defer_build=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        strict=True,
    )

    @classmethod
    def completed(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a value of a file with the keys that follow from others of it: by default, as it is."""
        return value


class Choice(Section):
    """A section in which exactly one key is given."""

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: Any) -> Any:
        """Refuse a section with no key or several keys. An unknown key has a separate error."""
        if not isinstance(value, dict):
            return value
        names = {field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields)
        given = [key for key in value if key in names]
        if len(given) > 1 or not value:
            raise PydanticCustomError("one_of", "exactly one key is needed", {"given": given})
        return value

    @property
    def chosen(self) -> str:
        """The given key, as in the YAML file."""
        [name] = [name for name in type(self).model_fields if getattr(self, name) is not None]
        return to_camel(name)


def default(yaml: dict[str, Any]) -> Any:
    """Return a field whose default is written as in a YAML file."""
    return Field(default=yaml, validate_default=True)

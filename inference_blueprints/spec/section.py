"""Base classes of all sections, and types of texts with a certain form.

This module and those of sections do without ``from __future__ import annotations``: with it, pydantic gets
each annotation as a text, which it compiles and evaluates.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError
from pydantic_core.core_schema import no_info_after_validator_function, no_info_plain_validator_function

from inference_blueprints.spec import formats
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a text, as an annotation of ``str``.

    As pydantic's ``pattern``, but compiled when a text is checked. pydantic compiles those of all sections
    before it checks anything, which takes 5 MiB.
    """

    pattern: str
    """A regular expression that the whole text must match."""

    def __get_pydantic_core_schema__(self, source: type[str], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the form after the type and the length."""
        return no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """State the pattern in the JSON Schema."""
        return {**handler(schema), "pattern": self.pattern}

    def _checked(self, text: str) -> str:
        """Return the text. Raises PydanticKnownError if it has another form."""
        if re.fullmatch(self.pattern, text) is None:
            raise PydanticKnownError("string_pattern_mismatch", {"pattern": self.pattern})
        return text


Name = Annotated[str, Form(formats.NAME)]
Region = Annotated[str, Form(formats.REGION)]
AvailabilityZone = Annotated[str, Form(formats.AVAILABILITY_ZONE)]
AccountId = Annotated[str, Form(formats.ACCOUNT_ID)]
Cidr = Annotated[str, Form(formats.CIDR)]
InstanceTypeName = Annotated[str, Form(formats.INSTANCE_TYPE)]
VpcId = Annotated[str, Form(formats.VPC_ID)]
SubnetId = Annotated[str, Form(formats.SUBNET_ID)]
SecretArn = Annotated[str, Form(formats.SECRET_ARN)]
CertificateArn = Annotated[str, Form(formats.CERTIFICATE_ARN)]
TopicArn = Annotated[str, Form(formats.TOPIC_ARN)]
EmailAddress = Annotated[str, Form(formats.EMAIL_ADDRESS)]
Domain = Annotated[str, Form(formats.DOMAIN)]
CapacityReservationId = Annotated[str, Form(formats.CAPACITY_RESERVATION_ID)]
UtcTime = Annotated[str, Form(formats.UTC_TIME)]
SnapshotId = Annotated[str, Form(formats.SNAPSHOT_ID)]
QualifiedName = Annotated[str, Form(formats.QUALIFIED_NAME)]
LabelValue = Annotated[str, Form(formats.LABEL_VALUE)]
KubernetesVersion = Annotated[str, Form(formats.KUBERNETES_VERSION)]
HuggingFaceRepository = Annotated[str, Form(formats.HUGGING_FACE_REPOSITORY)]
Revision = Annotated[str, Form(formats.REVISION)]
ParserName = Annotated[str, Form(formats.PARSER_NAME)]
ContainerImage = Annotated[str, Form(formats.CONTAINER_IMAGE)]
S3Prefix = Annotated[str, Form(formats.S3_PREFIX)]
S3Folder = Annotated[str, Form(formats.S3_FOLDER)]
S3Object = Annotated[str, Form(formats.S3_OBJECT)]
CronExpression = Annotated[str, Form(formats.CRON_EXPRESSION)]
CronTime = Annotated[str, Form(formats.CRON_TIME)]
TimeZone = Annotated[str, Form(formats.TIME_ZONE)]
PrincipalArn = Annotated[str, Form(formats.PRINCIPAL_ARN)]
KafkaTopic = Annotated[str, Form(formats.KAFKA_TOPIC)]
EventField = Annotated[str, Form(formats.EVENT_FIELD)]
BrokerType = Annotated[str, Form(formats.BROKER_TYPE)]
MskClusterArn = Annotated[str, Form(formats.MSK_CLUSTER_ARN)]
BootstrapServers = Annotated[str, Form(formats.BOOTSTRAP_SERVERS)]
PublicName = Annotated[str, Form(formats.PUBLIC_NAME)]
ProjectName = Annotated[str, Form(formats.PROJECT)]
DoorKey = Annotated[str, Form(formats.DOOR_KEY)]
HttpsUrl = Annotated[str, Form(formats.HTTPS_URL)]
SecurityGroupId = Annotated[str, Form(formats.SECURITY_GROUP_ID)]
ArgumentValue = str | int | float | bool


#: Whether pydantic describes a section now, so that the sections in it are described later.
_describing: ContextVar[bool] = ContextVar("_describing", default=False)
#: Key of a core schema's metadata: the section that is described later.
LATER: Final = "later"


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
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Describe a section without the sections in it, which are described when a file has them.

        Most files have few of the sections, and pydantic takes longer to describe all of them than everything
        else that `blueprints validate` does with a short file. An error of a section in another one keeps its
        place: pydantic adds the lines of a ``ValidationError`` that a validator raises to its own.
        """
        if _describing.get():
            return no_info_plain_validator_function(cls._of_file, metadata={LATER: cls})
        token = _describing.set(True)
        try:
            return handler(source)
        finally:
            _describing.reset(token)

    @classmethod
    def _of_file(cls, value: Any) -> Self:
        """Return the section of a file's value, or the section that the value is already."""
        return cls.model_validate(value, by_alias=True, by_name=False)

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

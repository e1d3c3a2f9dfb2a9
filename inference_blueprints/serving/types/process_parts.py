"""Parts of a process: values of its variables, its ports, artefacts and scaling, and their constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from inference_contracts.records import dataclass

# Constraints on fields of the serving plan. The schemas of our charts enforce them.

#: Name of a process, a port or a sidecar; Kubernetes limits port names to 15 characters.
Name = Annotated[str, Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=15)]
EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]
#: Address of a container image with its tag and, optionally, its digest.
Image = Annotated[str, Field(pattern="^[^:@]+(:[0-9]+)?[^:@]*:[^:@]+(@sha256:[0-9a-f]{64})?$")]
NonEmpty = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class SecretValue:
    """An environment value that the target reads from a secret at run time."""

    arn: str
    """Secrets Manager ARN of the secret, whose whole string is the value."""


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An environment value that is the process's own IP address."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """An environment value that is the address of another process of the same deployment."""

    process: str
    """Name of that process."""
    port: str
    """Name of its port."""


@dataclass(frozen=True, slots=True)
class WeightsBucket:
    """An environment value that is the name of the platform's bucket of weights. The target knows it."""


@dataclass(frozen=True, slots=True)
class KvCacheBucket:
    """An environment value that is the name of the model's bucket of KV cache. The target knows it."""


@dataclass(frozen=True, slots=True)
class FilePath:
    """An environment value that is the path of a file. The target writes the file."""

    name: str
    """Name of the file, unique in its process."""
    text: str
    """Its content."""


#: A literal value is a plain string.
EnvironmentValue = str | SecretValue | OwnAddress | PeerAddress | WeightsBucket | KvCacheBucket | FilePath


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledArtefacts:
    """What a worker's compiler makes, kept in S3."""

    folder: Annotated[str, Field(pattern="^/")]
    """Folder of the compiler in the worker."""
    key: NonEmpty
    """Prefix in the platform's weights bucket."""
    environment: Mapping[str, EnvironmentValue]
    """Variables of ``runtime/weights/neuron_artefacts.py``."""


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port on which a process listens."""

    name: Name
    """Name of the port, unique in its process."""
    number: Annotated[int, Field(ge=1024, le=65535)]
    """Port number in the container. A local target chooses free ones instead."""


#: The ports of a program: at least one.
Ports = Annotated[tuple[Port, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class EnginePort:
    """A port of an engine, and where its number is set, for targets whose workers share an address."""

    name: Name
    """Name of the port, unique in its process."""
    number: Annotated[int, Field(ge=1024, le=65535)]
    """Number that the plan's arguments and variables have, or the engine's default."""
    argument: str | None = None
    """Argument without dashes whose value contains the number. None if a variable sets it."""
    variable: str | None = None
    """Variable that is the number. None if an argument sets it."""
    count: Positive = 1
    """Ports in a row that the engine opens from there on."""


#: How KEDA compares a trigger's number with its target: ``AverageValue`` divides it by the number of workers,
#: ``Value`` takes it as it is.
MetricType = Literal["AverageValue", "Value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTrigger:
    """A measured load by which a role scales."""

    name: Annotated[str, Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
    """Name within the role."""
    query: NonEmpty
    """PromQL expression with one number for the whole role."""
    target: Annotated[float, Field(gt=0)]
    """Value at which the number of workers is right: per worker with ``AverageValue``, of the role with
    ``Value``, in the unit of the query."""
    metric_type: MetricType
    """How the number is compared with the target."""
    why: NonEmpty
    """A sentence that explains the target, with the figures behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFloor:
    """A smallest number of workers during a part of the week."""

    start: NonEmpty
    end: NonEmpty
    """`start`, `end`: Cron expressions of five fields, as KEDA reads them."""
    time_zone: NonEmpty
    """Time zone of both, such as ``Europe/Berlin``."""
    replicas: Positive
    """Smallest number of workers from `start` to `end`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The range of an elastic role, and the rules by which KEDA moves within it."""

    least: Positive
    most: Positive
    """`least`, `most`: Smallest and largest number of workers."""
    ceiling: Positive | None = None
    """Largest number on a pool that models share by the hour, until the capacity shift sets another. None for
    `most`."""
    triggers: Annotated[tuple[ScaleTrigger, ...], Field(min_length=1)]
    """Measured loads. The one that needs most workers decides."""
    floors: tuple[ReplicaFloor, ...] = ()
    """Smallest numbers of workers by schedule."""
    polling_seconds: Positive = 15
    """Time between two readings of the triggers."""
    up_stabilization_seconds: NotNegative = 0
    """Time during which a need for more workers must last."""
    down_stabilization_seconds: NotNegative = 300
    """Time during which a need for fewer workers must last."""
    down_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """Largest share of the workers that go within `down_period_seconds`, in percent."""
    down_period_seconds: Positive = 60
    """Period of that share, in seconds."""
    fallback_after_failures: Positive = 3
    """Failed readings of a trigger in a row after which `fallback_replicas` holds."""

    @property
    def fallback_replicas(self) -> int:
        """Number of workers without readings, if there are not more already: the highest floor."""
        return max((floor.replicas for floor in self.floors), default=self.least)

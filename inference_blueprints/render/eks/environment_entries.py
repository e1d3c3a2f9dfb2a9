"""Environment variables and secrets in the form that our charts read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from inference_blueprints.serving.types import (
    EnvironmentValue,
    FilePath,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    SecretValue,
    WeightsBucket,
)
from inference_blueprints.serving.types.process_parts import EnvironmentName, NonEmpty
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class LiteralEntry:
    """A variable with a fixed value."""

    name: EnvironmentName
    value: str


@dataclass(frozen=True, slots=True)
class SecretEntry:
    """A variable whose value is in a secret, under the key `secret`."""

    name: EnvironmentName
    secret: EnvironmentName


@dataclass(frozen=True, slots=True)
class OwnAddressEntry:
    """A variable whose value is the address of the pod."""

    name: EnvironmentName
    own_address: Literal[True]


@dataclass(frozen=True, slots=True)
class WeightsBucketEntry:
    """A variable whose value is the name of the platform's weights bucket."""

    name: EnvironmentName
    weights_bucket: Literal[True]


@dataclass(frozen=True, slots=True)
class KvCacheBucketEntry:
    """A variable whose value is the name of the model's KV cache bucket."""

    name: EnvironmentName
    kv_cache_bucket: Literal[True]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A variable whose value is the path of a file, which the chart mounts from a ConfigMap."""

    name: EnvironmentName
    file: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\.[a-z]+$")]
    text: NonEmpty


MirrorEntry = LiteralEntry | SecretEntry | WeightsBucketEntry
EnvironmentEntry = MirrorEntry | OwnAddressEntry | KvCacheBucketEntry | FileEntry


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret of AWS Secrets Manager, and the variable that is set to its value."""

    arn: NonEmpty
    key: EnvironmentName


def environment_entries(environment: Mapping[str, EnvironmentValue]) -> tuple[EnvironmentEntry, ...]:
    """Return the variables, sorted by name."""
    return tuple(_entry(name, environment[name]) for name in sorted(environment))


def mirror_entries(environment: Mapping[str, EnvironmentValue]) -> tuple[MirrorEntry, ...]:
    """Return the variables of a weights mirror, which has neither an address nor a KV cache."""
    entries = environment_entries(environment)
    unknown = ", ".join(each.name for each in entries if not isinstance(each, MirrorEntry))
    if unknown:
        raise ValueError(f"a weights mirror has neither an address nor a KV cache for {unknown}")
    return tuple(each for each in entries if isinstance(each, MirrorEntry))


def secret_references(environments: Iterable[Mapping[str, EnvironmentValue]]) -> tuple[SecretReference, ...]:
    """Return each secret of some environments once, sorted by variable."""
    arns = {
        name: value.arn
        for environment in environments
        for name, value in environment.items()
        if isinstance(value, SecretValue)
    }
    return tuple(SecretReference(arns[key], key) for key in sorted(arns))


def _entry(name: str, value: EnvironmentValue) -> EnvironmentEntry:
    """Return the chart's form of a variable. A secret's key is the name of the variable."""
    match value:
        case SecretValue():
            return SecretEntry(name, name)
        case OwnAddress():
            return OwnAddressEntry(name, own_address=True)
        case WeightsBucket():
            return WeightsBucketEntry(name, weights_bucket=True)
        case KvCacheBucket():
            return KvCacheBucketEntry(name, kv_cache_bucket=True)
        case FilePath():
            return FileEntry(name, value.name, value.text)
        case PeerAddress():
            raise ValueError(
                f"process '{value.process}' cannot be addressed: Dynamo's workers are found by discovery"
            )
        case str():
            return LiteralEntry(name, value)

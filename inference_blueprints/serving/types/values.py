"""Values of the environment variables of a process."""

from __future__ import annotations

from dataclasses import dataclass


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

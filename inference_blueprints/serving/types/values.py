"""Values of the environment variables of a process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretValue:
    """An environment value that the target reads from a secret at run time.

    Parameters
    ----------
    arn
        Secrets Manager ARN of the secret, whose whole string is the value.
    """

    arn: str


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An environment value that is the process's own IP address."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """An environment value that is the address of another process of the same deployment.

    Parameters
    ----------
    process
        Name of that process.
    port
        Name of its port.
    """

    process: str
    port: str


@dataclass(frozen=True, slots=True)
class WeightsBucket:
    """An environment value that is the name of the platform's bucket of weights. The target knows it."""


@dataclass(frozen=True, slots=True)
class KvCacheBucket:
    """An environment value that is the name of the model's bucket of KV cache. The target knows it."""


@dataclass(frozen=True, slots=True)
class FilePath:
    """An environment value that is the path of a file. The target writes the file.

    Parameters
    ----------
    name
        Name of the file, unique in its process.
    text
        Its content.
    """

    name: str
    text: str


#: A literal value is a plain string.
EnvironmentValue = str | SecretValue | OwnAddress | PeerAddress | WeightsBucket | KvCacheBucket | FilePath

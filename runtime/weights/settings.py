"""Environment variables of the programs.

============================ ======================================================= =========
Variable                     Meaning                                                 Default
============================ ======================================================= =========
``WEIGHTS_BUCKET``           bucket that holds the copy                              required
``WEIGHTS_PREFIX``           prefix of the copy, without a slash at its end          required
``WEIGHTS_REPOSITORY``       repository on the Hub (mirror only)                     required
``WEIGHTS_REVISION``         commit of that repository (mirror only)                 required
``WEIGHTS_FILES_AT_ONCE``    files that are copied at the same time                  8
``WEIGHTS_PARTS_IN_MEMORY``  parts that wait for S3 or are being sent to it          8
``WEIGHTS_PART_MIB``         size of a part in MiB, at least 5                       32
``NODE_CACHE_FOLDER``        the folder that pods of a node share (node cache only)  required
``NODE_CACHE_GIB``           its largest size in GiB                                 required
``NODE_CACHE_COMPILED``      name of the release's folder of compiled kernels        required
``NODE_CACHE_WEIGHTS``       name of the folder of the weights                       no weights
``NODE_CACHE_READY_FILE``    file that is created when the worker can start          required
============================ ======================================================= =========

The node cache reads the copy in the bucket if ``WEIGHTS_BUCKET`` is set, and the Hub if it is not.

The libraries also read their own variables: ``HF_TOKEN`` for a gated model, ``AWS_REGION`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Smallest part that S3 accepts (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
_LEAST_PART_MIB = 5


class WeightsSettingsError(Exception):
    """Missing or invalid variables, all of them in one message.

    These programs have their own code to read variables, because a ConfigMap adds only their files to a
    third-party image.
    """


@dataclass(frozen=True)
class Copy:
    """The place of the copy.

    Parameters
    ----------
    bucket
        Name of the bucket.
    prefix
        Prefix of the files, without a slash at its end.
    """

    bucket: str
    prefix: str

    @property
    def manifest_key(self) -> str:
        """Key of the object that is written last. It is outside the prefix of the files."""
        return f"{self.prefix}.json"

    def key(self, path: str) -> str:
        """Return the key of a file of the repository."""
        return f"{self.prefix}/{path}"


@dataclass(frozen=True)
class MirrorSettings:
    """The source, the destination and the limits of a copy.

    Parameters
    ----------
    repository, revision
        Repository on the Hub and its commit.
    files_at_once, parts_in_memory
        Number of files read in parallel, and of parts that wait for S3 at the same time.
    part_bytes
        Size of a part in bytes.
    """

    repository: str
    revision: str
    copy: Copy
    files_at_once: int
    parts_in_memory: int
    part_bytes: int


@dataclass(frozen=True)
class NodeCacheSettings:
    """What a worker uses of its node's cache.

    Parameters
    ----------
    folder
        The folder that the pods of the node share.
    bound_bytes
        Largest size of all its entries, in bytes.
    compiled
        Name of the release's folder of compiled kernels.
    weights
        Name of the folder of the weights. None if the worker reads them itself.
    repository, revision
        Repository on the Hub and its commit. Empty without weights.
    copy
        The copy in the bucket. None if the weights come from the Hub.
    ready_file
        File that is created when the worker can start.
    """

    folder: Path
    bound_bytes: int
    compiled: str
    weights: str | None
    repository: str
    revision: str
    copy: Copy | None
    ready_file: Path


def read_node_cache_settings(environment: Mapping[str, str]) -> NodeCacheSettings:
    """Read all settings of the node's cache.

    Raises
    ------
    WeightsSettingsError
        If variables are missing or are not numbers in their range.
    """
    weights = environment.get("NODE_CACHE_WEIGHTS")
    of_weights = ("WEIGHTS_REPOSITORY", "WEIGHTS_REVISION") if weights else ()
    folder, ready, compiled = "NODE_CACHE_FOLDER", "NODE_CACHE_READY_FILE", "NODE_CACHE_COMPILED"
    _require(environment, folder, ready, compiled, "NODE_CACHE_GIB", *of_weights)
    return NodeCacheSettings(
        folder=Path(environment[folder]),
        bound_bytes=_number(environment, "NODE_CACHE_GIB", default=0, least=1) * 2**30,
        compiled=environment[compiled],
        weights=weights,
        repository=environment.get("WEIGHTS_REPOSITORY", ""),
        revision=environment.get("WEIGHTS_REVISION", ""),
        copy=read_copy(environment) if environment.get("WEIGHTS_BUCKET") else None,
        ready_file=Path(environment[ready]),
    )


def read_copy(environment: Mapping[str, str]) -> Copy:
    """Read the place of the copy.

    Raises
    ------
    WeightsSettingsError
        If a variable is missing.
    """
    _require(environment, "WEIGHTS_BUCKET", "WEIGHTS_PREFIX")
    return Copy(environment["WEIGHTS_BUCKET"], environment["WEIGHTS_PREFIX"].rstrip("/"))


def read_settings(environment: Mapping[str, str]) -> MirrorSettings:
    """Read all settings of the copy.

    Raises
    ------
    WeightsSettingsError
        If variables are missing or are not numbers in their range.
    """
    _require(environment, "WEIGHTS_BUCKET", "WEIGHTS_PREFIX", "WEIGHTS_REPOSITORY", "WEIGHTS_REVISION")
    return MirrorSettings(
        repository=environment["WEIGHTS_REPOSITORY"],
        revision=environment["WEIGHTS_REVISION"],
        copy=read_copy(environment),
        files_at_once=_number(environment, "WEIGHTS_FILES_AT_ONCE", default=8, least=1),
        parts_in_memory=_number(environment, "WEIGHTS_PARTS_IN_MEMORY", default=8, least=1),
        part_bytes=_number(environment, "WEIGHTS_PART_MIB", default=32, least=_LEAST_PART_MIB) * 2**20,
    )


def _require(environment: Mapping[str, str], *names: str) -> None:
    """Raise an error if any of these variables is missing or empty."""
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise WeightsSettingsError(f"environment variables are missing: {', '.join(missing)}")


def _number(environment: Mapping[str, str], name: str, *, default: int, least: int) -> int:
    """Read a whole number and check its minimum."""
    value = environment.get(name, str(default))
    if not value.isdecimal() or int(value) < least:
        raise WeightsSettingsError(f"{name}: got {value!r}, must be a whole number of at least {least}")
    return int(value)

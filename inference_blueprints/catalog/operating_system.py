"""The operating system of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """The operating system that nodes boot.

    Parameters
    ----------
    name
        Such as ``bottlerocket``.
    version
        Release, such as ``v1.66.0``.
    oldest
        Oldest release that supports the settings of the nodes.
    root_volume_gib
        Size of the root volume, which holds the largest of its images, in GiB.
    unbootable_families
        Families of instance types that do not boot its image, with the report of the fault.
    """

    name: str
    version: str
    oldest: str
    root_volume_gib: int
    unbootable_families: Mapping[str, str]

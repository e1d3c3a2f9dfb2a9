"""The operating system of the nodes."""

from __future__ import annotations

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
    """

    name: str
    version: str
    oldest: str
    root_volume_gib: int

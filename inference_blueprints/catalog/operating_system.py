"""The operating system of the nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """What nodes boot.

    Parameters
    ----------
    name
        Such as ``bottlerocket``.
    version
        Its release, such as ``v1.66.0``.
    oldest
        Oldest release that reads the settings which nodes get.
    """

    name: str
    version: str
    oldest: str

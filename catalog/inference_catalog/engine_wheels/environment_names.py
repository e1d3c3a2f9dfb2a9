"""Reads the environment variables that an engine defines from its wheel, without running it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from types import MappingProxyType

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentModule:
    """The module of an engine that defines its environment variables."""

    path: str
    """Path in the wheel."""
    prefix: str
    """Beginning of all names, such as ``VLLM_``."""
    definition: str
    """Pattern of the lines that define a name, which is its group."""

    def names(self, archive: zipfile.ZipFile) -> tuple[str, ...]:
        """Return the names, sorted; none if this release has no such module.

        Parameters
        ----------
        archive
            The wheel.
        """
        if self.path not in archive.namelist():
            return ()
        text = archive.read(self.path).decode("utf-8")
        return tuple(sorted(set(re.findall(self.definition, text, re.MULTILINE))))


#: By the blueprint's key, which is also the name of the package.
ENVIRONMENT_MODULES: Mapping[str, EnvironmentModule] = MappingProxyType(
    {
        "vllm": EnvironmentModule("vllm/envs.py", "VLLM_", r'^    "(VLLM_[A-Z0-9_]+)":'),
        "sglang": EnvironmentModule("sglang/srt/environ.py", "SGLANG_", r"^    (SGLANG_[A-Z0-9_]+) *="),
    }
)

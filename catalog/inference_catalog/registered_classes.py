"""The model classes that the pinned engines register, and what a user gives for one that is not counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inference_catalog.classes import ClassHistory
from inference_contracts.records import dataclass

ClassTask = Literal[
    "text",
    "multimodal",
    "embedding",
    "lateInteraction",
    "reward",
    "tokenClassification",
    "sequenceClassification",
    "transcription",
    "draft",
]
"""What a class is for: ``text`` and ``multimodal`` write text, the latter also reads images or sound."""


@dataclass(frozen=True, slots=True)
class RegisteredClass:
    """A model class that an engine registers."""

    name: str
    """The class in ``architectures`` of a ``config.json``."""
    task: ClassTask
    """What it is for."""
    engines: tuple[str, ...]
    """Engines that register it, by the blueprint's key."""


@dataclass(frozen=True, slots=True)
class RegisteredClasses:
    """All of them, with the classes that vLLM had before."""

    releases: Mapping[str, str]
    """Release of each engine whose classes were read."""
    classes: Mapping[str, RegisteredClass]
    """Class by name."""
    former: Mapping[str, str]
    """vLLM's last release with a class that it no longer registers, by name."""
    plugins: Mapping[str, str]
    """Address of the plugin that adds a class to vLLM, by name."""
    histories: Mapping[str, ClassHistory]
    """Classes over the releases that were read, by the blueprint's key of the engine."""

    def known_to(self, name: str) -> str:
        """Return which engines know a class, as the end of a sentence that begins with the class."""
        found = self.classes.get(name)
        if found:
            engines = " and ".join(f"{each} {self.releases[each]}" for each in found.engines)
            return f"{engines} {'runs' if len(found.engines) == 1 else 'run'} it"
        pinned = " nor ".join(f"{engine} {release}" for engine, release in self.releases.items())
        if name in self.former:
            return f"neither {pinned} registers it; the last release of vLLM with it is {self.former[name]}"
        if name in self.plugins:
            return f"neither {pinned} registers it; a plugin adds it to vLLM: {self.plugins[name]}"
        newer = [
            f"{engine} {own.first}"
            for engine, history in self.histories.items()
            if (own := history.classes.get(name)) and not own.until
        ]
        if newer:
            return (
                f"neither {pinned} registers it; without Dynamo, it is in {' and '.join(newer)} "
                "(`blueprints engines`)"
            )
        return f"neither {pinned} registers it, and no release with it is known here"

"""Which local programs stand for a container image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path


class PullError(Exception):
    """No program of this machine stands for an image, as if its registry did not have it."""


@dataclass(frozen=True)
class StandInImage:
    """Programs of this machine that stand for an image."""

    folders: tuple[str, ...] = ()
    """Folders that come first in PATH."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the image sets."""
    entry_point: tuple[str, ...] = ()
    """The image's entry point, before the command of the container."""
    command: tuple[str, ...] = ()
    """The image's command, for containers without one."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Programs here by their path in the image."""
    scratch: tuple[str, ...] = ()
    """Folders of the image that programs write to: each container has its own."""


class StandInImages:
    """The images that this machine can run, by repository (without tag and digest).

    images: Repository to programs. A repository may have the wildcards of `fnmatch`, for one that gets its
        name when it is created.
    """

    def __init__(self, images: Mapping[str, StandInImage]) -> None:
        self._images = images

    @classmethod
    def read(cls, path: Path) -> StandInImages:
        """Read what `write_images` wrote."""
        return cls(
            {
                name: StandInImage(
                    tuple(each["folders"]),
                    each["environment"],
                    tuple(each["entry_point"]),
                    tuple(each["command"]),
                    each["programs"],
                    tuple(each["scratch"]),
                )
                for name, each in json.loads(path.read_text()).items()
            }
        )

    def pull(self, image: str) -> StandInImage:
        """Return the programs of an image.

        Raises PullError if there are none, with ECS' words (stopped-task-error-codes.html,
        CannotPullContainerError).
        """
        repository = repository_of(image)
        found = next((each for name, each in self._images.items() if fnmatchcase(repository, name)), None)
        if found is None:
            raise PullError(
                f"CannotPullContainerError: pull image manifest has been retried 1 time(s): {image}: "
                "not found; "
                "no program of this machine stands for it"
            )
        return found


def repository_of(image: str) -> str:
    """Return the repository of an image, without tag and digest."""
    repository = image.partition("@")[0]
    return repository.rpartition(":")[0] if ":" in repository.rpartition("/")[2] else repository


def write_images(images: Mapping[str, StandInImage], path: Path) -> None:
    """Write the table for the emulator's process."""
    path.write_text(json.dumps({name: asdict(each) for name, each in images.items()}))

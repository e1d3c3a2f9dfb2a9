"""What a container becomes here: a command, an environment and folders.

The folders of mount points are real folders of the run. Where tasks have mounts of their own, containers
find them at their paths. Otherwise, and below the folder of temporary files, where this run may be, each
mount path in the command and in the environment is replaced.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from inference_local.emulator.ecs.control.cluster_state import Shape
from inference_local.serving.isolation import Mount


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


@dataclass(frozen=True)
class ContainerCommand:
    """A command with its complete environment, started in its own folder."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path

    def check(self, check: Sequence[str], mounts: Mapping[str, Path]) -> list[str]:
        """Return the command of a health check: CMD or CMD-SHELL (API HealthCheck)."""
        kind, *words = check
        words = [with_folders(word, mounts) for word in words]
        return ["/bin/sh", "-c", words[0]] if kind == "CMD-SHELL" else words


@dataclass(frozen=True)
class TaskFolders:
    """Folders of a task."""

    task: Path
    """Its own."""
    host: Path
    """That of its host, which its tasks share."""
    shared: Path
    """File systems that all hosts share."""


def mount_folders(definition: Shape, container: Shape, folders: TaskFolders) -> dict[str, Path]:
    """Return the folder of each mount path of a container, created."""
    volumes = {each["name"]: each for each in definition.get("volumes", ())}
    mounts = {}
    for point in container.get("mountPoints", ()):
        volume = volumes.get(point["sourceVolume"], {})
        if efs := volume.get("efsVolumeConfiguration"):
            access = (efs.get("authorizationConfig") or {}).get("accessPointId", "root")
            folder = folders.shared / efs["fileSystemId"] / access
        elif source := (volume.get("host") or {}).get("sourcePath"):
            folder = folders.host / source.strip("/")
        else:
            folder = folders.task / "volumes" / point["sourceVolume"]
        folder.mkdir(parents=True, exist_ok=True)
        mounts[point["containerPath"]] = folder
    return mounts


def own_mounts(container: Shape, mounts: Mapping[str, Path]) -> list[Mount]:
    """Return the mount points of a container that need no replacement."""
    read_only = {
        each["containerPath"]: bool(each.get("readOnly")) for each in container.get("mountPoints", ())
    }
    temporary = Path("/tmp")  # noqa: S108 -- the path in images
    return [
        Mount(folder, path, read_only[path])
        for path, folder in mounts.items()
        if not Path(path).is_relative_to(temporary)
    ]


def with_folders(text: str, mounts: Mapping[str, Path]) -> str:
    """Replace each mount path that stands alone or begins a path, once."""
    folders = {path.rstrip("/"): str(folder) for path, folder in mounts.items()}
    paths = "|".join(re.escape(path) for path in sorted(folders, key=len, reverse=True))
    return (
        re.sub(rf"(?<![\w./-])({paths})(?![\w.-])", lambda found: folders[found[1]], text) if paths else text
    )


def container_command(
    container: Shape,
    override: Shape,
    image: StandInImage,
    *,
    given: Mapping[str, str],
    folder: Path,
    mounts: Mapping[str, Path],
) -> ContainerCommand:
    """Return the command of a container.

    container: Its definition.
    override: ``containerOverrides`` of RunTask for it.
    image: What stands for its image.
    given: Variables that the agent gives, with the values of secrets.
    folder: Its own folder.
    """
    entry = container.get("entryPoint") or image.entry_point
    command = override.get("command") or container.get("command") or image.command
    folder_of = {**mounts, **{path: folder / path.strip("/") for path in image.scratch}}
    environment = {
        "PATH": os.pathsep.join([*image.folders, os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        **{name: str(mounts.get(value, value)) for name, value in image.environment.items()},
        **given,
    }
    for each in (*container.get("environment", ()), *override.get("environment", ())):
        environment[each["name"]] = with_folders(each.get("value", ""), folder_of)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    words = [
        image.programs.get(word, word) if place == 0 else word
        for place, word in enumerate([*entry, *command])
    ]
    return ContainerCommand(tuple(with_folders(word, folder_of) for word in words), environment, folder)

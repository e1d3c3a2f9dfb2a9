"""Runs the metrics program of a task with files whose paths are those of the task's folders here.

A container here has no file system of its own, so a mount path is another folder. The agent replaces mount
paths in commands and variables; the files that a variable packs (`packed_files`) are replaced here.
``python -m … WORDS`` becomes ``python WORDS``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.contracts import scale_metrics
from inference_blueprints.contracts.packed_files import pack_files, unpack_files
from inference_blueprints.targets.ecs.metrics_task import FILES_FOLDER

_FOLDER = "METRICS_FILES_FOLDER"
#: Variables of the image. The agent replaces the path by the folder of the mount.
FOLDER_VARIABLES: Mapping[str, str] = MappingProxyType({_FOLDER: FILES_FOLDER})


def moved(packed: str, folder: str) -> str:
    """Return packed files with the folder in place of the mount path, in paths and contents."""
    files = {
        path.replace(FILES_FOLDER, folder): text.replace(FILES_FOLDER, folder)
        for path, text in unpack_files(packed).items()
    }
    return pack_files(files)


def main() -> None:
    """Become the program."""
    environment = dict(os.environ)
    environment[scale_metrics.FILES] = moved(environment[scale_metrics.FILES], environment.pop(_FOLDER))
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment)  # noqa: S606 - its purpose


if __name__ == "__main__":
    main()

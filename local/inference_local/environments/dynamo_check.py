"""Imports what runs and replays, and writes the versions.

The environment's Python runs it as ``dynamo_check.py FILE``: that environment does not have this library.
"""

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

_MODULES = ("dynamo.frontend.main", "dynamo.mocker.main", "dynamo.replay", "numpy")
_PACKAGES = ("ai-dynamo", "ai-dynamo-runtime")


def main(target: Path) -> None:
    """Import, and write the versions to a JSON file."""
    for name in _MODULES:
        importlib.import_module(name)
    target.write_text(json.dumps({name: version(name) for name in _PACKAGES}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

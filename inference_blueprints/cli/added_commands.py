"""Commands of other distributions: entry points of the group `inference_blueprints.commands`.

Each names a module with a function `register`, which adds its command to the command line.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from inference_contracts.errors import UserError

GROUP = "inference_blueprints.commands"
#: Distributions of this project that bring commands.
KNOWN = {"local": "inference-local"}


def added_names() -> list[str]:
    """Return the commands that are installed."""
    from importlib.metadata import entry_points

    return [each.name for each in entry_points(group=GROUP)]


def added_module(command: str, wanted: str = "") -> ModuleType:
    """Return the module of a command of another distribution.

    wanted: What is wanted of it. By default, the command.
    Raises UserError if its distribution is not installed.
    """
    from importlib.metadata import entry_points

    for each in entry_points(group=GROUP, name=command):
        found: ModuleType = each.load()
        return found
    raise UserError(
        f"{wanted or f'`blueprints {command}`'} comes with {KNOWN[command]}, which is not installed beside "
        f"this library; install it: {_installation(command)}"
    )


def _installation(command: str) -> str:
    """Return what installs a distribution where this library is: uv and pipx write what they have made."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return (
            f"uv tool install --force './[{command}]' in a checkout, or with the folder of the wheels "
            f"--find-links FOLDER 'inference-blueprints[{command}]'"
        )
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject inference-blueprints {KNOWN[command]}"
    return f"pip install {KNOWN[command]}"


def demand_replay() -> None:
    """Let this process import Dynamo's replay, which `inference-local` installs.

    Raises UserError if it is not installed.
    """
    from inference_blueprints.measure.simulation.offline_replay import replay_is_installed

    if not replay_is_installed():
        added_module("local", "Dynamo's replay").provide_dynamo()

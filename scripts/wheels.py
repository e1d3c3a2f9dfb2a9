"""The wheels of the six distributions, and empty environments that have them installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
#: The distributions with their folders, each after those that it needs.
FOLDERS = {
    "inference-contracts": "contracts",
    "inference-catalog": "catalog",
    "inference-runtime": "runtime",
    "inference-constructs": "constructs",
    "inference-blueprints": ".",
    "inference-local": "local",
}


class WheelError(Exception):
    """A wheel cannot be built or installed; the message is what the program said."""


def run(*words: str | Path, directory: Path, variables: Mapping[str, str] | None = None) -> str:
    """Return what a program wrote.

    words: The program and its arguments.
    directory: Where it runs.
    variables: Its environment variables. None leaves out those that would lead it back to the checkout.
    Raises WheelError: The program failed.
    """
    if variables is None:
        led_back = {"PYTHONPATH", "VIRTUAL_ENV"}
        variables = {name: value for name, value in os.environ.items() if name not in led_back}
    result = subprocess.run(
        [str(word) for word in words],
        cwd=directory,
        env=dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise WheelError(f"{' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
    return result.stdout


def build(output: Path, *, sources: bool = False) -> dict[str, Path]:
    """Build a wheel of each distribution with the installed hatchling; nothing is fetched.

    output: Folder of the wheels.
    sources: Whether to build source archives too, and each wheel from its own.
    Returns: Names and wheels, in the order of `FOLDERS`.
    """
    words = ["build", "--all-packages", "--no-build-isolation", "--offline", "--python", sys.executable]
    _uv(*words, *([] if sources else ["--wheel"]), "--out-dir", output, directory=ROOT)
    return {name: next(output.glob(f"{name.replace('-', '_')}-*.whl")) for name in FOLDERS}


def environment(
    directory: Path,
    wheels: Path,
    *requirements: str,
    constraints: Path | None = LOCK,
    python: str | Path = sys.executable,
    resolution: str = "highest",
) -> Path:
    """Install requirements into an empty environment outside the checkout.

    directory: Folder of the environment; it does not exist.
    wheels: Folder of the wheels that `build` made.
    requirements: Such as `inference-constructs` or `aws-cdk-lib==2.275.0`.
    constraints: A lock file with the versions to take. None takes those that `resolution` says.
    resolution: ``highest``, or ``lowest-direct`` for the oldest versions that the requirements allow.
    Returns: The environment's Python.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    _uv("venv", "--no-project", "--python", python, directory, directory=directory.parent)
    installed = directory / "bin/python"
    limits: list[str | Path] = [] if constraints is None else ["--constraint", constraints]
    _uv(
        *("pip", "install", "--python", installed, "--find-links", wheels, "--resolution", resolution),
        *limits,
        *requirements,
        directory=directory,
    )
    return installed


def _uv(*words: str | Path, directory: Path) -> str:
    return run(sys.executable, "-m", "uv", "--quiet", *words, directory=directory)

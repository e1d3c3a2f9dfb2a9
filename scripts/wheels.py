"""The wheels of the six distributions, and empty environments that have them installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
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
#: The versions of Python that the distributions support.
PYTHONS = ("3.11", "3.12", "3.13")


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


def find_python(version: str) -> Path:
    """Return a Python of this machine: this one, one that uv finds, or one of pyenv. None is downloaded.

    version: Such as `3.12`.
    Raises WheelError: There is none.
    """
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for found in sorted((home / "versions").glob(f"{version}.*/bin/python{version}")):
        return found
    try:
        words = ("python", "find", "--no-project", "--no-python-downloads", version)
        return Path(_uv(*words, directory=ROOT).strip())
    except WheelError as error:
        raise WheelError(
            f"Python {version} is not on this machine, so nothing is known about it; install it (`uv python "
            f"install {version}`, pyenv, or your system's packages)"
        ) from error


def required(name: str) -> tuple[str, ...]:
    """Return a distribution and all that it and the parts below it name: `lowest-direct` looks at these."""
    named, parts = [], [name]
    for part in parts:
        project = tomllib.loads((ROOT / FOLDERS[part] / "pyproject.toml").read_text(encoding="utf-8"))
        needs = project["project"]["dependencies"]
        named += [each for each in needs if each not in named]
        found = [re.split("[=<>~]", each)[0] for each in needs]
        parts += [each for each in found if each in FOLDERS and each not in parts]
    return (name, *named)


def resolved(
    wheels: Path,
    *requirements: str,
    python: str,
    platform: str = "x86_64-manylinux_2_31",
    resolution: str = "highest",
    constraints: Path | None = None,
) -> dict[str, str]:
    """Return the versions that would be installed from wheels. Nothing is installed and nothing built.

    wheels, requirements, resolution, constraints: As of `environment`.
    python: Version, such as `3.12`.
    platform: As uv names it, such as `aarch64-apple-darwin`.
    Raises WheelError: There are none.
    """
    limits: list[str | Path] = [] if constraints is None else ["--constraint", constraints]
    given = wheels / "resolved.txt"
    given.write_text("\n".join(requirements), encoding="utf-8")
    text = _uv(
        *("--no-config", "pip", "compile", given, "--find-links", wheels, "--only-binary", ":all:"),
        *("--no-header", "--no-annotate", "--resolution", resolution),
        *("--python-version", python, "--python-platform", platform, *limits),
        directory=wheels,
    )
    return dict(re.findall(r"^([\w.-]+)==([\w.+!-]+)", text, re.MULTILINE))


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
        *("--only-binary", ":all:"),
        *limits,
        *requirements,
        directory=directory,
    )
    return installed


def _uv(*words: str | Path, directory: Path) -> str:
    return run(sys.executable, "-m", "uv", "--quiet", *words, directory=directory)

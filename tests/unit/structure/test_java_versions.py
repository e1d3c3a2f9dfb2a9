"""The Java programs have the library's version, as the Python packages have."""

from __future__ import annotations

import re
import tomllib

from inference_blueprints.resources import root
from inference_runtime import runtime_directory


def test_every_pom_has_the_library_s_version() -> None:
    version = tomllib.loads((root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    poms = [each for each in (runtime_directory() / "java").rglob("pom.xml") if "target" not in each.parts]
    assert len(poms) > 1
    for pom in poms:
        # The first version of a file is its own, or that of its parent.
        own = re.search(
            r"<artifactId>[\w-]+</artifactId>\s*(?:<!--.*?-->\s*)?<version>(.*?)</version>",
            pom.read_text("utf-8"),
        )
        assert own, pom
        assert own[1] == version, pom

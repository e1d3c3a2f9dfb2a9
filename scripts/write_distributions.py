"""Write the version and the licence into each distribution, and the version into the programs in Java.

The one place of the version is the ``pyproject.toml`` at the root. The distributions require each other in
exactly this version.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import Final

from generated_files import rewrite
from wheels import FOLDERS, ROOT

_PACKAGE: Final = "inference_blueprints/__init__.py"
_JAVA: Final = "runtime/java"
_JAVA_PAGE: Final = "docs/java-client.md"


def version(root: Path = ROOT) -> str:
    """Return the version of all distributions."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def with_version(text: str, number: str) -> str:
    """Return a pyproject.toml or an ``__init__.py`` with the version, also in what it requires of the others.

    text: The current text.
    number: The version.
    """
    text = re.sub(r'^((?:__)?version(?:__)? = )"[^"]*"', rf'\g<1>"{number}"', text, flags=re.MULTILINE)
    names = "|".join(FOLDERS)
    return re.sub(rf'"({names})==[^"]*"', rf'"\g<1>=={number}"', text)


def with_java_version(text: str, number: str) -> str:
    """Return a pom.xml, or a page that shows a part of one and a line of Gradle, with the library's version.

    The first version of a pom.xml is its own, or that of its parent.
    """
    text = re.sub(r'("io\.github\.inference-blueprints:[\w-]+:)[^"]*', rf"\g<1>{number}", text)
    first = r"(<artifactId>[\w-]+</artifactId>\s*(?:<!--.*?-->\s*)?<version>)[^<]*"
    return re.sub(first, rf"\g<1>{number}", text, count=1)


def main() -> None:
    """Write the files that differ."""
    change = partial(with_version, number=version())
    rewrite(ROOT / _PACKAGE, change)
    java = partial(with_java_version, number=version())
    for path in ((ROOT / _JAVA / "pom.xml"), *(ROOT / _JAVA).glob("*/pom.xml"), ROOT / _JAVA_PAGE):
        rewrite(path, java)
    for folder in FOLDERS.values():
        rewrite(ROOT / folder / "pyproject.toml", change)
        licence = ROOT / folder / "LICENSE"
        if not licence.is_file() or not cmp(ROOT / "LICENSE", licence, shallow=False):
            shutil.copyfile(ROOT / "LICENSE", licence)


if __name__ == "__main__":
    main()

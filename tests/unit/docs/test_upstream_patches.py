"""The patches for ministack apply to the installed release, and the page lists them and all of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import ministack
import pytest

from inference_blueprints.resources import root
from inference_local.emulator import patches

FOLDER = root() / "docs" / "upstream"
PATCHES = sorted(FOLDER.glob("*.patch"))
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


def order(patch: Path) -> Iterator[Path]:
    """Yield a patch after those that it requires."""
    for name in re.findall(r"^Requires: (\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE):
        yield from order(FOLDER / name)
    yield patch


def changed_files(patch: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_applies_to_the_installed_release(
    patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a new release of ministack has other sources: the patch must be made again, or is not needed."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for each in order(patch):
        for name in changed_files(each):
            source, copy = Path(ministack.__path__[0]).parent / name, tmp_path / name
            if source.exists() and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        subprocess.run(["git", "apply", "--check", each], cwd=tmp_path, check=True)
        subprocess.run(["git", "apply", each], cwd=tmp_path, check=True)
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), path.name, "exec")


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_says_what_aws_does_and_has_tests(patch: Path) -> None:
    """Red if a patch cannot be sent as it is: without the document of AWS, the release or a test."""
    header = patch.read_text(encoding="utf-8").partition("\n---\n")[0]
    assert header.startswith("Subject: ")
    parts = [part.partition(":")[0] for part in header.split("\n\n")]
    assert parts[1:3] == ["AWS", f"ministack {version('ministack')}"]
    assert parts[3].startswith("This change ")
    assert any(name.startswith("tests/test_") for name in changed_files(patch))


def test_the_page_lists_each_patch_and_each_of_ours() -> None:
    """Red if a patch of ours has no place on the page: it is a fault of ministack, or needed only here."""
    assert re.findall(r"^\| `(\S+\.patch)`", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"^\| `(\S+\.patch)`", PAGE, re.MULTILINE)) == [each.name for each in PATCHES]
    ours = {path.name for path in Path(patches.__path__[0]).glob("*.py")} - {"__init__.py"}
    assert ours - set(re.findall(r"`(\w+\.py)`", PAGE)) == set()
    assert f"release {version('ministack')}" in PAGE

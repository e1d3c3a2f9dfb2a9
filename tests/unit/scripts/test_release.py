"""What `make release` refuses, and what all distributions have in common."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest
import release
from wheels import FOLDERS, ROOT
from write_distributions import version, with_java_version, with_version

import inference_blueprints


def wheel(directory: Path, *more: str, requirement: str = "pyyaml<7,>=6", licence: bool = True) -> Path:
    """Write a wheel of the catalogue with the given files besides."""
    path = directory / "inference_catalog-1.0.0-py3-none-any.whl"
    information = "inference_catalog-1.0.0.dist-info"
    licences = [f"{information}/licenses/LICENSE"] if licence else []
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{information}/METADATA",
            f"Name: inference-catalog\nRequires-Dist: {requirement}\n\n# Catalogue\n",
        )
        for name in ("inference_catalog/__init__.py", *licences, *more):
            archive.writestr(name, "")
    return path


def test_a_complete_wheel_has_no_fault(tmp_path: Path) -> None:
    assert list(release.faults(wheel(tmp_path), "1.0.0")) == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("inference_catalog/tests/conftest.py", "has no place in a wheel"),
        ("inference_catalog/test_model.py", "has no place in a wheel"),
        ("inference_catalog/__pycache__/model.cpython-311.pyc", "has no place in a wheel"),
        ("stacks/platform.py", "got stacks beside inference_catalog"),
    ],
)
def test_files_that_do_not_belong_into_a_wheel(tmp_path: Path, name: str, fault: str) -> None:
    (found,) = release.faults(wheel(tmp_path, name), "1.0.0")
    assert fault in found


@pytest.mark.parametrize("requirement", ["pyyaml", "inference-contracts==0.9.0"])
def test_a_requirement_has_a_range_and_other_distributions_the_same_version(
    tmp_path: Path, requirement: str
) -> None:
    (found,) = release.faults(wheel(tmp_path, requirement=requirement), "1.0.0")
    assert found.startswith(requirement)


def test_a_wheel_has_its_licence_and_the_version_of_the_release(tmp_path: Path) -> None:
    found = list(release.faults(wheel(tmp_path, licence=False), "1.1.0"))
    assert found == ["got version 1.0.0, 1.1.0 is needed", "the licence is missing"]


def test_all_distributions_have_the_version_of_the_library() -> None:
    """A distribution that keeps the former version cannot be installed beside the others."""
    number = version()
    assert inference_blueprints.__version__ == number
    for folder in FOLDERS.values():
        text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        assert project["version"] == number
        ours = [each for each in project["dependencies"] if each.startswith("inference-")]
        assert all(each.endswith(f"=={number}") for each in ours), ours


def test_a_new_version_reaches_requirements_of_our_own_only() -> None:
    text = 'version = "1.0.0"\ndependencies = [\n  "inference-contracts==1.0.0",\n  "pyyaml==1.0.0",\n]\n'
    changed = text.replace('n = "1.0.0"', 'n = "1.1.0"').replace("contracts==1.0.0", "contracts==1.1.0")
    assert with_version(text, "1.1.0") == changed


def test_the_programs_in_java_get_the_version_and_their_dependencies_keep_theirs() -> None:
    own = "<artifactId>job</artifactId>\n  <!-- the library's -->\n  <version>1.0.0</version>"
    flink = "<artifactId>flink-core</artifactId><version>2.3.0</version>"
    gradle = 'implementation("io.github.inference-blueprints:endpoint-client:1.0.0")'
    assert with_java_version(gradle, "1.1.0") == gradle.replace("1.0.0", "1.1.0")
    assert with_java_version(own + flink, "1.1.0") == own.replace("1.0.0", "1.1.0") + flink

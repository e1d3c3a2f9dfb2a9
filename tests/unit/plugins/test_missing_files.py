"""A file that does not exist is named, also when several processes run the tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from inference_blueprints.resources import root
from tests.plugins import missing_files


def configure(*given: str) -> None:
    found = SimpleNamespace(args=list(given), invocation_params=SimpleNamespace(dir=root()))
    missing_files.pytest_configure(cast("pytest.Config", found))


def test_what_does_not_exist_is_named() -> None:
    """Red if `make test-thorough ONLY=missing` says only that there are no tests."""
    with pytest.raises(
        pytest.UsageError, match=r"no such file or folder of tests: missing, tests/unit/no\.py::test_one$"
    ):
        configure("tests/unit", "missing", "tests/unit/no.py::test_one")


def test_files_folders_and_tests_of_a_file_may_be_given() -> None:
    configure("tests/unit", "tests/unit/plugins/test_tiers.py::test_helm_may_start")

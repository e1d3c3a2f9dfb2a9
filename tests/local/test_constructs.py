"""The constructs in somebody else's CDK app: installed from wheels, without the library and its checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import try_constructs
from wheels import build

from tests.templates.checks.lint import lint
from tests.templates.support import Templates

#: Wheels are built and installed; on a busy machine that takes minutes.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the lowest versions that the constructs allow."""
    place = tmp_path_factory.mktemp("constructs")
    build(place / "wheels")
    return try_constructs.install(
        place / "venv", place / "wheels", python=sys.executable, resolution="lowest-direct"
    )


@pytest.mark.parametrize("example", try_constructs.EXAMPLES, ids=lambda path: path.stem)
def test_an_example_synthesises_from_wheels(example: Path, python: Path, tmp_path: Path) -> None:
    """It turns red when a construct needs the library, a newer CDK, a flag of our app, or more arguments."""
    assert try_constructs.synthesise(python, example, tmp_path / "app")
    found = lint(Templates(tmp_path / "app/cdk.out"), "us-west-2")
    # Without the flag `serverAccessLogsUseBucketPolicy`, logs are written by an access control list.
    assert [each for each in found if "[W3045:" not in each] == []


def test_the_library_is_not_there(python: Path, tmp_path: Path) -> None:
    """It turns red when the constructs depend on the library, or their CDK is not the lowest of the range."""
    found = try_constructs.versions(python, tmp_path)
    lowest = next(each for each in try_constructs.REQUIRED if each.startswith("aws-cdk-lib"))
    assert f"aws-cdk-lib {lowest.removeprefix('aws-cdk-lib>=').partition(',')[0]} " in found

"""Cases of a file with GPU health and a capacity shift for both targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.local.conformance.controlled_cases import CASES
from tests.local.conformance.controlled_platforms import ControlledEcs, ControlledEks, ControlledPlatform

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module", params=["eks", "ecs"])
def controlled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlledPlatform]:
    directory = tmp_path_factory.mktemp(f"controlled-{request.param}")
    platform: ControlledPlatform = (
        ControlledEks(directory) if request.param == "eks" else ControlledEcs(directory, print)
    )
    yield platform
    platform.close()


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_controlled_case(controlled: ControlledPlatform, case: Callable[[ControlledPlatform], None]) -> None:
    case(controlled)

"""Cases of an elastic file for both targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.local.conformance.elastic_cases import CASES
from tests.local.conformance.elastic_platforms import ElasticEcs, ElasticEks, ElasticPlatform

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module", params=["eks", "ecs"])
def elastic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ElasticPlatform]:
    directory = tmp_path_factory.mktemp(f"elastic-{request.param}")
    platform: ElasticPlatform = (
        ElasticEks(directory) if request.param == "eks" else ElasticEcs(directory, print)
    )
    yield platform
    platform.close()


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_elastic_case(elastic: ElasticPlatform, case: Callable[[ElasticPlatform], None]) -> None:
    case(elastic)

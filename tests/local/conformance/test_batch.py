"""Cases of a file with batch for both targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.local.conformance.batch_cases import CASES
from tests.local.conformance.batch_platforms import BatchEcs, BatchEks, BatchPlatform

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module", params=["eks", "ecs"])
def batch(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BatchPlatform]:
    directory = tmp_path_factory.mktemp(f"batch-{request.param}")
    platform: BatchPlatform = BatchEks(directory) if request.param == "eks" else BatchEcs(directory, print)
    yield platform
    platform.close()


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_batch_case(batch: BatchPlatform, case: Callable[[BatchPlatform], None]) -> None:
    case(batch)

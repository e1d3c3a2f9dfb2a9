"""Both platforms, each started once. Their tests run by `make test-ecs`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.conformance.platforms import ConformingPlatform, EcsRendering, EksRendering


@pytest.fixture(scope="session")
def eks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksRendering]:
    platform = EksRendering(tmp_path_factory.mktemp("eks"))
    yield platform
    platform.close()


@pytest.fixture(scope="session")
def ecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EcsRendering]:
    platform = EcsRendering(tmp_path_factory.mktemp("ecs"), print)
    yield platform
    platform.close()


@pytest.fixture(scope="session", params=["eks", "ecs"])
def platform(request: pytest.FixtureRequest) -> ConformingPlatform:
    found: ConformingPlatform = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def passed() -> dict[str, list[str]]:
    """Names of the cases that each platform passed, in their order."""
    return {}

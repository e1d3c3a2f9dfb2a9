"""One list of cases for both targets: what passes on EKS passes on ECS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.conformance.cases import CASES
from tests.local.conformance.platforms import ConformingPlatform

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_case(
    platform: ConformingPlatform,
    case: Callable[[ConformingPlatform], None],
    passed: dict[str, list[str]],
) -> None:
    case(platform)
    passed.setdefault(type(platform).__name__, []).append(case.__name__)


def test_both_lists_of_passes_are_the_same(passed: dict[str, list[str]]) -> None:
    # None of these cases is refused by `validate` on either target.
    assert sorted(passed) == ["EcsRendering", "EksRendering"]
    assert passed["EcsRendering"] == passed["EksRendering"] == [case.__name__ for case in CASES]

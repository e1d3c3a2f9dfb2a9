"""The series of `make test-scaling`, whose numbers the real KEDA and HorizontalPodAutoscaler chose."""

from __future__ import annotations

import pytest

from tests.cluster.autoscaling.branches import BRANCHES, SECONDS, Branch, daily

#: A minute begins one minute after the scripts.
_BEGIN = 1_795_413_600.0


@pytest.mark.parametrize("branch", BRANCHES, ids=lambda branch: branch.name)
def test_the_simulator_chooses_the_numbers_of_the_real_ones(branch: Branch) -> None:
    window = (daily(_BEGIN + 60), daily(_BEGIN + 120))
    assert branch.simulated_numbers(window, _BEGIN, _BEGIN + 2 * SECONDS + 60) == branch.numbers

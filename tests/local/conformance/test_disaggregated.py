"""Cases of a file with separate prefill and decode for both targets.

A prefill worker ends, and a decode worker is killed and replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from inference_contracts.ecs_names import service_name
from tests.local.conformance.cases import CASES
from tests.local.conformance.platforms import (
    DISAGGREGATED,
    WORKERS,
    ConformingPlatform,
    EcsRendering,
    EksRendering,
)

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(2400)]

#: EFA interfaces of a worker with one GPU: a p5en host has 16 for 8 GPUs.
_INTERFACES = 2


@pytest.fixture(scope="module")
def on_eks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksRendering]:
    platform = EksRendering(tmp_path_factory.mktemp("disaggregated-eks"), file=DISAGGREGATED)
    yield platform
    platform.close()


@pytest.fixture(scope="module")
def on_ecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EcsRendering]:
    platform = EcsRendering(tmp_path_factory.mktemp("disaggregated-ecs"), print, file=DISAGGREGATED)
    yield platform
    platform.close()


@pytest.fixture(scope="module", params=["eks", "ecs"])
def disaggregated(request: pytest.FixtureRequest) -> ConformingPlatform:
    found: ConformingPlatform = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_disaggregated_case(
    disaggregated: ConformingPlatform, case: Callable[[ConformingPlatform], None]
) -> None:
    case(disaggregated)


def test_workers_read_the_copy_of_their_host_and_have_interfaces_of_their_own(on_ecs: EcsRendering) -> None:
    tasks = on_ecs.running(service_name(DISAGGREGATED.release, "prefill"))
    assert len(tasks) == WORKERS
    taken: dict[str, set[str]] = {}
    for task in tasks:
        process = on_ecs.fault("Processes", task=task["taskArn"].rpartition("/")[2])["processes"]["main"]
        files = Path("/proc", str(process), "root") / "models/Qwen/Qwen3-32B"
        assert {"config.json", "model.safetensors"} <= {each.name for each in files.iterdir()}
        interfaces = set(psutil.Process(process).environ()["FI_EFA_IFACE"].split(","))
        others = taken.setdefault(task["containerInstanceArn"], set())
        assert len(interfaces) == _INTERFACES
        assert not interfaces & others
        others |= interfaces

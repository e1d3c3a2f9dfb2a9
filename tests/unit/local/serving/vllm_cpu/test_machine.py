"""Workers of real engines are as many as fit, at least one per role."""

import pytest

from inference_local.serving.vllm_cpu.connectors import LMCACHE_GIB
from inference_local.serving.vllm_cpu.machine import (
    Machine,
    WantedWorkers,
    needed_gib,
    replicas_here,
)

_PREFILL, _DECODE = WantedWorkers(12, 1), WantedWorkers(3, 2)


def test_one_worker_per_role_at_least() -> None:
    assert replicas_here([_PREFILL, _DECODE], Machine(1, 1)) == (1, 1)


def test_more_workers_share_the_memory_in_turn() -> None:
    both = [_PREFILL, _DECODE]
    enough = needed_gib(both) + _PREFILL.gib
    assert replicas_here(both, Machine(enough, 8)) == (2, 1)
    assert replicas_here(both, Machine(enough + _DECODE.gib, 8)) == (2, 2)


@pytest.mark.parametrize(("processors", "expected"), [(1, (2, 2)), (4, (4, 3)), (64, (12, 3))])
def test_few_processors_start_few_workers_and_never_more_than_planned(
    processors: int, expected: tuple[int, int]
) -> None:
    assert replicas_here([_PREFILL, _DECODE], Machine(1000, processors)) == expected


def test_each_process_that_computes_needs_memory() -> None:
    assert _DECODE.gib > _PREFILL.gib
    assert needed_gib([_DECODE, _PREFILL]) == pytest.approx(
        needed_gib([_DECODE]) + needed_gib([_PREFILL]) - needed_gib([])
    )


def test_a_server_of_lmcache_needs_memory() -> None:
    assert needed_gib([WantedWorkers(1, 1, lmcache=True)]) - needed_gib([WantedWorkers(1, 1)]) > LMCACHE_GIB

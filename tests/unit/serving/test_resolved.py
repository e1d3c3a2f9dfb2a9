"""What is computed of workers stays with them, and only with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint


def test_sizes_are_computed_once(make_blueprint: Callable[..., Blueprint]) -> None:
    """Each check asks for them: with 40 models, they took a third of `blueprints validate`."""
    [workers] = resolve(make_blueprint(), 0, 0)
    assert worker_sizing(workers) is worker_sizing(workers)
    assert worker_memory(workers) is worker_memory(workers)
    assert workers.traffic is workers.traffic


def test_a_changed_copy_has_sizes_of_its_own(make_blueprint: Callable[..., Blueprint]) -> None:
    [workers] = resolve(make_blueprint(), 0, 0)
    before = worker_sizing(workers).max_num_seqs
    longer = make_blueprint(workload={"inputTokens": 30000})
    [other] = resolve(longer, 0, 0)
    changed = replace(workers, blueprint=longer, model=longer.spec.models[0], deployment=other.deployment)
    assert worker_sizing(changed) == worker_sizing(other)
    assert worker_sizing(changed).max_num_seqs < before

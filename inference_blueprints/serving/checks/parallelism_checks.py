"""Checks that a worker can be split over accelerators and nodes as the blueprint requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import ROLES
from inference_contracts.errors import Finding

# Longest sum of the names of a PodCliqueSet, its scaling group and its clique (operator/internal/webhook of
# ai-dynamo/grove).
_GROVE_NAME = 45


def parallelism_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check the stages, ranks, experts and nodes of a worker.

    Yields: Errors, each at the invalid key; and a warning if a layer is shared across nodes.
    """
    wrong = [(key, message) for key, check in _CHECKS if (message := check(resolved))]
    for key, message in wrong:
        yield Finding((*resolved.path, key), message)
    kept = _host_cache_is_of_one_rank(resolved)
    if kept:
        yield Finding((*resolved.model_path, "kvCache"), kept)
    warning = _layers_across_nodes(resolved)
    if warning and not wrong:
        yield Finding((*resolved.path, "tensorParallelSize"), warning, "warning")


def _stages_send_kv(resolved: ResolvedWorkers) -> str | None:
    if resolved.pipeline_parallel_size == 1 or resolved.role in (
        "aggregated",
        *engine_of(resolved).staged_transfer_roles,
    ):
        return None
    return (
        f"got {resolved.pipeline_parallel_size}, but {resolved.model.engine.chosen} transfers the KV cache "
        f"of {resolved.role} workers only if they have one stage; raise tensorParallelSize instead, or use "
        "'aggregated'"
    )


def _ranks_share_experts(resolved: ResolvedWorkers) -> str | None:
    if resolved.data_parallel_size == 1 or resolved.shape.experts:
        return None
    return (
        f"got {resolved.data_parallel_size}, but {resolved.shape.name} has no experts that the ranks of a "
        "worker could share; raise replicas instead"
    )


def _ranks_are_told_apart(resolved: ResolvedWorkers) -> str | None:
    stack = resolved.model.stack.llm_d
    if resolved.data_parallel_size == 1 or stack is None or stack.prefix_scorer == "approximate":
        return None
    return (
        f"got {resolved.data_parallel_size}, but llm-d's precise scorer reads only the events of a worker's "
        "first rank; set prefixScorer: approximate, or stack: {dynamo: {}}, whose router supports ranks"
    )


def _ranks_take_one_device(resolved: ResolvedWorkers) -> str | None:
    of_one = resolved.data_parallel_size == 1 or resolved.tensor_parallel_size == 1
    if of_one or not engine_of(resolved).ranks_of_one_device:
        return None
    return (
        f"got {resolved.data_parallel_size} with tensorParallelSize {resolved.tensor_parallel_size}, but a "
        f"rank of {resolved.model.engine.chosen} has only one device; set tensorParallelSize: 1"
    )


def _ranks_stay_on_nodes(resolved: ResolvedWorkers) -> str | None:
    whole = resolved.accelerators_per_node % resolved.rank_accelerators == 0
    if resolved.nodes == 1 or resolved.data_parallel_size == 1 or whole:
        return None
    return (
        f"got {resolved.data_parallel_size} ranks of {resolved.rank_accelerators} accelerators, but a node "
        f"has {resolved.accelerators_per_node}, and a rank must fit on one; change tensorParallelSize or "
        "pipelineParallelSize"
    )


def _experts_divide(resolved: ResolvedWorkers) -> str | None:
    if not resolved.workers.expert_parallel:
        return None
    experts, devices = resolved.shape.experts, resolved.expert_accelerators
    if not experts:
        return f"got true, but {resolved.shape.name} has no experts; leave it out"
    if experts % devices == 0:
        return None
    return (
        f"got true, but the {experts} experts of {resolved.shape.name} cannot be divided evenly among "
        f"{devices} accelerators (tensorParallelSize * dataParallelSize)"
    )


def _engine_spans_nodes(resolved: ResolvedWorkers) -> str | None:
    if resolved.nodes == 1 or engine_of(resolved).spans_nodes:
        return None
    spanning = " or ".join(name for name, each in ENGINES.items() if each.spans_nodes)
    other = f", or the engine {spanning}" if spanning else ""
    return (
        f"a worker with {resolved.workers.accelerators} accelerators needs {resolved.nodes} nodes, but "
        f"{resolved.model.engine.chosen} workers must fit on one; use fewer accelerators{other}"
    )


def _stack_spans_nodes(resolved: ResolvedWorkers) -> str | None:
    if resolved.nodes == 1 or resolved.model.stack.direct is None or not engine_of(resolved).spans_nodes:
        return None  # if the engine cannot either, it is reported once
    return (
        f"a worker with {resolved.workers.accelerators} accelerators needs {resolved.nodes} nodes, but "
        "workers of 'direct' must fit on one; use fewer accelerators, or stack: {dynamo: {}}"
    )


def _host_cache_is_of_one_rank(resolved: ResolvedWorkers) -> str | None:
    of_one = resolved.workers.accelerators == resolved.workers.tensor_parallel_size and resolved.nodes == 1
    if not resolved.model.kv_cache or resolved.role == "decode" or of_one:
        return None
    return (
        f"is not supported for workers with several stages, ranks or nodes, as in '{resolved.label}'; "
        "leave it out, or use only tensorParallelSize"
    )


def _group_has_a_short_name(resolved: ResolvedWorkers) -> str | None:
    """Whether Grove's pod names stay within its limit.

    They consist of the names of graph, group and part of the group.
    """
    if resolved.nodes == 1 or resolved.model.stack.dynamo is None:
        return None
    maximum = _GROVE_NAME - len(f"{ROLES[resolved.role]}{ROLES[resolved.role]}-ldr")
    if len(resolved.release) <= maximum:
        return None
    return (
        f"the release name '{resolved.release}' is too long: at most {maximum} characters are allowed if "
        "workers span nodes; shorten the name of the deployment or of the model"
    )


def _layers_across_nodes(resolved: ResolvedWorkers) -> str | None:
    if resolved.workers.tensor_parallel_size <= resolved.accelerators_per_node:
        return None
    return (
        f"got {resolved.workers.tensor_parallel_size}, so each layer is split over {resolved.nodes} nodes, "
        "which wait for the network twice per layer; with "
        f"tensorParallelSize {resolved.accelerators_per_node} and "
        f"pipelineParallelSize {resolved.nodes} they wait once per stage"
    )


_Check = Callable[[ResolvedWorkers], str | None]
_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("pipelineParallelSize", _stages_send_kv),
    ("dataParallelSize", _ranks_share_experts),
    ("dataParallelSize", _ranks_are_told_apart),
    ("dataParallelSize", _ranks_take_one_device),
    ("dataParallelSize", _ranks_stay_on_nodes),
    ("expertParallel", _experts_divide),
    ("tensorParallelSize", _engine_spans_nodes),
    ("tensorParallelSize", _stack_spans_nodes),
    ("tensorParallelSize", _group_has_a_short_name),
)

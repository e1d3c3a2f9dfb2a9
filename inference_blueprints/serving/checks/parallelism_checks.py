"""Checks that a worker can be split over accelerators and nodes, and that prefill and decode workers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import engine_of, given_stage_sizes
from inference_blueprints.serving.estimates.request_estimates import (
    prefill_seconds,
)
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.performance import (
    fewest_replicas,
    role_capacity,
    serves_its_peak,
    transfer_seconds,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import ROLES
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding
from inference_contracts.number_text import number

# Checks whether accelerators can share a model, and whether its longest request holds its images.


def shape_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the model splits evenly.

    If there are fewer KV heads than devices, they are replicated evenly.

    Yields: At most one error.
    """
    size, shape = resolved.tensor_parallel_size, resolved.device_shape
    if _splits(resolved, size):
        return
    cores, devices = resolved.accelerator.cores, resolved.workers.tensor_parallel_size
    maximum = shape.attention_heads // cores
    sizes = [str(each) for each in range(1, maximum + 1) if _splits(resolved, each * cores)]
    allowed = f"allowed are {', '.join(sizes)}" if sizes else "lower dataParallelSize"
    whole = "with expertParallel each device has whole experts; " if shape.experts else ""
    hint = whole if _heads_divide(shape, size) else ""
    split = f"{devices} devices with {size} NeuronCores" if cores > 1 else str(size)
    message = f"got {split}, but {shape.name} has {_parts(shape, size)}; {hint}{allowed}"
    yield Finding((*resolved.path, "tensorParallelSize"), message)


def _splits(resolved: ResolvedWorkers, size: int) -> bool:
    """Whether heads divide evenly, and slices of experts or layers consist of whole blocks."""
    slices = 1 if resolved.workers.expert_parallel else size * resolved.data_parallel_size
    return _heads_divide(resolved.shape, size) and _blocks_stay_whole(resolved.device_shape, slices)


def _heads_divide(shape: catalog.Model, size: int) -> bool:
    whole = shape.attention == "mla" or shape.kv_heads % size == 0 or size % shape.kv_heads == 0
    return whole and shape.attention_heads % size == 0


def _blocks_stay_whole(shape: catalog.Model, size: int) -> bool:
    """Whether a device holds whole blocks of weights that share a scale.

    `validate_fp8_block_shape` in ``layers/quantization/utils/fp8_utils.py`` of vLLM, and for groups
    `verify_marlin_supports_shape` in ``marlin_utils.py`` beside it.
    """
    return not shape.weight_block or shape.feed_forward_size % (size * shape.weight_block) == 0


def _parts(shape: catalog.Model, size: int) -> str:
    """Name the parts that do not divide evenly."""
    if _heads_divide(shape, size):
        layer = "experts" if shape.experts else "layers"
        return (
            f"{shape.weight_type.upper()} {layer} of width {shape.feed_forward_size}, and each device must "
            f"hold whole blocks of {shape.weight_block}"
        )
    heads = f"{shape.attention_heads} attention heads"
    if shape.attention == "gqa":
        heads += f" and {shape.kv_heads} KV heads"
    return f"{heads}, which must divide evenly"


def media_findings(resolved: ResolvedWorkers, sizing: Sizing) -> Iterator[Finding]:
    """Check that a request with the most allowed images leaves room for its answer.

    Yields: At most one error.
    """
    media, answer = resolved.model.media, resolved.traffic.means.output_tokens
    if media is None:
        return
    most = resolved.traffic.most_prompt_images or media.images_per_request
    images = most * media.tokens_per_image
    if images + answer <= sizing.max_model_len:
        return
    message = (
        f"got {most} images of {media.tokens_per_image} tokens, {images} in total; with "
        f"an answer of {answer}, this exceeds the {sizing.max_model_len} tokens that a worker of "
        f"'{resolved.label}' accepts; lower one of them, or raise {engine_of(resolved).argument_names.length}"
    )
    yield Finding((*resolved.model_path, "media", "imagesPerRequest"), message)


# Checks whether prefill and decode workers, their network and the workload fit each other.

#: A prompt with fewer unshared tokens takes no longer than a few decode steps, so there is nothing to gain.
_SHORT_PROMPT_TOKENS = 1024
#: A transfer that takes this share of the time to the first token causes a warning.
_NOTABLE_SHARE = 0.2


def disaggregation_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check a disaggregated deployment. An aggregated one has no findings.

    roles: The deployment's workers. Each fits its accelerators.
    Yields: Errors and warnings.
    """
    if len(roles) == 1:
        return
    prefill, decode = roles
    sizes = list(_size_findings(prefill, decode))
    yield from sizes
    if not sizes:
        yield from _transfer_findings(prefill, decode)
        yield from _balance_findings(prefill, decode)
    yield from _worth_findings(prefill)


def _size_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Check that each decode device gets its KV heads from one prefill device, if the engine requires it.

    Latent attention is stored whole on every device, so it always passes.
    """
    one, other = prefill.tensor_parallel_size, decode.tensor_parallel_size
    if engine_of(prefill).gathers_heads or prefill.shape.attention == "mla" or other % one == 0:
        return
    message = (
        f"got {other}, must be a multiple of prefill's {one}: each decode device reads its KV heads from one "
        f"prefill device; raise it to {-(-other // one) * one} or lower prefill's"
    )
    yield Finding((*decode.path, "tensorParallelSize"), message)


def _transfer_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the KV cache of a mean prompt moves in a small part of the time to the first token."""
    seconds = transfer_seconds(prefill, decode)
    limit = prefill_seconds(prefill.model.objectives)
    if seconds < _NOTABLE_SHARE * limit:
        return
    path = (*prefill.path, "pool")
    over = "EFA" if prefill.pool.efa and decode.pool.efa else "TCP, without EFA"
    message = (
        f"the transfer of the KV cache of {prefill.traffic.means.input_tokens} tokens takes "
        f"{seconds * 1000:.0f} ms over the workers' share of the network ({over}), and the time to the first "
        f"token may be {limit * 1000:.0f} ms; set efa on pools that support it, or use 'aggregated'"
    )
    yield Finding(path, message, "error" if seconds >= limit else "warning")


def _balance_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Warn if the capacity of one role within the objectives is below the peak (simulated)."""
    first, second = role_capacity(prefill), role_capacity(decode)
    if first is None or second is None:
        return
    rates = {"prefill": first.objective_requests_per_second, "decode": second.objective_requests_per_second}
    slower = prefill if rates["prefill"] <= rates["decode"] else decode
    faster = "decode" if slower is prefill else "prefill"
    peak = prefill.traffic.requests_per_second
    if rates[slower.role] >= peak or (first if slower is prefill else second).is_objective_at_least:
        return
    needed = _balanced(prefill, decode)
    remedy = "lower the peak"
    if needed:
        remedy = f"set replicas: {needed[slower.role]}"
        other = decode if slower is prefill else prefill
        if needed[other.role] > other.workers.maximum:
            remedy += f", and {needed[other.role]} for {other.role}"
    message = (
        f"{slower.role} is the bottleneck (simulated): at the peak of {number(peak)} requests per second, "
        f"its workers serve {number(rates[slower.role])} and those of {faster} {number(rates[faster])}; "
        f"{remedy}"
    )
    yield Finding((*slower.path, "replicas"), message, "warning")


def _balanced(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> dict[str, int] | None:
    """Return the fewest workers of each role that serve the peak; None if no number does.

    More workers of one role draw requests from other deployments, so the other role may need more too.
    """
    while True:
        before = prefill.workers.maximum, decode.workers.maximum
        first = fewest_replicas(prefill, lambda more: serves_its_peak(more) is not False)
        if first is None:
            return None
        prefill = prefill.with_replicas(first)
        decode = decode.beside(prefill)
        second = fewest_replicas(decode, lambda more: serves_its_peak(more) is not False)
        if second is None:
            return None
        decode = decode.with_replicas(second)
        prefill = prefill.beside(decode)
        if before == (first, second):
            return {"prefill": first, "decode": second}


def _worth_findings(prefill: ResolvedWorkers) -> Iterator[Finding]:
    """Warn if separate prefill workers are not worth their cost."""
    workload = prefill.traffic.means
    own = round(workload.input_tokens * (1.0 - workload.shared_prefix_ratio))
    path = prefill.path[:-1]
    if own < _SHORT_PROMPT_TOKENS:
        message = (
            f"prompts have {own} unshared tokens; below {_SHORT_PROMPT_TOKENS} the transfer and the second "
            "queue usually cost more than they save; compare with 'aggregated'"
        )
        yield Finding(path, message, "warning")
    if not prefill.accelerator.gpudirect_rdma:
        message = (
            f"the network adapter cannot read the memory of {prefill.accelerator.name}, so the KV cache is "
            "copied through host memory; compare with 'aggregated' first"
        )
        yield Finding(path, message, "warning")


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
    yield from _layers_of_stages(resolved)
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


def _layers_of_stages(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check the variable that divides the layers. The engine would not start with a wrong one."""
    engine, count = engine_of(resolved), resolved.pipeline_parallel_size
    environment = resolved.model.engine.section.env
    if engine.partition_variable not in environment or given_stage_sizes(resolved):
        return
    path = (*resolved.model_path, "engine", resolved.model.engine.chosen, "env", engine.partition_variable)
    yield Finding(
        path,
        f"got {quote(environment[engine.partition_variable])}, must be the layers of each stage of "
        f"{quote(resolved.label)}, separated by commas: {count} whole numbers that add up to "
        f"{resolved.shape.layers}; correct it, or remove it",
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


def _group_is_never_gone(resolved: ResolvedWorkers) -> str | None:
    """Whether workers that Grove creates always have one.

    Its webhook refuses groups and parts of none: "replicas must be greater than 0"
    (operator/internal/webhook/admission/pcs/validation/podcliqueset.go of ai-dynamo/grove).
    """
    if resolved.nodes == 1 or resolved.model.stack.dynamo is None or resolved.workers.minimum:
        return None
    return (
        f"got a smallest number of 0, but Grove creates workers on {resolved.nodes} nodes, and refuses to "
        "have none of them; raise 'replicas.min', use 'stack: {llmD: {}}', or keep a worker on one node"
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
    ("replicas", _group_is_never_gone),
)

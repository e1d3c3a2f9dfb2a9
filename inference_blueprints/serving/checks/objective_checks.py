"""Warns of peaks and objectives that cannot be kept, and of lent capacity that returns too late."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.serving.engines.llama_cpp import bound_tokens_per_second
from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.estimates.request_estimates import answer_time
from inference_blueprints.serving.estimates.worker_start import WorkerStart, worker_start
from inference_blueprints.serving.performance import (
    NO_PROFILE,
    bound_ms,
    chunk_ms,
    fewest_replicas,
    least_prompt_ms,
    min_answer_ms,
    most_requests_per_second,
    role_capacity,
    served_requests_per_second,
    serves_its_peak,
    speeds,
    time_to_first_token_ms,
    why_unknown,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import engine_image
from inference_blueprints.serving.traffic import WayIn, model_traffic, own_part, queue_path
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.sections.streaming.rules import advised_deadline_millis
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, WHOLE_REQUEST, judge, tightest_ms
from inference_contracts.errors import Finding
from inference_contracts.number_text import number

# Checks that workers serve the stated peak.


def peak_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Warn if the workers of an aggregated deployment serve less than its share of the peak (simulated).

    Nothing is said without a latency profile. Beyond its end, they are warned of if even prompts as long as
    its end take too long. Separate prefill and decode workers have a check of their own.

    roles: Workers of every role of a deployment.
    """
    resolved, workload = roles[0], roles[0].traffic.means
    tokens = workload.input_tokens + workload.output_tokens
    if len(roles) > 1 or workload.images or not 0 < tokens <= resolved.shape.context_length:
        return
    capacity = None if serves_its_peak(resolved) else role_capacity(resolved)
    if capacity is not None and served_requests_per_second([capacity]) is not None:
        served, beside = number(capacity.full_requests_per_second), ""
        enough = fewest_replicas(resolved, lambda more: serves_its_peak(more) is not False)
        advice = f"use {enough}, or " if enough else ""
    elif _are_surely_too_few(resolved):
        served, beside = (
            f"at most {number(most_requests_per_second(resolved) or 0.0)}",
            ", with prompts alone",
        )
        enough = fewest_replicas(resolved, lambda more: not _are_surely_too_few(more))
        advice = f"use at least {enough}, or " if enough else ""
    else:
        return
    peak = resolved.traffic.requests_per_second
    lower = "lower peakRequestsPerSecond"
    if not resolved.traffic.is_waited_for:
        lower = "lower requestsPerDay of the queue, or raise its deadlineHours"
    message = (
        f"got {resolved.workers.maximum}, which serve {served} of the {number(peak)} requests per second at "
        f"the peak{beside} (simulated); {advice}{lower}"
    )
    yield Finding((*resolved.path, "replicas"), message, "warning")


def _are_surely_too_few(resolved: ResolvedWorkers) -> bool:
    """Return whether workers cannot serve the peak, which may be known although their speed is not."""
    most = most_requests_per_second(resolved)
    return most is not None and most < resolved.traffic.requests_per_second


def coverage_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Warn if the latency profile of a deployment ends before its mean request: nothing is known beyond.

    Nothing is said without a latency profile: the plan says that, as for each unknown figure.

    roles: Workers of every role of a deployment.
    """
    model, means = roles[0].model, roles[0].traffic.means
    tokens = means.input_tokens + means.output_tokens
    if model.task != "generate" or model.makes_images or tokens > roles[0].shape.context_length:
        return
    reason = why_unknown(roles)
    if reason and reason != NO_PROFILE:
        unknown = "whether these workers serve the peak and keep objectives and deadlines"
        if len(roles) == 1 and _are_surely_too_few(roles[0]):
            unknown = "how much these workers serve"
        message = (
            f"{reason}; so nobody knows {unknown}, nor what their tokens cost: measure it with "
            "`blueprints benchmark`"
        )
        yield Finding(roles[0].path, message, "warning")


# Checks that lent capacity can be back as soon as the blueprint says.


def longest_start(roles: Iterable[ResolvedWorkers]) -> WorkerStart:
    """Return the start of a worker on a new node whose measured and computed parts take longest.

    Published times are of other hardware and do not count. Neither do images of unknown size.

    roles: Workers of roles of a deployment.
    """
    starts = (
        worker_start(role, engine_image(role), kind, together=1) for role in roles for kind in role.types
    )
    return max(starts, key=lambda start: start.minimum.seconds)


def shift_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that the shift knows what a deployment's elastic workers carry, and how long one takes to start.

    `reclaimSeconds` is not below their minimum start. On a pool that models share, they start on a node that
    runs, and without it have a time of their own.

    roles: Workers of every role of a deployment.
    """
    shift = roles[0].blueprint.spec.capacity_shift
    moved = [role for role in roles if role.workers.scaled_by is not None]
    if shift is None or not moved:
        return
    if not all(role.workers.is_lent for role in moved):
        yield from _unknown_capacity(roles[-1])
    minimum, node = longest_start(moved).minimum, "a new node"
    if moved[0].pool.shared is not None:
        if "reclaim_seconds" not in shift.model_fields_set:
            return
        minimum, node = minimum.on_a_running_node, "a running node"
    if shift.reclaim_seconds < minimum.seconds:
        message = (
            f"got {shift.reclaim_seconds}, but a worker of {roles[0].release} on {node} needs at least "
            f"{math.ceil(minimum.seconds)} s ({minimum.clause}); raise it to "
            f"{math.ceil(minimum.seconds)} or more, "
            "so that the forecast looks as far ahead"
        )
        yield Finding(("spec", "capacityShift", "reclaimSeconds"), message)


def _unknown_capacity(decoding: ResolvedWorkers) -> Iterator[Finding]:
    """Refuse to lend capacity that nobody knows: the shift would lend nearly all of it.

    Without a latency profile, a worker seems to carry as many requests as its KV cache holds. Files without
    lengths of queues and jobs, longest prompts and shared pools were accepted before, and are warned.

    decoding: Workers that write the answers. In their requests, the shift counts the demand of all roles.
    """
    if decoding.workers.requests_at_once is not None or speeds(decoding) is not None:
        return
    spec = decoding.blueprint.spec
    shares = any(pool.shared is not None for _, pool in usable(spec.pools))
    is_new = shares or any(
        way.kind != "realTime" or way.states_longest
        for _, model in usable(spec.models)
        for way in model_traffic(spec, model).ways
    )
    why = why_unknown([decoding])
    if why == NO_PROFILE:
        why += (
            f" of {decoding.device_shape.name} with {decoding.model.engine.chosen} on "
            f"{decoding.workers.accelerators} x {decoding.accelerator.name}"
        )
    message = (
        f"{why}, so the capacity shift does not know how many requests a worker of "
        f"{decoding.release} carries within its objectives, and would lend too much; add 'requestsAtOnce' "
        "(1 or more), as you measured it" + ("" if shares else ", or remove 'capacityShift'")
    )
    yield Finding(decoding.path, message, "error" if is_new else "warning")


def objective_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that one request alone meets the objectives of its deployment, and the deadline of its callers.

    The profile's speed without other requests is a lower bound: with more requests, each takes longer.
    Without a profile, only the memory of processors sets a bound. Batch alone has no objectives.

    roles: Workers of every role of a deployment.
    """
    if not roles[0].traffic.is_waited_for:
        return
    workers, path = tuple(roles), roles[0].model_path
    parts = {
        FIRST_TOKEN: "the prefill of a mean prompt",
        EACH_TOKEN: "a token",
        WHOLE_REQUEST: "a mean answer",
    }
    tokens = bound_tokens_per_second(roles[-1])
    for judged in judge(roles[0].model.stated_objectives, lambda kind, _: bound_ms(workers, kind)):
        objective, minimum = judged.objective, judged.value_ms
        place = (*path, *(() if objective.path[0] == "realTime" else ("objectives",)), *objective.path)
        if objective.kind == EACH_TOKEN and roles[0].traffic.means.output_tokens == 1:
            message = (
                f"got {objective.limit_ms:,g}, but answers have one token, after which none comes: every "
                "request meets it; remove it, or limit the first token or the whole request"
            )
            yield Finding(place, message, "warning")
            continue
        if judged.met is False:
            message = (
                f"got {objective.limit_ms:,g}, but {parts[objective.kind]} of deployment "
                f"'{roles[0].deployment.name}' takes {minimum:,.1f} ms even "
                "with no other request, according to the model's latency profile; raise it, or use more or "
                "faster accelerators per worker"
            )
            yield Finding(place, message, "warning")
        if tokens is not None and objective.kind == EACH_TOKEN and 1000 / tokens > objective.limit_ms:
            yield Finding(
                place,
                f"got {objective.limit_ms:g}, but the memory of {roles[-1].types[0].name} takes at least "
                f"{1000 / tokens:.1f} ms to read the weights for a token; raise it, or use larger instance "
                "types or smaller weights",
                "warning",
            )


# Checks that ways in do not disturb each other, and that a streaming job can wait for its answers.


def mix_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Refuse a queue whose prompts hold up the requests of others for longer than their objectives.

    roles: Workers of every role of a deployment.
    """
    resolved = roles[0]
    waiting = [way for way in resolved.traffic.ways if way.kind != "queue"]
    if not waiting or resolved.model.makes_images:
        return
    for queue in (way for way in resolved.traffic.ways if way.kind == "queue"):
        for held_up in _held_up(roles, queue, waiting):
            message = f"{held_up}; name a deployment of its own in 'deployments'"
            yield Finding((*queue_path(resolved.blueprint.spec, queue.name), "workload"), message)
            break


def _held_up(roles: Sequence[ResolvedWorkers], queue: WayIn, waiting: Sequence[WayIn]) -> Iterator[str]:
    """Yield how a queue holds up the requests for which somebody waits, as clauses.

    An engine computes a prompt in chunks. Each running answer waits for a chunk before its next token;
    separate decode workers compute none. A new prompt waits until a longer one before it is computed whole,
    because that one takes all tokens of each step: vLLM schedules running requests first, in the order of
    arrival (``v1/core/sched/scheduler.py``). While a job runs there is nearly always one, so the mean prompt
    counts.
    """
    resolved, own = roles[0], max(way.longest_input for way in waiting)
    if queue.longest_input <= own:
        return
    stated, step = resolved.model.stated_objectives, worker_sizing(resolved).max_num_batched_tokens
    on = f"{waiting[0].label} on deployment '{resolved.deployment.name}'"
    token, chunk = tightest_ms(stated, EACH_TOKEN), min(step, queue.longest_input)
    chunk_takes = chunk_ms(resolved, chunk) if len(roles) == 1 and chunk > min(step, own) else None
    if token is not None and chunk_takes is not None and chunk_takes > token:
        yield (
            f"its prompts of up to {queue.longest_input:,} tokens are computed in chunks of {chunk:,}, which "
            f"take {chunk_takes:,.0f} ms (simulated), and answers of {on} wait so long for a token, whose "
            f"objective is {token:g} ms"
        )
    prompt = least_prompt_ms(resolved, queue.means)
    if prompt is None:
        return
    takes = (
        f"a mean prompt of its {queue.means.input_tokens:,} tokens takes at least {prompt:,.0f} ms "
        f"(simulated), and requests of {on}"
    )
    first = tightest_ms(stated, FIRST_TOKEN)
    if first is not None and prompt > first:
        yield f"{takes} wait so long for their first token, whose objective is {first:g} ms"
    whole, answer = tightest_ms(stated, WHOLE_REQUEST), min_answer_ms(tuple(roles), waiting[0].means)
    if whole is not None and answer is not None and answer <= whole < answer + prompt:
        yield (
            f"{takes}, which take {answer:,.0f} ms alone, wait so long, although their objective is "
            f"{whole:g} ms"
        )


def stream_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Refuse a streaming job that states its requests, and whose deadline ends calls before their answer.

    roles: Workers of every role of a deployment.
    """
    resolved = roles[0]
    for index, job in usable(resolved.blueprint.spec.streaming):
        way = own_part(job, resolved.traffic) if job.model == resolved.model.name else None
        if way is None:
            continue
        answer = min_answer_ms(tuple(roles), way.means)
        capacity = role_capacity(roles[-1])
        if answer is None or capacity is None:
            continue
        first = time_to_first_token_ms(tuple(roles), way.means) or 0.0
        at_peak = answer_time(way.means.output_tokens, first, capacity.time_per_output_token_ms)
        predicted = max(answer, at_peak)
        # With a shorter answer, the rule on the expected time of a call has advised enough.
        if predicted > (advised_deadline_millis(job) or job.deadline_millis):
            message = (
                f"got {job.deadline_millis:,}, but an answer of {way.means.output_tokens} tokens on "
                f"deployment '{resolved.deployment.name}' takes {predicted:,.0f} ms at the peak (simulated), "
                f"so calls end before it; raise it to more than {math.ceil(predicted):,}, or add replicas"
            )
            yield Finding(("spec", "streaming", index, "deadlineMillis"), message)

"""Checks that KV cache is transferred over RDMA: NIXL falls back to slow TCP without an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify.serving_access import (
    Instance,
    Instances,
    ServedPlatform,
    Transferred,
    deployments_of,
    sample_sum,
)
from inference_blueprints.operate.verify.verified_platform import KubernetesObject, RunningPlatform
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.types import DeploymentPlan, KvTransfer, Process

Verdict = Literal["as planned", "another", "not told"]

#: Log lines that name the back end, one per agent: NIXL's Python interface, which vLLM and SGLang use
#: (``src/api/python/_api.py`` of ai-dynamo/nixl 1.4 and 1.5), SGLang 0.5.21 itself
#: (``srt/disaggregation/nixl/conn.py``), and TensorRT-LLM, which uses NIXL's C++ interface
#: (``cache_transmission/nixl_utils/transferAgent.cpp``).
_NAMED = (
    re.compile(r"Backend (\w+) was instantiated"),
    re.compile(r"NIXL KVManager initialized with backend: (\w+)"),
    re.compile(r"using NIXL backend: (\w+)"),
)

#: What another back end than the planned one means, and what to check.
_FALL_BACKS: Mapping[KvTransfer, tuple[str, str]] = MappingProxyType(
    {
        "libfabric": (
            " but falls back to TCP, which is about a hundred times slower",
            "check that the pool's nodes can allocate EFA interfaces and that the image has libfabric",
        ),
        "ucx": (", so prefill and decode workers may not reach each other", "check --kv-transfer-config"),
    }
)


def transfer_back_ends(log: str) -> set[str]:
    """Return the NIXL back ends that a worker's log names, such as ``LIBFABRIC``.

    log: The worker's log from its start.
    """
    return {name for pattern in _NAMED for name in pattern.findall(log)}


def judge(log: str, expected: str) -> Verdict:
    """Return whether a worker transfers KV cache only with the planned back end.

    expected: Back end such as ``LIBFABRIC``, which is RDMA over EFA; ``UCX`` on AWS is TCP.
    """
    found = transfer_back_ends(log)
    if not found:
        return "not told"
    return "as planned" if found == {expected} else "another"


def read_transfers(served: ServedPlatform) -> dict[str, Transferred]:
    """Return the KV transfers of each deployment so far, by release.

    Deployments without readable metrics are left out.
    """
    found = {}
    for deployment in deployments_of(served):
        if deployment.kv_transfer is None:
            continue
        try:
            count = transfers_of(served, deployment, served.access.instances(deployment))
        except KubectlFailed:
            continue
        if count is not None:
            found[deployment.release] = count
    return found


def kv_transfer(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check the workers' logs and transfer metrics of disaggregated deployments.

    served: The platform, after requests to its models, which cause the transfers.
    """
    for deployment in deployments_of(served):
        if deployment.kv_transfer is None:
            continue
        found = served.access.instances(deployment)
        for process in deployment.workers:
            ready = [each for each in found[process.name] if each.is_ready]
            yield from _back_end(served, deployment, process, ready)
        yield from _moved(served, deployment, found)


def _back_end(
    served: ServedPlatform, deployment: DeploymentPlan, process: Process, instances: Sequence[Instance]
) -> Iterator[CheckResult]:
    """Check the log of every ready worker of a role."""
    expected = (deployment.kv_transfer or "").upper()
    name = f"{deployment.release}/{process.name}"
    verdicts: dict[Verdict, list[Instance]] = {"as planned": [], "another": [], "not told": []}
    for instance in instances:
        verdicts[judge(served.access.log(deployment, instance), expected)].append(instance)
    if verdicts["another"]:
        consequence, remedy = _FALL_BACKS[deployment.kv_transfer or "ucx"]
        names = _names(verdicts["another"])
        message = f"{name}: does not use {expected}{consequence}: {names}; {remedy}, then restart the workers"
        command = served.access.log_command(deployment, verdicts["another"][0], "nixl", "libfabric")
        yield CheckResult("KV transfer", "error", message, command)
    if verdicts["not told"]:
        message = f"{name}: the log of {_names(verdicts['not told'])} no longer has its first lines"
        yield CheckResult("KV transfer", "unknown", f"{message}; restart a worker to check it")
    if verdicts["as planned"]:
        message = f"{name}: {len(verdicts['as planned'])} workers use {expected}"
        yield CheckResult("KV transfer", "ok", message)


def _names(instances: Sequence[Instance]) -> str:
    return ", ".join(each.name for each in instances)


def _moved(served: ServedPlatform, deployment: DeploymentPlan, instances: Instances) -> Iterator[CheckResult]:
    """Check the transfers since the first request of this check."""
    name = deployment.release
    now = transfers_of(served, deployment, instances)
    command = served.access.log_command(deployment, None, "nixl")
    if now is None:
        yield CheckResult("KV transfer", "unknown", f"{name}: its workers have no transfer metrics")
        return
    before = served.transferred.get(name, Transferred(0.0, 0.0))
    moved, failed = now.moved_bytes - before.moved_bytes, now.failures - before.failures
    if failed > 0:
        message = (
            f"{name}: {failed:.0f} transfers failed during the check, {moved:,.0f} bytes were transferred"
        )
        yield CheckResult("KV transfer", "error", message, command)
    elif moved <= 0:
        message = (
            f"{name}: no KV cache was transferred during the check; decode workers compute prompts "
            "themselves, or the prompts are too short"
        )
        yield CheckResult("KV transfer", "error", message, command)
    elif now.failures:
        message = f"{name}: {moved:,.0f} bytes were transferred during the check"
        yield CheckResult("KV transfer", "warning", f"{message}; {now.failures:.0f} transfers failed before")
    else:
        message = f"{name}: {moved:,.0f} bytes were transferred during the check, and no transfer failed"
        yield CheckResult("KV transfer", "ok", message)


def transfers_of(
    served: ServedPlatform, deployment: DeploymentPlan, instances: Instances
) -> Transferred | None:
    """Add up the transfer metrics of a deployment's workers; None if none has them."""
    moved: list[float] = []
    failures = seconds = transfers = 0.0
    for process in deployment.workers:
        if process.engine is None:
            continue
        counters = ENGINES[process.engine.engine].transfer_counters
        for instance in instances[process.name]:
            page = served.access.metrics(deployment, instance)
            found = [sample_sum(page, name) for name in counters.moved]
            moved += [value for value in found if value is not None]
            failures += sum(sample_sum(page, name) or 0.0 for name in counters.failed)
            seconds += sample_sum(page, counters.seconds or "-") or 0.0
            transfers += sample_sum(page, counters.transfers or "-") or 0.0
    return Transferred(sum(moved), failures, seconds, transfers) if moved else None


# Checks that EFA works for KV cache: its memory is registered, and it is faster than a TCP connection.

#: NIXL's error if libfabric refuses memory (``libfabric_rail.cpp`` of ai-dynamo/nixl), and libfabric's own
#: warning (``prov/efa/src/efa_mr.c``); https://github.com/ai-dynamo/nixl/issues/1609 has both.
_REFUSED = re.compile(r"fi_mr_reg failed on rail \d+: [^(\n]+|Unable to register MR[^\n]*")
#: Highest bandwidth of one TCP connection between instances that are not in one cluster placement group
#: (Amazon EC2 User Guide, "Amazon EC2 instance network bandwidth", single-flow traffic).
_TCP_BITS_PER_SECOND = 5e9
#: At this size, one TCP connection takes 27 ms. Preparing a transfer takes 7 to 12 ms
#: (https://github.com/vllm-project/vllm/issues/50913), so smaller transfers say nothing of the network.
_LARGE_BYTES = 16 * 2**20
_BITS, _GIGA, _BITS_PER_MBPS = 8, 1e9, 1e6


def memory_registration(running: RunningPlatform) -> Iterator[CheckResult]:
    """Look in the workers' logs for memory that EFA did not accept. Then workers end, or transfers fail."""
    for deployment in _with_efa(running):
        found = running.access.pods(deployment)
        refusals = {}
        for process in deployment.workers:
            for pod in found[process.name]:
                refused = _REFUSED.search(_logs(running, deployment, pod))
                if refused:
                    refusals[pod["metadata"]["name"]] = refused.group().strip()
        if not refusals:
            message = f"{deployment.release}: no log of a worker has an error of memory registration"
            yield CheckResult("EFA memory", "ok", message)
            continue
        words = "; ".join(f"{name}: {refusal}" for name, refusal in refusals.items())
        first, namespace = next(iter(refusals)), running.platform.namespace(deployment.release)
        message = (
            f"{deployment.release}: EFA refused memory of {len(refusals)} workers: {words}; check that their "
            "containers may lock memory (IPC_LOCK, unlimited memlock on the node), and the driver of the node"
        )
        command = (
            f"kubectl logs --namespace {namespace} {first} --container main | grep -i -e fi_mr -e efa_mr"
        )
        yield CheckResult("EFA memory", "error", message, command)


def _logs(running: RunningPlatform, deployment: DeploymentPlan, pod: KubernetesObject) -> str:
    """Return the log of a worker, and of its container before the last restart."""
    namespace, name = running.platform.namespace(deployment.release), pod["metadata"]["name"]
    options = ("logs", "--namespace", namespace, name, "--container", "main")
    statuses = pod.get("status", {}).get("containerStatuses", [])
    restarted = any(each["name"] == "main" and each.get("restartCount") for each in statuses)
    logs = [running.kubectl.run(*options)]
    if restarted:
        logs.append(running.kubectl.run(*options, "--previous"))
    return "\n".join(logs)


def bandwidth(running: RunningPlatform) -> Iterator[CheckResult]:
    """Compare the speed of the transfers since the first request of this check with a TCP connection."""
    for deployment in _with_efa(running):
        now = transfers_of(running, deployment, running.access.instances(deployment))
        before = running.transferred.get(deployment.release, Transferred(0.0, 0.0))
        yield _judged(running, deployment, now, before)


def _judged(
    running: RunningPlatform, deployment: DeploymentPlan, now: Transferred | None, before: Transferred
) -> CheckResult:
    """Judge the mean bandwidth of an accelerator's transfers during the check."""
    name = deployment.release
    seconds = now.seconds - before.seconds if now else 0.0
    transfers = now.transfers - before.transfers if now else 0.0
    if now is None or seconds <= 0 or transfers <= 0:
        message = f"{name}: no time of transfers is reported, so their bandwidth is not known"
        return CheckResult("EFA bandwidth", "unknown", message)
    moved = now.moved_bytes - before.moved_bytes
    measured, possible = moved * _BITS / seconds, _efa_bits_per_second(running, deployment)
    words = (
        f"{name}: {measured / _GIGA:,.1f} Gbit/s per accelerator, EFA has up to {possible / _GIGA:,.0f} "
        f"({transfers:.0f} transfers of {moved / transfers / 2**20:,.0f} MiB)"
    )
    if measured >= _TCP_BITS_PER_SECOND:
        return CheckResult("EFA bandwidth", "ok", words)
    if moved / transfers < _LARGE_BYTES:
        message = f"{words}; the prompts are too short to measure a bandwidth"
        return CheckResult("EFA bandwidth", "unknown", message)
    namespace = running.platform.namespace(name)
    message = (
        f"{words}, no faster than one TCP connection; check that the workers have the EFA interfaces beside "
        "their GPUs, and look for a provider other than efa in their logs"
    )
    command = (
        f"kubectl logs --namespace {namespace} --selector app.kubernetes.io/instance={name} --container main "
        "--tail -1 | grep -i -e libfabric -e 'KV Transfer metrics'"
    )
    return CheckResult("EFA bandwidth", "error", message, command)


def _efa_bits_per_second(running: RunningPlatform, deployment: DeploymentPlan) -> float:
    """Return the smallest share of the network that an accelerator of the workers' pools has."""
    used = {process.pool for process in deployment.workers}
    return min(
        each.network_bandwidth_mbps * _BITS_PER_MBPS / each.accelerator_count
        for pool in running.platform.blueprint.spec.pools
        if pool.name in used
        for each in pool.types
    )


def _with_efa(running: RunningPlatform) -> list[DeploymentPlan]:
    """Return the deployments that transfer KV cache over EFA."""
    return [deployment for deployment in deployments_of(running) if deployment.kv_transfer == "libfabric"]

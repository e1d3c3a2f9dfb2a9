"""Checks that EFA works for KV cache: its memory is registered, and it is faster than a TCP connection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.kv_transfer_checks import transfers_of
from inference_blueprints.operate.verify.running_platform import RunningPlatform
from inference_blueprints.operate.verify.serving_access import Transferred, deployments_of
from inference_blueprints.operate.verify.verified_platform import KubernetesObject
from inference_blueprints.serving.types import DeploymentPlan

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

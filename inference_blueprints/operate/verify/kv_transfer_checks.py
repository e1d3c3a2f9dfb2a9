"""Checks that KV cache is transferred over RDMA: NIXL falls back to slow TCP without an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.verify.prometheus_metrics import sample_sum
from inference_blueprints.operate.verify.serving_access import (
    Instance,
    Instances,
    ServedPlatform,
    Transferred,
    deployments_of,
)
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

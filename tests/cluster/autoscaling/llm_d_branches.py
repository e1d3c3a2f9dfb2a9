"""Branches whose ScaledObject is the one that llm-d's chart renders, over series of its workers.

The expressions stay as they are rendered. A real Prometheus evaluates them over written series of vLLM, whose
names and labels are those that `tests/engines/test_monitoring_queries.py` reads from real vLLM. KEDA and the
simulator then get the same values. Only the address, the object that is scaled and the lengths of windows and
periods differ from the rendered object.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.cluster.autoscaling.branches import Branch, Script
from tests.local.scaling.llm_d_scaled_object import llm_d_scaled_object

_POLLING_SECONDS = 1
#: Windows and periods are so many times shorter.
_TIME_FACTOR = 20
_REPORTING_WORKERS = 4
#: Series begin so long before the scripts: longer than the window of the latency.
_HISTORY_SECONDS = 150
_SCRIPT_SECONDS = 60
_UP_BY_TWO = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLoad:
    """What each worker of vLLM reports."""

    waiting: float = 0
    """`waiting`, `running`: Waiting requests, and running ones."""
    use: float = 0
    """Used share of the KV cache."""
    slow: int = 0
    """Requests per second whose first token took between half a second and four."""
    running: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDBranch:
    """A branch before its object is rendered."""

    name: str
    """Name, also of the objects and of the deployment."""
    load: Mapping[str, Any]
    """The section ``load`` of the blueprint."""
    loads: Sequence[tuple[int, WorkerLoad | None]]
    """What each of four workers reports, by the second from which on it holds. None: no series."""
    numbers: Sequence[int]
    """The numbers of workers that must follow, without repetitions."""
    role: str = "worker"
    """The elastic role."""
    minimum: int = 2
    """Smallest number of workers."""
    scale_up: Mapping[str, Any] = field(default_factory=dict)
    """Changes of the rules for more workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedBranch(Branch):
    """A branch with a rendered object."""

    rendered: Mapping[str, Any]

    def queries(self) -> Mapping[str, str]:
        """Return the rendered expressions."""
        return _queries(self.rendered)

    def manifest(self, address: str, window: tuple[str, str]) -> dict[str, Any]:  # noqa: ARG002 - no schedule
        """Return the rendered object, for the branch's Deployment and with shorter times."""
        found = copy.deepcopy(dict(self.rendered))
        specification = found["spec"]
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        found["metadata"] = {"name": self.name}
        specification |= {"scaleTargetRef": target, "pollingInterval": _POLLING_SECONDS}
        for trigger in specification["triggers"]:
            trigger["metadata"]["serverAddress"] = address
        behaviour = specification["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        for rules in behaviour.values():
            rules["stabilizationWindowSeconds"] //= _TIME_FACTOR
            for policy in rules.get("policies", ()):
                policy["periodSeconds"] //= _TIME_FACTOR
        behaviour["scaleUp"] |= self.rules.get("scale_up", {})
        return found


def rendered_branch(branch: LlmDBranch, folder: Path) -> RenderedBranch:
    """Render the object of a branch, and evaluate its expressions over the series.

    folder: Where the chart is staged.
    """
    replicas = {"min": branch.minimum, "max": 12}
    elastic = {
        "pool": "l40s",
        "tensorParallelSize": 1,
        "replicas": replicas,
        "scaledBy": {"load": branch.load},
    }
    fixed = {"pool": "l40s", "tensorParallelSize": 1, "replicas": 1}
    roles: Mapping[str, Any] = {"aggregated": elastic}
    if branch.role != "worker":
        roles = {"disaggregated": {"prefill": fixed, "decode": fixed, branch.role: elastic}}
    rendered = llm_d_scaled_object({"name": branch.name, **roles}, folder)
    queries = _queries(rendered)
    return RenderedBranch(
        name=branch.name,
        start=_REPORTING_WORKERS,
        scripts=dict(zip(queries, _scripts(branch, list(queries.values())), strict=True)),
        numbers=branch.numbers,
        rules={"scale_up": branch.scale_up},
        rendered=rendered,
    )


def _queries(rendered: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["metadata"]["query"] for each in rendered["spec"]["triggers"]}


def _scripts(branch: LlmDBranch, queries: Sequence[str]) -> list[Script]:
    """Return the answers to the expressions, from second 0 on."""
    end = float(_HISTORY_SECONDS + _SCRIPT_SECONDS)
    asked = [
        TimedQuery(expression=each, start_seconds=_HISTORY_SECONDS, end_seconds=end, step_seconds=1)
        for each in queries
    ]
    (answers,) = evaluate(
        [TimedEvaluation(series=_series(branch), queries=asked, interval_seconds=1)], lambda _: None
    )
    found: list[Script] = []
    for answer in answers:
        assert len(answer) <= 1, "a trigger must have one number"
        # Ten digits: sums of floating-point numbers differ in the last ones.
        values = {at: float(f"{value:.10g}") for at, value in answer[0].values} if answer else {}
        seconds = range(_SCRIPT_SECONDS + 1)
        # A number that is missing is an answer without a number.
        each_second = [(at, values.get(float(_HISTORY_SECONDS + at), math.nan)) for at in seconds]
        found.append([next(same) for _, same in groupby(each_second, key=lambda pair: str(pair[1]))])
    return found


def _series(branch: LlmDBranch) -> list[str]:
    """Return series of four workers, with a value each second."""
    loads = [
        [load for begin, load in branch.loads if begin <= max(second, 0)][-1]
        for second in range(-_HISTORY_SECONDS, _SCRIPT_SECONDS + 1)
    ]

    def values(of: Callable[[WorkerLoad], float]) -> str:
        return " ".join("stale" if load is None else f"{of(load):g}" for load in loads)

    total, slow = 0, list[str]()
    for load in loads:
        total += load.slow if load else 0
        slow.append("stale" if load is None else str(total))
    found = []
    for number in range(_REPORTING_WORKERS):
        release = f"qwen3-8b-{branch.name}"
        labels = f'release="{release}",role="{branch.role}",pod="worker-{number}",model_name="qwen3-8b"'
        bucket = f"vllm:time_to_first_token_seconds_bucket{{{labels}"
        found += [
            f"vllm:num_requests_waiting{{{labels}}} {values(lambda load: load.waiting)}",
            f"vllm:num_requests_running{{{labels}}} {values(lambda load: load.running)}",
            f"vllm:kv_cache_usage_perc{{{labels}}} {values(lambda load: load.use)}",
            f'{bucket},le="0.5"}} {values(lambda _: 0)}',
            f'{bucket},le="4.0"}} {" ".join(slow)}',
            f'{bucket},le="+Inf"}} {" ".join(slow)}',
        ]
    return found


LLM_D_BRANCHES = (
    # 40 waiting requests of four workers, 100, and 22, at ten for each worker. The number doubles at most in
    # a period, and then one worker goes at a time.
    LlmDBranch(
        name="llm-d-queue",
        load={"metric": "queueLength", "target": 10},
        loads=[(0, WorkerLoad(waiting=10)), (8, WorkerLoad(waiting=25)), (16, WorkerLoad(waiting=5.5))],
        numbers=[8, 7, 6, 5, 4, 3],
    ),
    # Half of the cache for each worker. Without series the number stays.
    LlmDBranch(
        name="llm-d-cache",
        load={"metric": "kvCacheUse", "target": 0.5},
        loads=[(0, WorkerLoad(use=0.5)), (8, WorkerLoad(use=0.95)), (20, None), (32, WorkerLoad(use=0.6))],
        numbers=[8, 7, 6, 5],
    ),
    # All first tokens come between half a second and four. So the 90th percentile is 3.65 s, 1.46 times the
    # target. The simulator has ready workers at once, so only one step is allowed.
    LlmDBranch(
        name="llm-d-latency",
        load={"metric": "timeToFirstToken", "target": 2500},
        loads=[(0, WorkerLoad()), (8, WorkerLoad(slow=4))],
        numbers=[6],
        minimum=4,
        scale_up=_UP_BY_TWO,
    ),
    # What the plan chooses itself. The waiting requests need more workers first, and the tokens later. No
    # number is above twice the first one: whether 15 s are over would decide about it.
    LlmDBranch(
        name="llm-d-both",
        load={},
        loads=[
            (0, WorkerLoad(waiting=3, use=0.1)),
            (8, WorkerLoad(waiting=5, use=0.1)),
            (26, WorkerLoad(waiting=5.5, use=0.9)),
        ],
        numbers=[5, 8, 10],
    ),
    # The cache reads a tenth of what 200, and then 100 requests in flight hold. The guard keeps the workers
    # that they fill: seven, and then four, at 29.09 for each worker.
    LlmDBranch(
        name="llm-d-guard",
        load={},
        loads=[
            (0, WorkerLoad(running=30, use=0.05)),
            (8, WorkerLoad(running=50, use=0.05)),
            (26, WorkerLoad(running=25, use=0.05)),
        ],
        numbers=[7, 6, 5, 4],
    ),
    # A worker's cache has 152,832 tokens, and a waiting request 3,000: 122,266 tokens, then 207,398.
    *(
        LlmDBranch(
            name=f"llm-d-{role}",
            load={"metric": "tokensInFlight", "target": 30_000},
            loads=[(0, WorkerLoad(use=0.2)), (8, WorkerLoad(use=0.3, waiting=2))],
            numbers=[7],
            role=role,
        )
        for role in ("prefill", "decode")
    ),
)

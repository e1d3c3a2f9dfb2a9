"""Fills the recordings with a plan: the rule file of the cluster's Prometheus."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import Template
from typing import Any

import yaml

from inference_blueprints.render.monitoring.recordings import SCOPE_LABELS, Recording, late_name, recordings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.types import DeploymentPlan, ServingPlan
from inference_blueprints.spec.types import WHOLE_REQUEST, LatencyKind, Objective, Objectives
from inference_contracts.records import dataclass

#: Upper bounds of the buckets, in seconds, as the programs report them. Prometheus 3 writes whole numbers
#: with a point. Read in Dynamo 1.6.1; vLLM: vllm/v1/metrics/loggers.py at v0.24.0.
BUCKETS: Mapping[str, tuple[float, ...]] = {
    "dynamo_frontend_time_to_first_token_seconds": (
        *(0.0, 0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47),
        *(1.0, 2.2, 4.7, 10.0, 22.0, 48.0, 100.0, 220.0, 480.0),
    ),
    "dynamo_frontend_inter_token_latency_seconds": (
        *(0.0, 0.0018, 0.0033, 0.0059, 0.011, 0.02, 0.035, 0.064, 0.12, 0.21, 0.38, 0.69),
        *(1.2, 2.3, 4.1, 7.4, 13.0, 24.0, 44.0, 80.0),
    ),
    "dynamo_frontend_request_duration_seconds": (
        *(0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 130.0, 260.0, 510.0),
    ),
    "vllm:time_to_first_token_seconds": (
        *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
        *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
    ),
    "vllm:inter_token_latency_seconds": (
        *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
        *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
    ),
    "vllm:e2e_request_latency_seconds": (
        *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
        *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
    ),
}
#: Of a share: far below every threshold of an alarm.
_PRECISION = "0.000001"
_INTERVAL = "15s"
#: Time for a new node to take pods, which no document states: the plan counts none for the launch either.
_NODE_SECONDS = 600
_CONSTANT = "$constant"
_LATE = re.compile(r"^\$late\((\S+)\)$")


def late_share(metric: str, selector: str, by: str, window: str, *, limit_seconds: float) -> str:
    """Return PromQL for the share of a histogram's observations above a limit.

    Within a bucket, observations are taken as evenly spread, as `histogram_quantile` does.

    metric: Name of the histogram without its ending, one of `BUCKETS`.
    selector: Label matchers.
    by: Labels of the result.
    window: Range of the rate, such as ``5m``.
    """
    bounds = BUCKETS[metric]
    place = bisect_right(bounds, limit_seconds)
    total = f"sum by ({by}) (rate({metric}_count{{{selector}}}[{window}]))"

    def below(bound: float) -> str:
        return f'sum by ({by}) (rate({metric}_bucket{{{selector},le="{_le(bound)}"}}[{window}]))'

    if place == len(bounds):  # beyond the last bucket nothing is known: what is in no bucket is late
        inside = below(bounds[-1])
    elif place == 0:
        inside = f"{limit_seconds / bounds[0]:.6g} * {below(bounds[0])}"
    else:
        lower, upper = bounds[place - 1], bounds[place]
        share = (limit_seconds - lower) / (upper - lower)
        inside = below(lower)
        if share:
            inside = f"({1 - share:.6g} * {inside} + {share:.6g} * {below(upper)})"
    # Without rounding, shares of nothing would be rounding errors, some of them negative.
    return f"round(1 - {inside} / ({total} > 0), {_PRECISION})"


def _le(bound: float) -> str:
    """Return a bucket's label as Prometheus 3 writes it."""
    return repr(bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """The price of a node of a pool."""

    pool: str
    instance_type: str
    """EC2 instance type."""
    purchase: str
    """Karpenter's capacity type: ``on-demand``, ``spot`` or ``reserved``."""
    usd_per_hour: float
    """US dollars per hour."""


@dataclass(frozen=True, slots=True)
class RecordingRule:
    """A recording rule."""

    record: str
    """Name of the series."""
    expression: str
    """PromQL."""
    labels: Mapping[str, str]
    """Labels that the rule adds."""
    series: int = 1
    """Parts of the plan that the rule is about: its answer has at least one series for each."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What one rule is about: the matchers that select its series, and what fills its placeholders."""

    template: str
    matchers: tuple[str, ...]
    series: int
    limit_ms: float = 0.0
    percentile: float = 0.0
    gpus: int = 0
    start_seconds: int = 0


def rules(
    platform: str,
    plan: ServingPlan,
    *,
    objectives: Mapping[str, Objectives],
    prices: Sequence[NodePrice] = (),
) -> tuple[RecordingRule, ...]:
    """Return every recording rule of a platform.

    One rule is about all deployments whose program reports the same metrics, so that the rules of a large
    platform fit into the event of a custom resource.

    platform: `metadata.name`.
    objectives: Objectives by the model's name in the blueprint. Without them, nothing is late.
    prices: Prices of nodes. Nodes without a price have no cost.
    """
    found: list[RecordingRule] = []
    for recording in recordings():
        if (recording.elastic and not plan.is_elastic) or (recording.door and plan.front_door is None):
            continue
        if _CONSTANT in recording.promql.values():
            found += _constants(recording, platform, plan, prices)
        for scope in _scopes(recording, platform, plan, objectives):
            found += _rules(recording, scope)
    return tuple(found)


def rule_groups(found: Sequence[RecordingRule]) -> dict[str, Any]:
    """Return recording rules as the content of a rule file, such as a chart's values hold it."""
    group = {
        "name": "inference-blueprints",
        "interval": _INTERVAL,
        "rules": [
            {
                "record": rule.record,
                "expr": rule.expression,
                **({"labels": dict(rule.labels)} if rule.labels else {}),
            }
            for rule in found
        ],
    }
    return {"groups": [group]}


def rule_file(found: Sequence[RecordingRule]) -> str:
    """Return recording rules as a file for Prometheus."""
    return yaml.safe_dump(rule_groups(found), sort_keys=False, width=10_000)


def _scopes(
    recording: Recording, platform: str, plan: ServingPlan, objectives: Mapping[str, Objectives]
) -> Iterator[_Scope]:
    here = f'platform="{platform}"'
    if recording.scope in {"platform", "pool"}:
        template, is_pool = recording.promql["any"], recording.scope == "pool"
        if template != _CONSTANT:
            yield _Scope(template, (here, 'pool!=""') if is_pool else (here,), _pools(plan) if is_pool else 1)
        return
    deployments = [deployment for model in plan.models for deployment in model.deployments]
    parts = _roles if recording.scope == "role" else _releases
    groups: dict[_Scope, list[DeploymentPlan]] = defaultdict(list)
    for deployment in deployments:
        for scope in parts(recording, deployment, here, objectives):
            groups[scope].append(deployment)
    start = longest_start_seconds(plan)
    for scope, about in groups.items():
        yield replace(
            scope,
            matchers=(*scope.matchers, *_only(scope, about, deployments)),
            series=len(about),
            start_seconds=start,
        )


def _only(
    scope: _Scope, about: Sequence[DeploymentPlan], deployments: Sequence[DeploymentPlan]
) -> tuple[str, ...]:
    """Return the matchers of some deployments; none if they are all.

    Program and objectives are the same for all deployments of a model, numbers of GPUs are not. Objectives
    do not hold for deployments of batch alone.
    """
    label = "release" if scope.gpus else "model"
    names = dict.fromkeys(getattr(each, label) for each in about)
    batch = [each for each in deployments if scope.limit_ms and not each.is_waited_for]
    only = () if len(about) + len(batch) == len(deployments) else (f'{label}=~"{"|".join(names)}"',)
    left_out = [each.release for each in batch if not only or each.model in names]
    return (*only, f'release!~"{"|".join(left_out)}"') if left_out else only


def _releases(
    recording: Recording, deployment: DeploymentPlan, here: str, objectives: Mapping[str, Objectives]
) -> Iterator[_Scope]:
    """Yield what a recording per release asks about a deployment, if its program reports it."""
    template = _template(recording, deployment)
    if template is None:
        return
    engines = "vllm:" in template
    roles = f'role=~"{"|".join(_measured_roles(deployment))}"'
    scope = _Scope(template, (here, roles) if engines else (here,), 1)
    if recording.objective is None:
        yield scope
        return
    model = objectives.get(deployment.model) if deployment.is_waited_for else None
    for each in model.stated if model else ():
        if each.kind == recording.objective and _resolves(template, each):
            yield replace(scope, limit_ms=each.limit_ms, percentile=each.percentile)


def _resolves(template: str, objective: Objective) -> bool:
    """Return whether a histogram tells apart which whole requests are late.

    Requests with a limit of 0.3 s are in Dynamo's bucket of 0 to 2 s. Taken as evenly spread there, nearly
    all of them would be late.
    """
    late = _LATE.match(template)
    if late is None or objective.kind != WHOLE_REQUEST:
        return True
    first = next(bound for bound in BUCKETS[late[1]] if bound > 0)
    return objective.limit_ms / 1000 >= first


def late_latencies(
    plan: ServingPlan, objectives: Mapping[str, Objectives]
) -> frozenset[tuple[LatencyKind, float]]:
    """Return each latency and percentile with an objective of which Prometheus records the late share.

    objectives: Objectives by the model's name in the blueprint.
    """
    return frozenset(
        (recording.objective, scope.percentile)
        for recording in recordings()
        if recording.objective is not None
        for model in plan.models
        for deployment in model.deployments
        for scope in _releases(recording, deployment, "", objectives)
    )


def _roles(
    recording: Recording, deployment: DeploymentPlan, here: str, _: Mapping[str, Objectives]
) -> Iterator[_Scope]:
    """Yield what a recording per role asks about each kind of worker of a deployment."""
    template = _template(recording, deployment)
    if template is None or template == _CONSTANT:
        return
    for process in deployment.workers:
        gpus = process.resources.devices * process.nodes if "$gpus" in template else 0
        yield _Scope(template, (here, f'role="{process.role}"'), 1, gpus=gpus)


def longest_start_seconds(plan: ServingPlan) -> int:
    """Return the time in which every worker must be ready: a new node, and the longest limit of a startup.

    One time for the whole platform keeps the rules small: with a window for each model, a rule would have to
    list the models that it is about.
    """
    startups = (
        process.probes.startup
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.workers
    )
    return _NODE_SECONDS + max((each.period_seconds * each.failure_threshold for each in startups), default=0)


def _template(recording: Recording, deployment: DeploymentPlan) -> str | None:
    [engine] = {process.engine.engine for process in deployment.workers if process.engine}
    server = ENGINES[engine].own_server if deployment.stack != "dynamo" else None
    programs = (server.program if server else deployment.stack, engine, "any")
    return next((recording.promql[key] for key in programs if key in recording.promql), None)


def _pools(plan: ServingPlan) -> int:
    deployments = [deployment for model in plan.models for deployment in model.deployments]
    return len({process.pool for each in deployments for process in each.workers if process.pool})


def _measured_roles(deployment: DeploymentPlan) -> tuple[str, ...]:
    """Return the roles whose engines see whole requests: decode, if prefill is separate."""
    roles = {process.role for process in deployment.workers}
    return ("decode",) if "decode" in roles else tuple(sorted(roles))


def _constants(
    recording: Recording, platform: str, plan: ServingPlan, prices: Sequence[NodePrice]
) -> Iterator[RecordingRule]:
    """Yield the rules of what the plan or the catalogue knows."""
    if recording.scope == "pool":
        for price in prices:
            labels = {
                "platform": platform,
                "pool": price.pool,
                "instance_type": price.instance_type,
                "purchase": price.purchase,
            }
            yield RecordingRule(recording.name, f"vector({price.usd_per_hour:g})", labels)
        return
    for model in plan.models:
        for deployment in model.deployments:
            for process in deployment.workers:
                batch = process.engine.max_num_seqs if process.engine else 0
                value = batch if recording.name == "serving_batch_size" else process.replicas
                if not value and process.lent_most:
                    continue  # None of them is ever missing, and without any no series says how many answer.
                labels = {
                    "platform": platform,
                    "model": deployment.model,
                    "release": deployment.release,
                    "role": process.role,
                    "pool": process.pool or "",
                }
                yield RecordingRule(recording.name, f"vector({value:g})", labels)


def _rules(recording: Recording, scope: _Scope) -> Iterator[RecordingRule]:
    selector = ",".join(scope.matchers)
    by = ", ".join(SCOPE_LABELS[recording.scope])
    for name, window, percentile in _variants(recording):
        record = name
        if late := _LATE.match(scope.template):
            record = f"{late_name(recording.name, scope.percentile)}_{window}"
            limit_seconds = scope.limit_ms / 1000
            expression = late_share(late[1], selector, by, window, limit_seconds=limit_seconds)
        else:
            expression = Template(scope.template).substitute(
                labels=selector,
                by=by,
                window=window,
                quantile=f"{percentile / 100:g}",
                gpus=scope.gpus,
                start=f"{scope.start_seconds}s",
            )
        yield RecordingRule(record, expression, {}, scope.series)


def _variants(recording: Recording) -> Iterator[tuple[str, str, int]]:
    """Yield the name of each series with its window and percentile."""
    for place, name in enumerate(recording.series):
        window = recording.windows[place] if recording.windows else ""
        yield name, window, recording.percentiles[place] if recording.percentiles else 0

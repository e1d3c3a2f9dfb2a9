"""Generated elastic workers: some sets of workers of a platform follow their load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[..., Any]

#: Loads by which each role may scale, with a target in the unit of each.
_TARGETS: dict[str, dict[str, float]] = {
    "aggregated": {"tokensInFlight": 20_000, "queueLength": 2, "kvCacheUse": 0.5, "timeToFirstToken": 800},
    "prefill": {"tokensInFlight": 20_000, "queueLength": 2, "timeToFirstToken": 800},
    "decode": {"tokensInFlight": 20_000, "kvCacheUse": 0.5},
}
#: Loads that servers without a router report, by engine; those of others report all of the above.
_REPORTED = {"llamaCpp": ("tokensInFlight", "queueLength"), "vllmOmni": ("queueLength",)}
_TIMES = {"start": "0 7 * * 1-5", "end": "30 21 * * 1-5"}

#: Times that a user may have measured.
_START = {"launchSeconds": st.sampled_from([1, 240]), "engineSeconds": st.sampled_from([1, 900])}


@st.composite
def with_elastic_workers(draw: Draw, models: Sequence[Document]) -> list[Document]:
    """Return models of which some deployments are elastic, each in all of its roles."""
    return [
        model | {"deployments": [draw(_elastic(each, _reported(model))) for each in model["deployments"]]}
        for model in models
    ]


def _reported(model: Document) -> dict[str, dict[str, float]]:
    """Return the loads by which each role of a model may scale."""
    [engine] = model.get("engine", {"vllm": {}})
    named = _REPORTED.get(engine)
    if named is None:
        return _TARGETS
    return {role: {each: loads[each] for each in named if each in loads} for role, loads in _TARGETS.items()}


@st.composite
def _elastic(draw: Draw, deployment: Document, targets: dict[str, dict[str, float]]) -> Document:
    if not draw(st.booleans()):
        return deployment
    if "aggregated" in deployment:
        return deployment | {"aggregated": draw(_scaled(deployment["aggregated"], targets["aggregated"]))}
    roles = {role: draw(_scaled(each, targets[role])) for role, each in deployment["disaggregated"].items()}
    return deployment | {"disaggregated": roles}


@st.composite
def _scaled(draw: Draw, workers: Document, targets: dict[str, float]) -> Document:
    """Return workers with a range up to their number."""
    maximum = workers["replicas"]
    minimum = draw(st.integers(1, maximum))
    load: Document = {}
    if metric := draw(st.sampled_from([None, *targets])):
        load |= {"metric": metric, "target": targets[metric]}
    # Few draws come here, so most of them do.
    if minimum < maximum and draw(st.integers(0, 3)):
        zones = st.sampled_from([{}, *[{"timeZone": "Europe/Berlin"}] * 3])
        load["floors"] = [{**_TIMES, **draw(zones), "replicas": maximum}]
    if draw(st.booleans()):
        load["scaleDownAfterSeconds"] = 600
    start = draw(st.fixed_dictionaries({}, optional=_START))
    measured = {"measuredStart": start} if start or draw(st.booleans()) else {}
    return workers | {"replicas": {"min": minimum, "max": maximum}, "scaledBy": {"load": load}} | measured


@st.composite
def shifts(draw: Draw, models: Sequence[Document], jobs: Document) -> Document:
    """Return a capacity shift, or nothing; always nothing without batch or without elastic workers."""
    elastic = any("scaledBy" in workers for model in models for workers in _each_workers(model))
    if not elastic or "batch" not in jobs or not draw(st.booleans()):
        return {}
    # Longer than any start of a worker that the plan knows.
    named = {"action": st.sampled_from(["observe", "shift"]), "reclaimSeconds": st.just(7200)}
    optional = {"safetyPercent": st.sampled_from([0, 200])}
    return {"capacityShift": draw(st.fixed_dictionaries(named, optional=optional))}


def _each_workers(model: Document) -> list[Document]:
    """Return the workers of all roles of a model."""
    return [
        workers
        for deployment in model["deployments"]
        for workers in (
            [deployment["aggregated"]] if "aggregated" in deployment else deployment["disaggregated"].values()
        )
    ]

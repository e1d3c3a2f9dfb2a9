"""Generated traffic: lengths and rates of each way in, deployments of queues and jobs, and a shared pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.templates.weight_strategies import COMMIT

Document = dict[str, Any]
Draw = Callable[..., Any]

#: One fits the mean prompt only now and then, and two never.
_IMAGES = st.fixed_dictionaries({"mean": st.sampled_from([0, 0.5]), "max": st.just(1)})
#: By day, at its peak, and nothing by night.
_HOURS = [0.0] * 8 + [1.0] * 10 + [0.25] * 6
_PERCENTILES = {
    "timeToFirstTokenMs": {"p50": 900.0, "p95": 2500.0, "p99": 3000.0},
    "requestMs": {"p50": 6000.0, "p90": 7000.0, "p95": 8000.0, "p99": 9000.0},
}
_SHARED_POOL = "shared"
#: Two nodes of four devices.
_DEVICES = 8


@st.composite
def with_traffic(draw: Draw, document: Document) -> Document:
    """Return a blueprint that says more of its requests, and of who serves them."""
    spec = document["spec"]
    jobs = {key: spec[key] for key in ("batch", "streaming") if key in spec}
    models, jobs = draw(_with_ways_in(spec["models"], jobs))
    spec = draw(_with_a_shared_pool(spec | {"models": models} | jobs))
    _state_capacity(draw, spec)
    return document | {"spec": spec}


@st.composite
def _with_ways_in(draw: Draw, models: Sequence[Document], jobs: Document) -> tuple[list[Document], Document]:
    """Return models, and their queues and streaming jobs, which say more of their requests than a mean."""
    queues, streaming = jobs.get("batch", {}).get("queues", ()), jobs.get("streaming", ())
    further: dict[str, Document] = {}
    found = []
    for model in models:
        if "task" in model or "images" in model["workload"]:
            found.append(model)
            continue
        reads_images = "media" in model
        workload = model["workload"] | draw(_lengths(reads_images=reads_images)) | draw(_days())
        names = [each["name"] for each in model["deployments"]]
        some = st.lists(st.sampled_from(names), min_size=1, unique=True)
        of_queues = draw(_some(deployments=some))  # all queues of a model name the same
        ways = [each for each in queues if each["model"] == model["name"]]
        ways += [each for each in streaming if each["model"] == model["name"]]
        for way in ways:
            is_queue = way in queues
            stated = draw(_lengths(reads_images=reads_images)) | ({} if is_queue else draw(_days()))
            own = {"workload": stated} if reads_images or draw(st.booleans()) else {}
            further[way["name"]] = own | (of_queues if is_queue else draw(_some(deployments=some)))
        objectives = model.get("objectives", {})
        objectives = objectives | {key: each for key, each in _PERCENTILES.items() if key in objectives}
        if "requestMs" in objectives:
            objectives["timePerOutputTokenMs"] = {"p50": 50.0, "p95": 70.0, "p99": 90.0}
        stated = {"objectives": objectives} if objectives else {}
        found.append(model | {"workload": workload} | stated)
    changed = dict(jobs)
    if queues:
        queues = [each | further.get(each["name"], {}) for each in queues]
        changed["batch"] = jobs["batch"] | {"queues": queues}
    if streaming:
        changed["streaming"] = [each | further.get(each["name"], {}) for each in streaming]
    return found, changed


@st.composite
def _lengths(draw: Draw, *, reads_images: bool) -> Document:
    """Return lengths that the shortest context holds, of a prompt that an image fits."""
    lengths = {
        "inputTokens": draw(st.sampled_from([200, {"mean": 200}, {"mean": 200, "max": 500}])),
        "outputTokens": draw(st.sampled_from([50, {"mean": 50}, {"mean": 50, "max": 100}])),
    }
    images = {"promptImages": draw(_IMAGES)} if reads_images else {}
    further: Document = draw(_some(sharedPrefixRatio=st.sampled_from([0.0, 0.5])))
    return lengths | images | further


def _days() -> st.SearchStrategy[Document]:
    return _some(day=st.just({"hours": _HOURS}))


@st.composite
def _with_a_shared_pool(draw: Draw, spec: Document) -> Document:
    """Return the keys of a blueprint's `spec` with two more models that share a pool, or nothing new.

    Always nothing without batch and without `observability`.
    """
    if "batch" not in spec or "observability" not in spec or not draw(st.booleans()):
        return spec
    pool = {
        "name": _SHARED_POOL,
        "instanceTypes": ["g6e.12xlarge"],
        "nodes": {"min": draw(st.integers(0, 2)), "max": 2},
        "shared": {},
    }
    size = draw(st.sampled_from([1, 2, 4]))
    most = _DEVICES // size
    live = {
        "tensorParallelSize": size,
        "replicas": {"min": 1, "max": draw(st.integers(1, most))},
        "scaledBy": {"load": {}},
    } | ({"requestsAtOnce": draw(st.sampled_from([1, 60]))} if size > 1 or draw(st.booleans()) else {})
    night = {
        "tensorParallelSize": 1,
        "replicas": {"min": draw(st.integers(0, 2)), "max": draw(st.integers(2, 4))},
        "scaledBy": {"capacityShift": {}},
    }
    models = [
        _model("live", live, draw(st.integers(0, 100)))
        | {"workload": {"inputTokens": 200, "outputTokens": 50, "peakRequestsPerSecond": 0.5}},
        _model("night", night, draw(st.integers(0, 100))),
    ]
    queue = {
        "name": "night",
        "model": "night",
        "rates": {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4},
        "workload": draw(_lengths(reads_images=False)),
        "load": {"requestsPerDay": draw(st.sampled_from([1, 1000]))},
    }
    if any("repairedBy" in each for each in spec["pools"]):
        pool["repairedBy"] = "nobody"
    # Longer than any start of the other elastic workers, which the shift moves too.
    late = {"reclaimSeconds": 7200} if any(_elastic(each) for each in spec["models"]) else {}
    action = draw(st.sampled_from(["observe", "shift"]))
    return spec | {
        "pools": [*spec["pools"], pool],
        "models": [*spec["models"], *models],
        "batch": spec["batch"] | {"queues": [*spec["batch"]["queues"], queue]},
        "capacityShift": {"action": action} | late | spec.get("capacityShift", {}),
    }


def _state_capacity(draw: Draw, spec: Document) -> None:
    """State what some elastic workers carry: all that a shift moves."""
    for model in spec["models"]:
        for workers in _elastic(model):
            if "capacityShift" in spec or draw(st.booleans()):
                workers.setdefault("requestsAtOnce", draw(st.sampled_from([1, 60])))


def _elastic(model: Document) -> list[Document]:
    """Return the workers of a model that follow the load."""
    roles = [
        workers
        for deployment in model["deployments"]
        for workers in (deployment.get("disaggregated") or {"": deployment.get("aggregated")}).values()
    ]
    return [each for each in roles if "load" in each.get("scaledBy", {})]


def _model(name: str, workers: Document, priority: int) -> Document:
    return {
        "name": name,
        "priority": priority,
        "stack": {"direct": {}},
        "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT},
        "deployments": [{"name": "d-0", "aggregated": {"pool": _SHARED_POOL} | workers}],
    }


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=optional)

"""Generated Kafka clusters and streaming jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from inference_catalog.figures import regions_without_flink_logs

Document = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_ZONES_OF_EXPRESS = 3
_TEMPLATES = (
    "{% for event in events %}{{ event.kind }}\n{% endfor %}",
    "{{ session }}: {{ events | length }}",
)
#: Far below the peak of any model.
_LOAD = {"eventsPerSecond": 0.01, "eventsPerSession": 4, "sessionSeconds": 60, "latencyMillis": 200}
_SCHEMA = {"type": "object", "properties": {"intent": {"type": "string"}}}


@st.composite
def streams(
    draw: Draw, models: Sequence[str], jobs: Document, *, region: str, account: str, zones: int
) -> Document:
    """Return streaming with the store that it needs, or nothing of it.

    models: Models that write text.
    jobs: Teams, batch and the signal store, as they were drawn.
    region, account, zones: Where the platform is, and how many zones it has.
    """
    teams = [team["name"] for team in jobs.get("teams", ())]
    possible = models and teams and region not in regions_without_flink_logs()
    if not possible or not draw(st.booleans()):
        return {}
    store = jobs.get("signalStore") or {
        "valkey": {"maxGb": 1},
        "signals": [{"name": "intent", "team": draw(st.sampled_from(teams))}],
    }
    arn = f"arn:aws:kafka:{region}:{account}:cluster/shop/0a1b2c3d"
    existing = {
        "clusterArn": arn,
        "bootstrapServers": "b-1.example.com:9098",
        "securityGroupId": "sg-0a1b2c3d",
    }
    kinds: list[Document] = [{"existing": existing}]
    if zones >= _ZONES_OF_EXPRESS:
        kinds += [{"express": {}}, {"express": {"brokers": 6, "instanceType": "express.m7g.4xlarge"}}]
    kafka = draw(st.sampled_from(kinds))
    count = draw(st.integers(1, len(store["signals"])))
    streaming = [
        draw(_job(f"stream-{index}", models, signal, states_partitions="existing" in kafka))
        for index, signal in enumerate(store["signals"][:count])
    ]
    return {"kafka": kafka, "streaming": streaming, "signalStore": store}


@st.composite
def _job(
    draw: Draw, name: str, models: Sequence[str], signal: Document, *, states_partitions: bool
) -> Document:
    event = {"id": "e-1", "shopper": "s-1", "time": 1_780_000_000_000, "kind": "view"}
    partitions = draw(st.sampled_from([12, 48]))
    stated = states_partitions or draw(st.booleans())
    return {
        "name": name,
        "model": draw(st.sampled_from(models)),
        "team": signal["team"],
        "events": {
            "topic": f"{name}.clicks",
            "examples": [event],
            **({"partitions": partitions} if stated else {}),
            **draw(
                _some(
                    retentionHours=st.sampled_from([1, 168]),
                    moreTopics=st.just([f"{name}.taps"]),
                )
            ),
        },
        "session": {
            "key": "shopper",
            **draw(
                _some(
                    time=st.just("time"),
                    id=st.just("id"),
                    gapSeconds=st.sampled_from([60, 3600]),
                    debounceMillis=st.sampled_from([0, 1000]),
                    maxEvents=st.sampled_from([1, 100]),
                )
            ),
        },
        "prompt": {
            "template": draw(st.sampled_from(_TEMPLATES)),
            "maxInputTokens": 50,
            **draw(_some(system=st.just("Answer briefly."))),
        },
        "answer": {"maxTokens": 10, **draw(_some(jsonSchema=st.just(_SCHEMA)))},
        "signal": {"name": signal["name"], **draw(_some(ttlSeconds=st.sampled_from([60, 86_400])))},
        "load": _LOAD,
        **draw(
            _some(
                deadlineMillis=st.sampled_from([1000, 30_000]),
                maxAgeSeconds=st.sampled_from([0, 3600]),
                parallelism=st.sampled_from([1, 4]),
                shards=st.sampled_from([1, 3]),
            )
        ),
    }


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=optional)

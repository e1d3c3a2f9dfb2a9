"""Generated teams, queues and signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]


#: Where workers run, and numbers of them that fit whatever else is there, also two that are equal.
_WORKERS = st.builds(
    lambda place, numbers: {**place, **numbers},
    st.sampled_from(
        [{}, {"eks": {}}, {"ecs": {}}, {"ecs": {"spotPercent": 0}}, {"ecs": {"spotPercent": 100}}]
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "min": st.integers(0, 2),
            "max": st.sampled_from([2, 3, 25]),
            "latencyPercent": st.sampled_from([0, 50]),
        },
    ),
)
#: Within the peak of any model, whose queues add up.
_LOAD = st.fixed_dictionaries(
    {"requestsPerDay": st.sampled_from([1, 100])}, optional={"requestsPerJob": st.sampled_from([1, 7])}
)


@st.composite
def batches(draw: Draw, models: Sequence[str], account: str) -> Document:
    """Return teams, and queues of some models that write text with signals or without, or nothing of it."""
    if not models or not draw(st.booleans()):
        return {}
    teams = [
        {
            "name": name,
            "principals": [f"arn:aws:iam::{account}:{kind}/{name}"],
            "monthlyBudgetUsd": draw(st.sampled_from([1, 5000.5])),
            **draw(_optional(maxPriority=st.sampled_from([0, 100]))),
            **draw(_optional(maxPlacesPercent=st.sampled_from([1, 100]))),
            **draw(_optional(dataPrefixes=st.sampled_from([[], [f"s3://{name}-data/"], ["s3://all/a/"]]))),
        }
        for name, kind in (("ads", "role"), ("search", "user/team"))[: draw(st.integers(1, 2))]
    ]
    rates = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
    queues = [
        {
            "name": f"queue-{index}",
            "model": draw(st.sampled_from(models)),
            "rates": rates,
            **draw(
                _optional(priority=st.integers(0, 100), deadlineHours=st.sampled_from([0.5, 336]), load=_LOAD)
            ),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    if not draw(st.booleans()):
        return {"teams": teams}
    store = draw(_stores(teams))
    schedules = draw(_schedules(teams, queues, store.get("signals", ())))
    batch = {
        "queues": queues,
        **schedules,
        **draw(_optional(workers=_WORKERS, keepDays=st.sampled_from([29, 365]))),
    }
    return {"teams": teams, "batch": batch, **({"signalStore": store} if store else {})}


@st.composite
def _stores(draw: Draw, teams: Sequence[Document]) -> Document:
    """Return a store with signals of some teams, or none."""
    names = draw(st.sampled_from([(), ("captions",), ("captions", "topics")]))
    signals = [
        {
            "name": name,
            "team": draw(st.sampled_from([team["name"] for team in teams])),
            **draw(_optional(ttlHours=st.sampled_from([0.5, 24]))),
        }
        for name in names
    ]
    if not signals:
        return {}
    optional = _optional(ttlHours=st.sampled_from([1, 8784]), historyDays=st.sampled_from([1, 3650]))
    return {"valkey": {"maxGb": draw(st.sampled_from([1, 5000]))}, "signals": signals, **draw(optional)}


@st.composite
def _schedules(
    draw: Draw, teams: Sequence[Document], queues: Sequence[Document], signals: Sequence[Document]
) -> Document:
    """Return a schedule of a team that has data; none where no team has."""
    [*prefixes] = [(team["name"], prefix) for team in teams for prefix in team.get("dataPrefixes", ())]
    if not prefixes:
        return {}
    team, prefix = draw(st.sampled_from(prefixes))
    [maximum] = [each.get("maxPriority", 1) for each in teams if each["name"] == team]
    owned = [signal["name"] for signal in signals if signal["team"] == team]
    # Few draws come here, so all of them do.
    signal = {"signal": draw(st.sampled_from(owned))} if owned else {}
    text = {"text": "Say: {{ text }}"}
    template = draw(
        st.sampled_from([text, {**text, "imageFields": ["photo"], "parameters": {"max_tokens": 9}}])
    )
    manifest = {
        "inputs": [f"{prefix}{{date}}.jsonl"],
        **signal,
        **draw(
            _optional(
                budgetUsd=st.just(1),
                deadlineHours=st.just(0.5),
                priority=st.just(min(1, maximum)),
                skipInvalid=st.booleans(),
                template=st.just(template),
            )
        ),
    }
    schedule = {
        "name": "nightly",
        "queue": queues[0]["name"],
        "team": team,
        "cron": "0 6 * * ? *",
        "manifest": manifest,
    }
    return {"schedules": [schedule]}


def _optional(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Return a mapping in which each key is there or not."""
    return st.fixed_dictionaries({}, optional=optional)

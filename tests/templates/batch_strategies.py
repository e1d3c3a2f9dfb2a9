"""Generated teams and queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]


_SPOT = st.fixed_dictionaries({}, optional={"spotPercent": st.sampled_from([0, 50, 100])})
#: Where workers run, and numbers of them that fit whatever else is there, also two that are equal.
_WORKERS = st.builds(
    lambda place, numbers: {**place, **numbers},
    st.one_of(st.just({}), st.just({"eks": {}}), st.fixed_dictionaries({"ecs": _SPOT})),
    st.fixed_dictionaries({}, optional={"min": st.integers(0, 2), "max": st.sampled_from([2, 3, 25])}),
)
#: Within the peak of any model, whose queues add up.
_LOAD = st.fixed_dictionaries(
    {"requestsPerDay": st.sampled_from([1, 100])}, optional={"requestsPerJob": st.sampled_from([1, 7])}
)


@st.composite
def batches(draw: Draw, models: Sequence[str], account: str) -> Document:
    """Return teams, and queues of some models, or neither."""
    if not draw(st.booleans()):
        return {}
    teams = [
        {
            "name": name,
            "principals": [f"arn:aws:iam::{account}:{kind}/{name}"],
            "monthlyBudgetUsd": draw(st.sampled_from([1, 5000.5])),
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
                _optional(
                    priority=st.integers(0, 100), deadlineHours=st.sampled_from([0.5, 336]), load=_LOAD
                )
            ),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    batch = {"queues": queues, **draw(_schedules(teams, queues)), **draw(_optional(workers=_WORKERS))}
    return {"teams": teams, **draw(_optional(batch=st.just(batch)))}


@st.composite
def _schedules(draw: Draw, teams: Sequence[Document], queues: Sequence[Document]) -> Document:
    """Return a schedule of a team that has data; none where no team has."""
    [*prefixes] = [(team["name"], prefix) for team in teams for prefix in team.get("dataPrefixes", ())]
    if not prefixes:
        return {}
    team, prefix = draw(st.sampled_from(prefixes))
    text = {"text": "Say: {{ text }}"}
    template = draw(
        st.sampled_from([text, {**text, "imageFields": ["photo"], "parameters": {"max_tokens": 9}}])
    )
    manifest = {
        "inputs": [f"{prefix}{{date}}.jsonl"],
        **draw(
            _optional(
                budgetUsd=st.just(5),
                deadlineHours=st.just(0.5),
                priority=st.just(1),
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

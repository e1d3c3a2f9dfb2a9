"""Generated front doors: their callers, public models and budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Draw = Callable[..., Any]

#: Those of every drawn queue: a request has one price.
_RATES = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
_UUID = "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
_ISSUER = "https://0a1b2c3d-0000-4000-8000-000000000000.tokens.sts.global.api.aws"
_KEYS = {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AQAB"}]}
_OIDC = [
    {
        "issuer": "https://login.example.com/a",
        "audience": "door",
        "teamClaim": "groups",
        "keysUrl": "https://login.example.com/a/keys",
    },
    {"issuer": "https://login.example.com/b", "audience": "door", "keys": _KEYS},
]


@st.composite
def with_front_door(draw: Draw, document: Document, account: str) -> Document:
    """Return a blueprint with a front door and a certificate, or nothing new."""
    if draw(st.booleans()):
        return document
    spec = document["spec"]
    certificate = f"arn:aws:acm:{spec['environment']['region']}:{account}:certificate/{_UUID}"
    https = {"domain": "models.example.com", "certificateArn": certificate}
    door = draw(_doors(spec))
    teams = spec.get("teams") or draw(_teams(account, needs_principals="signalStore" in spec))
    if "iam" in door.get("identity", {}):
        teams = [{"principals": [f"arn:aws:iam::{account}:role/{each['name']}"], **each} for each in teams]
    # Callers of a door have the names of its own section.
    models = [_without(model, "publicName") | {"rates": _RATES} for model in spec["models"]]
    names = [team["name"] for team in teams]
    budgets = draw(_budgets(names, door))
    of_models = [
        each | draw(_some(teams=st.just(names[:1]))) if "to" in each else each
        for each in door.get("models", ())
    ]
    door |= {"budgets": budgets} if budgets else {}
    door |= {"models": of_models} if of_models else {}
    network = spec.get("network", {}) | https
    changed = {"network": network, "models": models, "teams": teams, "frontDoor": door}
    return document | {"spec": spec | changed}


@st.composite
def _teams(draw: Draw, account: str, *, needs_principals: bool) -> list[Document]:
    principals = {"principals": [f"arn:aws:iam::{account}:role/door"]}
    own = principals if needs_principals or draw(st.booleans()) else {}
    return [{"name": "door", "monthlyBudgetUsd": 500, **own}]


@st.composite
def _doors(draw: Draw, spec: Document) -> Document:
    identities = _some(
        apiKeys=_some(maxDays=st.just(90), rotationHours=st.just(0)),
        iam=st.fixed_dictionaries(
            {"accounts": st.sampled_from([[{"issuer": _ISSUER}], [{"issuer": _ISSUER, "keys": _KEYS}]])},
            optional={"audience": st.just("door")},
        ),
        oidc=st.sampled_from([_OIDC[:1], _OIDC]),
    ).filter(bool)
    losses = st.sampled_from([{}, {"onStoreLoss": "refuse"}, {"onStoreLoss": "admit", "storeLossUsd": 5}])
    usage = _some(
        prompts=st.sampled_from(["never", "onRequest"]),
        retentionDays=st.sampled_from([1, 3650]),
        objectLock=st.sampled_from(["none", "governance"]),
    )
    models = [public for model in spec["models"] for public in draw(_public(model, spec))]
    to_models = {"models": {"until": "2099-01-31T00:00:00Z"}}
    old = st.sampled_from([{"door": {}}, to_models])
    found: Document = draw(
        _some(
            host=st.just("gate"),
            identity=identities,
            timeZone=st.just("Europe/Berlin"),
            replicas=st.sampled_from([2, 7]),
            usage=usage,
            oldHostNames=old,
        )
    )
    without_key = (spec.get("batch"), spec.get("streaming"), spec.get("observability", {}).get("canary"))
    if any(each is not None for each in without_key):
        found["oldHostNames"] = to_models
    # Without names, each model that always has workers has its own.
    found |= draw(losses)
    return found | ({"models": models} if models and draw(st.booleans()) else {})


@st.composite
def _public(draw: Draw, model: Document, spec: Document) -> list[Document]:
    """Return a model under a public name, if it always has workers."""
    ways = [*spec.get("batch", {}).get("queues", ()), *spec.get("streaming", ())]
    named = {name for way in ways if way["model"] == model["name"] for name in way.get("deployments", ())}
    every = [each["name"] for each in model["deployments"]]
    own = [name for name in every if name not in named] or every
    if any("capacityShift" in _workers(each).get("scaledBy", {}) for each in model["deployments"]):
        return []
    whole = [{"model": model["name"]}]
    apart = [
        {"model": model["name"], "deployment": name, **draw(_some(weight=st.sampled_from([1, 1000])))}
        for name in own
    ]
    further = _some(
        aliases=st.just([f"{model['name']}-alias"]),
        priority=st.sampled_from([0, 100]),
        defaultOutputTokens=st.just(50),
    )
    return [
        {"name": f"acme/{model['name']}:v1.0", "to": draw(st.sampled_from([whole, apart])), **draw(further)}
    ]


def _workers(deployment: Document) -> Document:
    found: Document = deployment.get("aggregated") or deployment["disaggregated"]["decode"]
    return found


def _is_counted_too_late(limits: Document) -> bool:
    return "requestsAtOnce" in limits and limits.get("enforce") == "after"


def _without(model: Document, name: str) -> Document:
    return {key: value for key, value in model.items() if key != name}


@st.composite
def _budgets(draw: Draw, teams: Sequence[str], door: Document) -> list[Document]:
    """Return limits of a team, a project, keys and a model."""
    limits = _some(
        usdPerDay=st.sampled_from([0.5, 1]),
        requestsPerMinute=st.just(10),
        tokensPerMinute=st.just(1_000_000),
        requestsAtOnce=st.just(5),
        enforce=st.sampled_from(["before", "after"]),
    ).filter(lambda limits: limits.keys() - {"enforce"} and not _is_counted_too_late(limits))
    scopes: list[Document] = [{"team": teams[0]}, {"project": f"{teams[0]}/*"}]
    if "apiKeys" in door.get("identity", {"apiKeys": {}}):
        scopes.append({"key": "*"})
    scopes += [{"model": model["name"]} for model in door.get("models", ())[:1]]
    found = [scope | draw(limits) for scope in scopes if draw(st.booleans())]
    monthly = {"usdPerMonth": 7} if draw(st.booleans()) else {}
    return [budget | (monthly if "project" in budget else {}) for budget in found]


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Return a mapping in which each key is there or not."""
    return st.fixed_dictionaries({}, optional=optional)

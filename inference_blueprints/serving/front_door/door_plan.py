"""The front door of a plan: its models, targets, budgets and callers, from the blueprint."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inference_blueprints.serving.front_door.sizing import door_size, ways_through_the_door
from inference_blueprints.serving.front_door.ways import (
    DoorWay,
    door_ways,
    one_way_deployments,
    public_models,
)
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.worker_load import worker_load
from inference_blueprints.serving.traffic import accelerators, own_deployments, own_means
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan
from inference_blueprints.serving.types.front_door import DoorCluster, DoorKeySet, DoorPlan
from inference_blueprints.spec.types import (
    Blueprint,
    FrontDoor,
    FrontDoorBudget,
    FrontDoorModel,
    FrontDoorTarget,
    Model,
    Rates,
    Spec,
)
from inference_contracts.batch_limits import PIXEL_SIDE_PER_TOKEN
from inference_contracts.door_configuration import (
    NANO,
    BudgetScope,
    DoorBudget,
    DoorConfiguration,
    DoorIssuer,
    DoorModel,
    DoorPrices,
    DoorTarget,
    DoorTeam,
)
from inference_contracts.units import MILLION

#: Claim of a token of AWS STS with the caller's ARN ("Outbound identity federation", IAM User Guide).
_STS_CLAIM = "sub"


def door_plan(blueprint: Blueprint, models: Sequence[ModelPlan]) -> DoorPlan | None:
    """Return the plan of the front door. None if the blueprint has none.

    blueprint: A blueprint that the loader accepted.
    models: The plans of its models.
    """
    door = blueprint.spec.front_door
    if door is None:
        return None
    host_name = f"{door.host}.{blueprint.spec.network.domain}"
    planned = {(model.name, each.name): each for model in models for each in model.deployments}
    door_models = (
        *(_door_model(blueprint, each, planned) for each in public_models(blueprint.spec)),
        *(_way_model(blueprint, each, planned) for each in door_ways(blueprint.spec)),
    )
    used = {target.cluster for each in door_models for target in each.targets}
    key_sets = tuple(_key_sets(door, host_name))
    size = door_size(blueprint.spec, door_models)
    observability = blueprint.spec.observability
    traces = observability.traces if observability else None
    return DoorPlan(
        host_name=host_name,
        configuration=DoorConfiguration(
            platform=blueprint.metadata.name,
            models=door_models,
            teams=tuple(DoorTeam(team.name, tuple(team.principals)) for team in blueprint.spec.teams),
            budgets=tuple(door_budgets(blueprint.spec)),
            issuers=tuple(_issuers(door, host_name)),
            api_keys=door.identity.api_keys is not None,
            time_zone=door.time_zone,
            on_store_loss=door.on_store_loss,
            store_loss_nano=_nano(door.store_loss_usd) or 0,
            replicas=size.replicas,
        ),
        clusters=tuple(
            DoorCluster(each.release, model, each.name, each.entry_point.called_port)
            for (model, _), each in planned.items()
            if each.release in used
        ),
        key_sets=key_sets,
        replicas=size.replicas,
        vcpus=size.vcpus,
        memory_mib=size.memory_mib,
        largest_body_bytes=size.largest_body_bytes,
        trace_ratio=traces.sample_ratio if traces else None,
        has_batch=blueprint.spec.batch is not None,
    )


def _door_model(
    blueprint: Blueprint, public: FrontDoorModel, planned: dict[tuple[str, str], DeploymentPlan]
) -> DoorModel:
    models = {model.name: model for model in blueprint.spec.models}
    # A target without a deployment stands for several: its weight is divided by their accelerators.
    parts = [(target, _parts(blueprint.spec, models[target.model], target)) for target in public.to]
    whole = math.lcm(*(sum(sizes.values()) for _, sizes in parts))
    weighed = [
        (target.model, name, target.weight * size * whole // sum(sizes.values()))
        for target, sizes in parts
        for name, size in sizes.items()
    ]
    behind = [models[target.model] for target in public.to]
    context = min(_context_length(planned[model, name], models[model]) for model, name, _ in weighed)
    return DoorModel(
        name=public.name,
        aliases=tuple(public.aliases),
        targets=_targets(blueprint, weighed, planned),
        # The rules refuse targets with different prices.
        prices=_prices(behind[0], behind[0].rates),
        teams=None if public.teams is None else tuple(public.teams),
        priority=public.priority,
        context_length=context,
        default_output_tokens=public.default_output_tokens
        or _longest_answer(blueprint.spec, behind, context),
        image_tokens=max(each.media.tokens_per_image if each.media else 0 for each in behind),
    )


def _longest_answer(spec: Spec, behind: Sequence[Model], context: int) -> int:
    """Return the longest answer of models as the file states it; without a statement, their context."""
    names = {model.name for model in behind}
    stated = [
        way.means.longest_output_tokens
        for model, way in ways_through_the_door(spec)
        # Queues and streaming jobs have models of their own.
        if model.name in names and way.kind == "realTime"
    ]
    return min(context, max((each or context for each in stated), default=context)) or 1


def _way_model(
    blueprint: Blueprint, way: DoorWay, planned: dict[tuple[str, str], DeploymentPlan]
) -> DoorModel:
    """Return the model of one of the platform's own ways."""
    sizes = {each.name: accelerators(each) for each in way.model.deployments}
    weighed = [(way.model.name, name, sizes[name]) for name in way.deployments]
    longest = min(_context_length(planned[way.model.name, name], way.model) for name in way.deployments)
    return DoorModel(
        name=way.door_model,
        aliases=(),
        targets=_targets(blueprint, weighed, planned),
        prices=_prices(way.model, way.rates),
        teams=way.teams,
        priority=way.priority,
        context_length=longest,
        default_output_tokens=min(longest, way.longest_output or longest) or 1,
        image_tokens=way.model.media.tokens_per_image if way.model.media else 0,
        caller=way.caller,
    )


def _targets(
    blueprint: Blueprint,
    weighed: Sequence[tuple[str, str, int]],
    planned: dict[tuple[str, str], DeploymentPlan],
) -> tuple[DoorTarget, ...]:
    """Return targets, from model, deployment and weight of each."""
    models = {model.name: model for model in blueprint.spec.models}
    limit_themselves = one_way_deployments(blueprint.spec)
    divisor = math.gcd(*(weight for _, _, weight in weighed)) or 1
    return tuple(
        DoorTarget(
            cluster=planned[model, name].release,
            served_model=model,
            weight=weight // divisor,
            requests_at_once=None
            if (model, name) in limit_themselves
            else _requests_at_once(blueprint, models[model], name),
            context_length=_context_length(planned[model, name], models[model]),
        )
        for model, name, weight in weighed
    )


def _parts(spec: Spec, model: Model, target: FrontDoorTarget) -> dict[str, int]:
    """Return the accelerators of each deployment of a target."""
    names = (target.deployment,) if target.deployment else own_deployments(spec, model)
    return {each.name: accelerators(each) for each in model.deployments if each.name in names}


def _context_length(deployment: DeploymentPlan, model: Model) -> int:
    """Return the longest request that a deployment accepts, in tokens."""
    stated = [each.engine.max_model_len for each in deployment.workers if each.engine]
    entry = model.weights.entry
    return min((each for each in stated if each), default=entry.context_length if entry else 0)


def _requests_at_once(blueprint: Blueprint, model: Model, deployment: str) -> int | None:
    """Return the requests that all workers of a deployment answer at once within the objectives."""
    index = blueprint.spec.models.index(model)
    place = next(place for place, each in enumerate(model.deployments) if each.name == deployment)
    decoding = resolve(blueprint, index, place)[-1]
    workers = decoding.workers
    if model.makes_images:
        stated = workers.requests_at_once
        return None if stated is None else stated * workers.maximum
    return max(1, int(worker_load(decoding).requests * workers.maximum))


def _prices(model: Model, rates: Rates | None) -> DoorPrices:
    """Return the prices of a model. Without any, its requests cost nothing and only counts are limited."""
    if rates is None:
        return DoorPrices(0, 0)
    output = nano_per_token(rates.usd_per_million_output_tokens)
    return DoorPrices(nano_per_token(rates.usd_per_million_input_tokens), output, _image(model, output))


def _image(model: Model, output_token: int) -> int:
    """Return the price of the largest image that a model makes: batch counts the same tokens."""
    images = own_means(model).images
    if images is None:
        return 0
    columns, rows = -(-images.width // PIXEL_SIDE_PER_TOKEN), -(-images.height // PIXEL_SIDE_PER_TOKEN)
    return columns * rows * output_token


def nano_per_token(usd_per_million: float) -> int:
    """Return the price of a token in nano-dollars. The rules refuse prices that are no whole number."""
    return round(usd_per_million * NANO / MILLION)


def door_budgets(spec: Spec) -> Iterator[DoorBudget]:
    """Yield the budgets: those of the section, and the monthly budgets of the teams."""
    door = spec.front_door
    budgets = door.budgets if door else []
    limited = {each.team for each in budgets if each.team}
    monthly = {team.name: team.monthly_budget_usd for team in spec.teams}
    for team, usd in monthly.items():
        if team not in limited:
            yield DoorBudget("team", team, nano_per_month=_nano(usd))
    for each in budgets:
        scope, name = budget_scope(each)
        usd_per_month = each.usd_per_month if each.team is None else monthly[each.team]
        yield DoorBudget(
            scope=scope,
            name=name,
            nano_per_day=_nano(each.usd_per_day),
            nano_per_month=_nano(usd_per_month),
            requests_per_minute=each.requests_per_minute,
            tokens_per_minute=each.tokens_per_minute,
            enforce=each.enforce,
            requests_at_once=each.requests_at_once,
        )


def budget_scope(budget: FrontDoorBudget) -> tuple[BudgetScope, str]:
    """Return what a budget limits, and its name. The rules see to it that it is one thing."""
    scopes: dict[BudgetScope, str | None] = {
        "team": budget.team,
        "project": budget.project,
        "key": budget.key,
        "model": budget.model,
    }
    [(scope, name)] = [(scope, name) for scope, name in scopes.items() if name is not None]
    return scope, name


def _nano(usd: float | None) -> int | None:
    return None if usd is None else round(usd * NANO)


def _issuers(door: FrontDoor, host_name: str) -> Iterator[DoorIssuer]:
    identity = door.identity
    for issuer in identity.oidc:
        yield DoorIssuer(issuer.issuer, issuer.audience, issuer.team_claim)
    if identity.iam:
        audience = identity.iam.audience or f"https://{host_name}"
        for account in identity.iam.accounts:
            yield DoorIssuer(account.issuer, audience, _STS_CLAIM, is_sts=True)


def _key_sets(door: FrontDoor, host_name: str) -> Iterator[DoorKeySet]:
    """Yield the key sets of `_issuers`, in their order."""
    identity = door.identity
    for issuer in identity.oidc:
        yield DoorKeySet(issuer.issuer, issuer.audience, issuer.keys_url, issuer.keys)
    if identity.iam:
        audience = identity.iam.audience or f"https://{host_name}"
        for account in identity.iam.accounts:
            # Where AWS publishes them: GetOutboundWebIdentityFederationInfo, IAM API Reference.
            url = None if account.keys else f"{account.issuer.rstrip('/')}/.well-known/jwks.json"
            yield DoorKeySet(account.issuer, audience, url, account.keys)

"""Rules on the front door: its address, its models and its teams."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.sections.elasticity.rules import unknown_time_zone
from inference_blueprints.spec.types import (
    TARGET_GROUPS_OF_A_RULE,
    BatchQueue,
    Deployment,
    FrontDoorModel,
    FrontDoorTarget,
    Model,
    Spec,
    StreamingJob,
)
from inference_blueprints.spec.wording import Path, allowed, listing, quote, suggestion
from inference_contracts.errors import Finding
from inference_contracts.platform_keys import PLATFORM_CALLERS

_DOOR: Path = ("spec", "frontDoor")


@rule
def door_has_a_certificate(spec: Spec) -> Iterator[Finding]:
    """Check that the front door has a certificate and a domain: keys and tokens are secrets."""
    if spec.front_door is None:
        return
    for key, value in (("certificateArn", spec.network.certificate_arn), ("domain", spec.network.domain)):
        if value is None:
            message = (
                "is missing: callers of the front door send keys and tokens, so it answers over HTTPS only; "
                "set 'certificateArn' and 'domain'"
            )
            yield Finding(("spec", "network", key), message)


@rule
def door_has_an_address_of_its_own(spec: Spec) -> Iterator[Finding]:
    """Check that no model has the host name of the front door."""
    door = spec.front_door
    for index, model in usable(spec.models):
        if door and model.name == door.host:
            message = (
                f"got {quote(model.name)}, which is the host name of the front door; rename the model, or "
                "set another 'frontDoor.host'"
            )
            yield Finding(("spec", "models", index, "name"), message)


@rule
def rules_have_room_for_the_door(spec: Spec) -> Iterator[Finding]:
    """Check that a model's rule at the load balancer has a target group left for the front door."""
    for index, model in usable(spec.models):
        if spec.front_door and len(model.deployments) >= TARGET_GROUPS_OF_A_RULE:
            message = (
                f"got {len(model.deployments)} deployments; a rule of the load balancer has "
                f"{TARGET_GROUPS_OF_A_RULE} target groups, and the front door is one of them: have at most "
                f"{TARGET_GROUPS_OF_A_RULE - 1}"
            )
            yield Finding(("spec", "models", index, "deployments"), message)


@rule
def door_has_teams(spec: Spec) -> Iterator[Finding]:
    """Check that somebody may call the front door."""
    if spec.front_door and not spec.teams:
        message = "there are no teams, so nobody may call it; add a team to spec.teams"
        yield Finding(_DOOR, message)


@rule
def public_names_differ(spec: Spec) -> Iterator[Finding]:
    """Check that a name in requests leads to one model only."""
    own = {model.name for _, model in usable(spec.models)}
    taken: dict[str, str] = {}
    for path, public in _public_models(spec):
        names = {(*path, "name"): public.name}
        names |= {(*path, "aliases", place): alias for place, alias in usable(public.aliases)}
        behind = {target.model for _, target in usable(public.to)}
        for place, name in names.items():
            if name in taken:
                message = (
                    f"got {quote(name)}, which leads to {quote(taken[name])} already; a name leads to one "
                    "model, so remove it or rename it"
                )
                yield Finding(place, message)
            elif name in own - behind:
                message = (
                    f"got {quote(name)}, which is the name of another model of this file, and callers would "
                    f"not expect {listing(sorted(behind))}; choose another name"
                )
                yield Finding(place, message)
            taken.setdefault(name, public.name)


@rule
def targets_exist(spec: Spec) -> Iterator[Finding]:
    """Check that targets of the front door are models and deployments of the blueprint."""
    names = [model.name for model in spec.models]
    for path, _, target in _targets(spec):
        yield from _unknown("model", target.model, names, (*path, "model"))
        model = _model(spec, target.model)
        if model and target.deployment is not None:
            own = [each.name for each in model.deployments]
            yield from _unknown("deployment", target.deployment, own, (*path, "deployment"))


@rule
def targets_differ(spec: Spec) -> Iterator[Finding]:
    """Check that a public model names each deployment once: otherwise its share is not what is written."""
    for path, public in _public_models(spec):
        seen: dict[str, set[str | None]] = {}
        for place, target in usable(public.to):
            named = seen.setdefault(target.model, set())
            # Without a deployment, a target is all of them.
            if named and (target.deployment in named or None in (*named, target.deployment)):
                message = (
                    f"got {quote(target.deployment or target.model)} again, and a deployment has one share; "
                    "name each deployment once"
                )
                yield Finding((*path, "to", place), message)
            named.add(target.deployment)


@rule
def targets_have_a_share(spec: Spec) -> Iterator[Finding]:
    """Check that a public model has a target for its conversations."""
    for path, public in _public_models(spec):
        targets = [target for _, target in usable(public.to)]
        if len(targets) == len(public.to) and not any(target.weight for target in targets):
            message = (
                "got 'weight: 0' for each target, so no conversation has a place; give one of them a weight"
            )
            yield Finding((*path, "to"), message)


@rule
def targets_have_workers(spec: Spec) -> Iterator[Finding]:
    """Check that targets of the front door always have workers."""
    for path, _, target in _targets(spec):
        model = _model(spec, target.model)
        chosen = _chosen(model, target) if model else []
        if chosen and all(_may_be_empty(each) for each in chosen):
            message = (
                f"got {quote(target.deployment or target.model)}, whose workers the capacity shift may take "
                "away, so callers would wait for batch; name a deployment that keeps workers"
            )
            key = "model" if target.deployment is None else "deployment"
            yield Finding((*path, key), message)


@rule
def targets_answer_in_real_time(spec: Spec) -> Iterator[Finding]:
    """Check that no target is a deployment that a queue or a streaming job has for itself."""
    ways: list[BatchQueue | StreamingJob] = [job for _, job in usable(spec.streaming)]
    ways += [queue for _, queue in usable(spec.batch.queues if spec.batch else ())]
    for path, _, target in _targets(spec):
        model = _model(spec, target.model)
        named = {
            name: way.name for way in ways if way.model == target.model for _, name in usable(way.deployments)
        }
        every = {each.name for _, each in usable(model.deployments)} if model else set()
        if target.deployment in named and every - named.keys():
            message = (
                f"got {quote(target.deployment)}, which {quote(named[target.deployment])} has for itself "
                "under 'deployments', so it is not planned for requests in real time; name another, or "
                "remove it there"
            )
            yield Finding((*path, "deployment"), message)


@rule
def front_door_has_no_reranking_model(spec: Spec) -> Iterator[Finding]:
    """Check that no model scores texts: the front door could not bound what a request costs.

    vLLM reads the question once per text (documentation, "Pooling Models", re-rank API), so a short body can
    have more tokens than bytes.
    """
    if spec.front_door is None:
        return
    for index, model in usable(spec.models):
        if model.task == "rerank":
            message = (
                "got 'rerank' in a platform with a front door, which has no path for scores: the engine "
                "reads the question once per text, so the length of a body bounds no cost; serve it in a "
                "platform without a front door"
            )
            yield Finding(("spec", "models", index, "task"), message)


@rule
def targets_stand_for_each_other(spec: Spec) -> Iterator[Finding]:
    """Check that the targets of a public model answer the same requests at the same price."""
    for path, public in _public_models(spec):
        models = [
            (place, model) for place, target in usable(public.to) if (model := _model(spec, target.model))
        ]
        for place, model in models[1:]:
            first = models[0][1]
            here = (*path, "to", place, "model")
            if model.task != first.task:
                message = (
                    f"got {quote(model.name)} with 'task: {model.task}', and {quote(first.name)} has 'task: "
                    f"{first.task}', so a request fits only one of them; give each a public name of its own"
                )
                yield Finding(here, message)
            elif model.rates != first.rates:
                message = (
                    f"got {quote(model.name)}, whose 'rates' differ from those of {quote(first.name)}, so "
                    "the same request would have two prices; give both the same rates"
                )
                yield Finding(here, message)


@rule
def targets_take_the_same_requests(spec: Spec) -> Iterator[Finding]:
    """Warn of targets that take fewer requests than others of their public model."""
    for path, public in _public_models(spec):
        models = [
            (place, model) for place, target in usable(public.to) if (model := _model(spec, target.model))
        ]
        reading = [model.name for _, model in models if model.media]
        for place, model in models:
            here = (*path, "to", place, "model")
            if reading and not model.media:
                message = (
                    f"{quote(model.name)} reads only text, and {listing(dict.fromkeys(reading))} reads "
                    "images too: requests with images fail for the conversations that this target gets; "
                    "give 'media' to both, or a public name to each"
                )
                yield Finding(here, message, "warning")


@rule
def door_teams_exist(spec: Spec) -> Iterator[Finding]:
    """Check that teams that the front door names are in the blueprint."""
    if spec.front_door is None:
        return
    names = [team.name for team in spec.teams]
    for path, public in _public_models(spec):
        for place, team in usable(public.teams or ()):
            yield from _unknown("team", team, names, (*path, "teams", place))
    for index, budget in usable(spec.front_door.budgets):
        here = (*_DOOR, "budgets", index)
        if budget.team is not None:
            yield from _unknown("team", budget.team, names, (*here, "team"))
        if budget.project is not None:
            yield from _unknown("team", budget.project.split("/")[0], names, (*here, "project"))


@rule
def teams_have_a_model(spec: Spec) -> Iterator[Finding]:
    """Warn of a team that may use no model of the front door."""
    public = [each for _, each in _public_models(spec)]
    if not public or any(each.teams is None for each in public):
        return
    allowed_teams = {team for each in public for _, team in usable(each.teams or ())}
    for index, team in usable(spec.teams):
        if team.name not in allowed_teams:
            message = (
                f"no model of the front door has {quote(team.name)} among its 'teams', so its callers may "
                "use nothing there; add it to a model"
            )
            yield Finding(("spec", "teams", index, "name"), message, "warning")


@rule
def store_loss_is_bounded(spec: Spec) -> Iterator[Finding]:
    """Check that `admit` states how much may be admitted, and that nothing else states it."""
    door = spec.front_door
    if door is None:
        return
    path = (*_DOOR, "storeLossUsd")
    if door.on_store_loss == "admit" and door.store_loss_usd is None:
        message = (
            "is missing: with 'onStoreLoss: admit' requests are admitted that no budget counts; state the "
            "largest cost of them all"
        )
        yield Finding(path, message)
    if door.on_store_loss == "refuse" and door.store_loss_usd is not None:
        message = (
            f"got {door.store_loss_usd:.10g}, but with 'onStoreLoss: refuse' nothing is admitted; remove it, "
            "or set 'onStoreLoss: admit'"
        )
        yield Finding(path, message)


@rule
def door_has_a_time_zone(spec: Spec) -> Iterator[Finding]:
    """Check that the time zone of budgets is in the IANA database, if this machine has it."""
    if spec.front_door:
        yield from unknown_time_zone(spec.front_door.time_zone, (*_DOOR, "timeZone"))


@rule
def old_names_lead_around_the_door(spec: Spec) -> Iterator[Finding]:
    """Warn while the models answer at their own host names, without a key."""
    names = spec.front_door.old_host_names.models if spec.front_door else None
    if names:
        message = (
            f"until {names.until}, whoever reaches the load balancer calls the models at their own host "
            "names, without a key and outside every budget; remove it when all callers have moved"
        )
        yield Finding((*_DOOR, "oldHostNames", "models"), message, "warning")


@rule
def locked_records_can_be_removed(spec: Spec) -> Iterator[Finding]:
    """Check that nothing promises to delete records that nobody can delete."""
    door = spec.front_door
    if door and door.usage.object_lock == "compliance" and spec.environment.data_removal == "destroy":
        message = (
            f"got 'compliance', which keeps each record for {door.usage.retention_days} days whatever "
            "happens, but 'environment.dataRemoval: destroy' deletes the bucket; set 'governance' or "
            "'none', or 'dataRemoval: retain'"
        )
        yield Finding((*_DOOR, "usage", "objectLock"), message)


def _public_models(spec: Spec) -> Iterator[tuple[Path, FrontDoorModel]]:
    for index, public in usable(spec.front_door.models if spec.front_door else ()):
        yield (*_DOOR, "models", index), public


def _targets(spec: Spec) -> Iterator[tuple[Path, FrontDoorModel, FrontDoorTarget]]:
    for path, public in _public_models(spec):
        for place, target in usable(public.to):
            yield (*path, "to", place), public, target


def _behind(spec: Spec, public: FrontDoorModel) -> list[tuple[int, Model]]:
    """Return the models behind a public name, with the place of their target."""
    found = ((place, _model(spec, target.model)) for place, target in usable(public.to))
    return [(place, model) for place, model in found if model]


def _model(spec: Spec, name: str) -> Model | None:
    return next((model for _, model in usable(spec.models) if model.name == name), None)


def _chosen(model: Model, target: FrontDoorTarget) -> list[Deployment]:
    """Return the deployments of a target: the named one, else all."""
    return [each for _, each in usable(model.deployments) if target.deployment in (None, each.name)]


def _may_be_empty(deployment: Deployment) -> bool:
    return deployment.is_lent and not any(each.minimum for each in deployment.workers.values())


@rule
def names_are_not_those_of_the_platform(spec: Spec) -> Iterator[Finding]:
    """Check that no public name is one under which a part of the platform asks for its own models."""
    begins = [f"{each}:" for each in PLATFORM_CALLERS]
    for path, public in _public_models(spec):
        names = {(*path, "name"): public.name}
        names |= {(*path, "aliases", place): alias for place, alias in usable(public.aliases)}
        for place, name in names.items():
            if name.partition(":")[0] in PLATFORM_CALLERS and ":" in name:
                message = (
                    f"got {quote(name)}, but names that begin with {listing(begins)} are those of the "
                    "platform's own queues, streaming jobs and canary; choose another name"
                )
                yield Finding(place, message)


@rule
def keys_of_the_platform_have_budgets_of_keys(spec: Spec) -> Iterator[Finding]:
    """Warn of limits of each key where batch and streaming jobs have keys too."""
    callers = [*(["queues"] if spec.batch else []), *(["streaming jobs"] if spec.streaming else [])]
    for index, budget in usable(spec.front_door.budgets if spec.front_door else ()):
        if budget.key == "*" and callers:
            message = (
                f"got '*', and {' and '.join(callers)} call with keys too, which this budget limits as those "
                "of people; limit teams instead, or choose a limit that has room for them"
            )
            yield Finding((*_DOOR, "budgets", index, "key"), message, "warning")


@rule
def queues_are_open_to_all_teams(spec: Spec) -> Iterator[Finding]:
    """Warn of a team that may not call a model, but may run jobs with it."""
    for index, queue in usable(spec.batch.queues if spec.batch and spec.front_door else ()):
        names = [
            each
            for _, each in _public_models(spec)
            if any(to.model == queue.model for _, to in usable(each.to))
        ]
        if not names or any(each.teams is None for each in names):
            continue
        admitted = {team for each in names for _, team in usable(each.teams or ())}
        others = [team.name for _, team in usable(spec.teams) if team.name not in admitted]
        if others:
            message = (
                f"{listing(others)} may use no public name of {quote(queue.model)}, but 'teams' of a public "
                "name does not concern jobs: each team may run jobs in each queue; add the team to a name, "
                "or give the queue a model that every team may use"
            )
            yield Finding(("spec", "batch", "queues", index, "model"), message, "warning")


@rule
def old_host_names_end(spec: Spec) -> Iterator[Finding]:
    """Check that the time exists until which old host names lead to the models."""
    names = spec.front_door.old_host_names.models if spec.front_door else None
    if names is None or not isinstance(names.until, str):
        return
    try:
        datetime.fromisoformat(names.until)
    except ValueError:
        message = f"got {quote(names.until)}, which no calendar has; state a day of a month that has it"
        yield Finding((*_DOOR, "oldHostNames", "models", "until"), message)


def _unknown(noun: str, name: str, names: Collection[str], path: Path) -> Iterator[Finding]:
    """Yield a finding for a name that nothing has."""
    if name not in names:
        known = allowed(noun, names) if names else f"there are no {noun}s; add it to spec.{noun}s"
        yield Finding(path, f"got {quote(name)}, {known}{suggestion(name, names)}")

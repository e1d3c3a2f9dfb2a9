"""The front door: its size and price, its models, callers and budgets."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import counted, few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.signal_store import USD_PER_GB_HOUR, USD_PER_MILLION_UNITS
from inference_blueprints.report.pricing.ecs_price import task_usd_per_hour
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.front_door.sizing import door_size, door_store_use, ways_through_the_door
from inference_blueprints.spec.types import FrontDoor
from inference_catalog.door_loads import door_load
from inference_contracts.door_configuration import NANO, DoorBudget, DoorModel
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_MONTH, MIB_PER_GIB, MILLION, SECONDS_PER_HOUR

#: A serverless cache for Valkey is charged for at least 100 MB, and counters and reservations need less.
_STORE_GB = 0.1


@dataclass(frozen=True, slots=True)
class DoorTargetSummary:
    """A deployment that answers requests of a public model."""

    deployment: str
    """Its model and name."""
    share: float
    """Share of the conversations, from 0 to 1. With 0, only those for which the others have no room."""
    requests_at_once: int | None
    """Requests that its workers answer at once within the objectives. None if unknown: it has room always."""


@dataclass(frozen=True, slots=True)
class DoorModelSummary:
    """A model under its public name."""

    name: str
    aliases: tuple[str, ...]
    targets: tuple[DoorTargetSummary, ...]
    teams: tuple[str, ...] | None
    """`name`, `aliases`, `targets`, `teams`: Its names, its deployments, and who may use it; None for all."""
    priority: int
    context_length: int
    default_output_tokens: int
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    usd_per_image: float
    """`priority`, `context_length`, `default_output_tokens`, `usd_per_million_input_tokens`,
    `usd_per_million_output_tokens`, `usd_per_image`: As the policy process is told."""


@dataclass(frozen=True, slots=True)
class DoorBudgetSummary:
    """A limit."""

    scope: str
    name: str
    usd_per_day: float | None
    usd_per_month: float | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    requests_at_once: int | None
    enforce: str
    """`scope`, `name`, `usd_per_day`, `usd_per_month`, `requests_per_minute`, `tokens_per_minute`,
    `requests_at_once`, `enforce`: What is limited, the limits, and when they refuse. The monthly budgets of
    teams are among them."""


@dataclass(frozen=True, slots=True)
class DoorCallersSummary:
    """A way in which callers identify themselves."""

    way: str
    """``apiKeys``, ``iam`` or ``oidc``."""
    issuer: str
    audience: str
    """`issuer`, `audience`: What their tokens must have. Empty for API keys."""
    key_set: str
    """Address of the issuer's keys, or ``inline``."""
    team_claim: str
    """Claim that says which team a caller belongs to; for `iam`, its ARN. Empty for API keys: a key is of one
    team."""


@dataclass(frozen=True, slots=True)
class FrontDoorSummary:
    """The front door of a platform at the stated peaks of its models together."""

    address: str
    replicas: int
    vcpus: int
    memory_mib: int
    """`replicas`, `vcpus`, `memory_mib`: Replicas, and processors and memory of each."""
    place: str
    """Where they run: ``eks`` or ``ecs``."""
    requests_per_second: float
    chunks_per_second: float
    """`requests_per_second`, `chunks_per_second`: Requests, and chunks if each answer is streamed and each
    token is a chunk."""
    ways: tuple[str, ...]
    """Requests that pass through it: model, and ``real time``, a queue or a streaming job."""
    busy_vcpus: float
    """Processors that all replicas together keep busy (from measured costs)."""
    microseconds_per_request: float
    microseconds_per_chunk: float
    measured: str
    """`microseconds_per_request`, `microseconds_per_chunk`, `measured`: Processor time, and where it was "
    "measured."""
    open_requests: int
    """Requests that are open at once."""
    largest_body_mib: int
    """Largest request, in MiB."""
    store_units_per_second: float
    """Units (ECPU) of the store of budgets at the peak: an estimate."""
    reserved_requests_per_slot: float
    """Requests per second of one team that the store can reserve (estimate)."""
    usd_per_month: float | None
    """Price of the replicas; None on EKS, where they run on the system nodes."""
    store_usd_per_month: float
    """Price of the store with the stated peak all month (estimate)."""
    callers: tuple[DoorCallersSummary, ...]
    models: tuple[DoorModelSummary, ...]
    budgets: tuple[DoorBudgetSummary, ...]
    """`callers`, `models`, `budgets`: Who may call, what, and how much."""
    key_max_days: int | None
    key_rotation_hours: int | None
    """`key_max_days`, `key_rotation_hours`: Longest life of an API key, and hours for which the old secret of
    a rotated one is valid. None without API keys."""
    time_zone: str
    on_store_loss: str
    store_loss_usd: float | None
    prompts: str
    retention_days: int
    object_lock: str
    old_host_names: str
    """`time_zone`, `on_store_loss`, `store_loss_usd`, `prompts`, `retention_days`, `object_lock`,
    `old_host_names`: As the blueprint has them."""


def _summarise(basis: PlanBasis) -> FrontDoorSummary | None:
    """Return the front door; None without one."""
    door, plan = basis.spec.front_door, basis.plan.front_door
    if door is None or plan is None:
        return None
    configuration, load = plan.configuration, door_load()
    size = door_size(basis.spec, configuration.models)
    use = door_store_use(size, basis.spec)
    place = basis.spec.cluster.chosen
    hourly = plan.replicas * task_usd_per_hour(plan.vcpus, plan.memory_mib / MIB_PER_GIB)
    units = use.units_per_second * SECONDS_PER_HOUR * HOURS_PER_MONTH / MILLION
    keys = door.identity.api_keys
    return FrontDoorSummary(
        address=f"https://{plan.host_name}/v1",
        replicas=plan.replicas,
        vcpus=size.vcpus,
        memory_mib=plan.memory_mib,
        place=place,
        requests_per_second=size.requests_per_second,
        chunks_per_second=size.chunks_per_second,
        ways=tuple(f"{model.name}: {way.label}" for model, way in ways_through_the_door(basis.spec)),
        busy_vcpus=round(size.busy_vcpus, 3),
        microseconds_per_request=load.microseconds_per_request,
        microseconds_per_chunk=load.microseconds_per_chunk,
        measured=f"{load.date} on {load.machine}",
        open_requests=size.open_requests,
        largest_body_mib=plan.largest_body_bytes // (1024 * 1024),
        store_units_per_second=round(use.units_per_second, 1),
        reserved_requests_per_slot=round(use.reserved_requests_per_slot),
        usd_per_month=None if place == "eks" else round(hourly * HOURS_PER_MONTH, 2),
        store_usd_per_month=round(
            _STORE_GB * USD_PER_GB_HOUR * HOURS_PER_MONTH + units * USD_PER_MILLION_UNITS, 2
        ),
        callers=tuple(_callers(basis, door)),
        models=tuple(_model(basis, each) for each in configuration.public_models),
        budgets=tuple(map(_budget, configuration.budgets)),
        key_max_days=keys.max_days if keys else None,
        key_rotation_hours=keys.rotation_hours if keys else None,
        time_zone=door.time_zone,
        on_store_loss=door.on_store_loss,
        store_loss_usd=door.store_loss_usd,
        prompts=door.usage.prompts,
        retention_days=door.usage.retention_days,
        object_lock=door.usage.object_lock,
        old_host_names=_old_names(door),
    )


def _old_names(door: FrontDoor) -> str:
    """Return where the host names of the models lead."""
    models = door.old_host_names.models
    return "door" if models is None else f"models until {models.until}"


def _callers(basis: PlanBasis, door: FrontDoor) -> Iterator[DoorCallersSummary]:
    plan = basis.plan.front_door
    if door.identity.api_keys:
        yield DoorCallersSummary("apiKeys", "", "", "", "")
    for issuer, keys in zip(plan.configuration.issuers, plan.key_sets, strict=True) if plan else ():
        yield DoorCallersSummary(
            way="iam" if issuer.is_sts else "oidc",
            issuer=issuer.issuer,
            audience=issuer.audience,
            key_set=keys.url or "inline",
            team_claim=issuer.team_claim,
        )


def _model(basis: PlanBasis, model: DoorModel) -> DoorModelSummary:
    plan = basis.plan.front_door
    names = {each.name: f"{each.model}/{each.deployment}" for each in (plan.clusters if plan else ())}
    whole = sum(target.weight for target in model.targets)
    return DoorModelSummary(
        name=model.name,
        aliases=model.aliases,
        targets=tuple(
            DoorTargetSummary(names[each.cluster], each.weight / whole, each.requests_at_once)
            for each in model.targets
        ),
        teams=model.teams,
        priority=model.priority,
        context_length=model.context_length,
        default_output_tokens=model.default_output_tokens,
        usd_per_million_input_tokens=model.prices.input_token * MILLION / NANO,
        usd_per_million_output_tokens=model.prices.output_token * MILLION / NANO,
        usd_per_image=model.prices.image / NANO,
    )


def _budget(budget: DoorBudget) -> DoorBudgetSummary:
    return DoorBudgetSummary(
        scope=budget.scope,
        name=budget.name,
        usd_per_day=_usd(budget.nano_per_day),
        usd_per_month=_usd(budget.nano_per_month),
        requests_per_minute=budget.requests_per_minute,
        tokens_per_minute=budget.tokens_per_minute,
        requests_at_once=budget.requests_at_once,
        enforce=budget.enforce,
    )


def _usd(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO


_PLACES = {"eks": "pods on system nodes", "ecs": "AWS Fargate tasks"}


def front_door(summary: PlanSummary) -> TextTable:
    """Return the table of the front door, which has a row if the blueprint has one."""
    door = summary[FRONT_DOOR]
    return TextTable(
        "Front door",
        ("address",),
        (
            "replicas",
            "vCPUs per replica",
            "memory per replica, GiB",
            "requests per second at peak",
            "vCPUs used at peak by all",
            "largest request, MiB",
            "USD per month",
            "USD per month, store",
        ),
        ()
        if door is None
        else (
            (
                door.address,
                f"{door.replicas} {_PLACES[door.place]}",
                str(door.vcpus),
                f"{door.memory_mib / MIB_PER_GIB:g}",
                number(door.requests_per_second),
                f"{door.busy_vcpus:.2f}",
                str(door.largest_body_mib),
                "of the system nodes" if door.usd_per_month is None else usd(door.usd_per_month),
                usd(door.store_usd_per_month),
            ),
        ),
        () if door is None else tuple(_notes(door)),
    )


def _notes(door: FrontDoorSummary) -> Iterator[str]:
    yield (
        f"A request takes {door.microseconds_per_request:g} us of processor time, and a chunk "
        f"{door.microseconds_per_chunk:g} us (measured {door.measured}). At the peak there are at most "
        f"{number(door.chunks_per_second)} chunks per second, if each answer is streamed and each token is a "
        f"chunk, and {door.open_requests:,} open requests. Half of each processor is free, and a replica may "
        f"be lost. Through it pass {'; '.join(door.ways)}."
    )
    yield (
        "The store of budgets is ElastiCache Serverless for Valkey: an empty cache, and about "
        f"{number(door.store_units_per_second)} units (ECPU) per second at the stated peak all month. AWS "
        "does not publish how it counts scripts, so these are estimates. One team may make about "
        f"{door.reserved_requests_per_slot:,.0f} requests per second that are reserved before."
    )
    lost = (
        "are refused with 503"
        if door.store_loss_usd is None
        else f"are admitted up to {usd(door.store_loss_usd)} USD"
    )
    keys = (
        f"API keys live for at most {door.key_max_days} days, and the old secret of a rotated key for "
        f"{door.key_rotation_hours} hours. "
        if door.key_max_days
        else ""
    )
    yield (
        f"Days and months begin in {door.time_zone}. While the store does not answer, requests {lost}. {keys}"
        f"Usage records are kept for {door.retention_days} days; prompts are recorded "
        f"{'never' if door.prompts == 'never' else 'for keys that ask for it'}; Object Lock: "
        f"{door.object_lock}. Host names of the models lead to: {door.old_host_names}."
    )


def door_models(summary: PlanSummary) -> TextTable:
    """Return the table of the public models."""
    door = summary[FRONT_DOOR]
    return TextTable(
        "Models of the front door",
        ("name", "aliases", "answered by", "teams"),
        (
            "priority",
            "context, tokens",
            "longest answer if none is stated, tokens",
            "USD per million tokens in",
            "USD per million tokens out",
        ),
        tuple(map(_model_row, door.models)) if door else (),
        (
            "A conversation stays at one deployment. Those without a share get requests for which the others "
            "have no room; requests of the lowest priority are refused first.",
        ),
    )


def _model_row(model: DoorModelSummary) -> tuple[str, ...]:
    return (
        model.name,
        ", ".join(model.aliases) or "-",
        ", ".join(f"{each.deployment} {number(each.share, 3)}" for each in model.targets),
        "all" if model.teams is None else ", ".join(model.teams),
        str(model.priority),
        f"{model.context_length:,}",
        f"{model.default_output_tokens:,}",
        f"{model.usd_per_million_input_tokens:g}",
        f"{model.usd_per_million_output_tokens:g}"
        + (f" ({model.usd_per_image:g} per image)" if model.usd_per_image else ""),
    )


def door_callers(summary: PlanSummary) -> TextTable:
    """Return the table of ways in which callers identify themselves."""
    door = summary[FRONT_DOOR]
    return TextTable(
        "Callers of the front door",
        ("identity", "issuer", "audience", "keys of the issuer", "team"),
        (),
        tuple(
            (each.way, each.issuer or "-", each.audience or "-", each.key_set or "-", _team(each))
            for each in (door.callers if door else ())
        ),
        (),
    )


def _team(callers: DoorCallersSummary) -> str:
    if not callers.team_claim:
        return "of the key"
    return f"claim {callers.team_claim}" + (", among 'principals'" if callers.way == "iam" else "")


def door_budgets(summary: PlanSummary) -> TextTable:
    """Return the table of budgets."""
    door = summary[FRONT_DOOR]
    return TextTable(
        "Budgets of the front door",
        ("scope", "of"),
        (
            *("USD per day", "USD per month", "requests per minute", "tokens per minute"),
            *("requests at once", "enforced"),
        ),
        tuple(
            (
                each.scope,
                "each" if each.name == "*" else each.name,
                _limit(each.usd_per_day),
                _limit(each.usd_per_month),
                _limit(each.requests_per_minute),
                _limit(each.tokens_per_minute),
                _limit(each.requests_at_once),
                f"{each.enforce} the request" if each.enforce == "before" else "after it is passed",
            )
            for each in (door.budgets if door else ())
        ),
        ("'monthlyBudgetUsd' of a team is its limit of the month here, and of batch.",),
    )


def _limit(value: float | None) -> str:
    return "-" if value is None else f"{value:,.10g}"


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    door = summary[FRONT_DOOR]
    if door is None:
        return
    yield (
        Label.FRONT_DOOR,
        f"{door.address}: {counted(door.replicas, 'replica')} with {counted(door.vcpus, 'vCPU')}, "
        f"{few(each.name for each in door.models)}",
    )
    identities = dict.fromkeys(each.way for each in door.callers)
    yield Label.FRONT_DOOR, f"callers by {', '.join(identities)}; {counted(len(door.budgets), 'budget')}"


FRONT_DOOR = PlanSection(
    "frontDoor", _summarise, _in_short, (front_door, door_models, door_callers, door_budgets)
)

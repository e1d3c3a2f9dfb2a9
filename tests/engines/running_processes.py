"""Reads the processes of a run from the kernel, and how each differs from its process in the plan.

It knows nothing of the rules that make the differences: it compares the plan with ``/proc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from inference_blueprints.serving.types import Process
from inference_local.serving.vllm_cpu.argument_rules import planned_text

_NOT_SET, _LEFT_OUT, _SET = "not set", "left out", "set"
#: What every process of a run has and no plan states: where programs are, and the run that it belongs to.
_OF_EVERY_PROCESS = frozenset({"PATH", "INFERENCE_BLUEPRINTS_PROCESS_GROUP", "LC_CTYPE"})
#: The words before the first argument.
_MODEL = "MODEL"
#: Kubernetes replaces it by the value of a variable, in the arguments of a container.
_REFERENCE = re.compile(r"\$\((\w+)\)")
_EVENTS_PORT = re.compile(r"(?<=tcp://\*:)\d+")
#: The port of LMCache's server, with its quotes here, and that of the server's pages.
_LMCACHE_PORT = re.compile(r'(?<="lmcache.mp.port":)\d+|(?<="lmcache.mp.port":")\d+|(?<=--http-port )\d+')
_PORTS = {"--kv-events-config": _EVENTS_PORT, "--kv-transfer-config": _LMCACHE_PORT}


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A setting of a process that is not that of the plan, as the table of exceptions writes it."""

    setting: str
    planned: str
    here: str


@dataclass(frozen=True, slots=True)
class FoundProcess:
    """A process that runs."""

    words: tuple[str, ...]
    """Its arguments, without the program."""
    variables: Mapping[str, str]
    """The variables that it was started with, without those of every process."""

    @property
    def address(self) -> str:
        """The address that it was given."""
        return self.variables["DYN_SYSTEM_HOST"]

    def arguments_after(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments after those that the command of the plan begins with."""
        begins = tuple(command[1:])
        assert self.words[: len(begins)] == begins, f"{self.words} is no {command}"
        return self.words[len(begins) :]


def with_log(processes: Iterable[psutil.Process], log_file: Path, command: Sequence[str]) -> FoundProcess:
    """Return the process of a planned command whose output goes to a file, without its descendants.

    processes: All processes of the run.
    command: The command of the plan, which begins with a program.
    """
    found = {
        each.pid: each
        for each in processes
        if each.is_running()
        and each.status() != psutil.STATUS_ZOMBIE
        and _output(each) == log_file
        and tuple(each.cmdline()[1 : len(command)]) == tuple(command[1:])
    }
    oldest = [each for each in found.values() if each.ppid() not in found]
    assert len(oldest) == 1, f"{log_file}: {oldest} instead of one process"
    [process] = oldest
    variables = {name: value for name, value in process.environ().items() if name not in _OF_EVERY_PROCESS}
    return FoundProcess(tuple(process.cmdline()[1:]), variables)


def differences(planned: Process, found: FoundProcess, home: Path) -> set[Difference]:
    """Return every setting that a process has otherwise than the plan.

    home: The folder of its deployment, which the table of exceptions shows as ``…``.
    """
    before = {
        **_by_flag(planned.arguments),
        **{name: planned_text(value) for name, value in planned.environment.items()},
    }
    arguments = _by_flag(found.arguments_after(planned.command))
    shown = {
        name: _shown(_with_references(before.get(name, ""), value, found), found, home)
        for name, value in {**arguments, **found.variables}.items()
    }
    for flag, ports in _PORTS.items():
        if flag in before and flag in shown:
            shown[flag] = _relative_ports(ports, before[flag], shown[flag], found.address)
    return {
        Difference(name, before.get(name, _NOT_SET), shown.get(name, _LEFT_OUT))
        for name in {*before, *shown}
        if before.get(name) != shown.get(name)
    }


def _output(process: psutil.Process) -> Path:
    return Path(f"/proc/{process.pid}/fd/1").readlink()


def _by_flag(words: Iterable[str]) -> dict[str, str]:
    """Return the text after each argument. The last of two equal arguments counts, as for the programs."""
    found: dict[str, list[str]] = {}
    values = found[_MODEL] = list[str]()
    for word in words:
        if word.startswith("--"):
            found[word] = values = []
        else:
            values.append(word)
    return {flag: " ".join(each) or _SET for flag, each in found.items() if each or flag != _MODEL}


def _with_references(planned: str, value: str, found: FoundProcess) -> str:
    """Return a value with the references of the planned one in place of the values of their variables."""
    for name in _REFERENCE.findall(planned):
        if name in found.variables:
            value = value.replace(found.variables[name], f"$({name})")
    return value


def _shown(value: str, found: FoundProcess, home: Path) -> str:
    """Return a value without what differs from one worker and from one run to another."""
    value = re.sub(rf"{re.escape(str(home))}(?=/|$)", "…", value)
    if found.address.endswith(".1"):
        return value
    return re.sub(rf"{re.escape(found.address)}(?!\d)", f"{found.address.rpartition('.')[0]}.x", value)


def _relative_ports(ports: re.Pattern[str], planned: str, here: str, address: str) -> str:
    """Return a configuration with each port as the planned one and ten times the address."""
    wanted = iter(ports.findall(planned))

    def shown(own: re.Match[str]) -> str:
        port = next(wanted)
        assert int(own.group()) == int(port) + 10 * int(address.rpartition(".")[2]), here
        return f"{port}+10x"

    return ports.sub(shown, here)

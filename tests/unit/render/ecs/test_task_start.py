"""The document that a task reads: what is written here is what the program understands."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from inference_blueprints.render.ecs.task_environment import named_arguments, named_variables, port_positions
from inference_blueprints.resources import root
from inference_blueprints.serving.types import EnginePort
from inference_contracts.task_start import PORTS_OF_TASK, NeuronPart, TaskStart, port_reference
from inference_runtime import runtime_directory

sys.path.append(str(runtime_directory()))
from task_start.start_document import PORTS_PER_BLOCK, read_document

EXAMPLE = root() / "tests" / "unit" / "render" / "ecs" / "task_start.json"
DOCUMENT = TaskStart(
    network="host",
    ports={"system": 0, "kv-events": 1, "nixl": 2, "nixl-metrics": 3},
    address=("DYN_TCP_RPC_HOST",),
    files={"/tmp/task-files/router.json": "{}"},  # noqa: S108
    tag={"inference-blueprints/metrics": "system"},
    efa_interfaces=2,
    lock_folder="/node",
    lock_entries=("weights/model", "compiled/release"),
    neuron=NeuronPart(folder="/neuron", devices=4, of=16, cores=4, variable="NEURON_VISIBLE_DEVICES"),
)


def test_the_document_is_that_of_the_example() -> None:
    assert json.loads(DOCUMENT.as_text()) == json.loads(EXAMPLE.read_text(encoding="utf-8"))


def test_the_program_reads_it() -> None:
    read = read_document(DOCUMENT.as_text())
    assert read.network == "host"
    assert read.ports == DOCUMENT.ports
    assert read.interfaces == 2
    assert read.entries == DOCUMENT.lock_entries
    assert read.neuron is not None
    assert asdict(read.neuron) == asdict(DOCUMENT.neuron or read.neuron) | {"folder": Path("/neuron")}
    assert read_document(TaskStart(network="awsvpc").as_text()).ports == {}


def test_both_sides_have_blocks_of_one_size() -> None:
    assert PORTS_PER_BLOCK == PORTS_OF_TASK


_EVENTS = EnginePort("kv-events", 20080, argument="kv-events-config", count=8)
_NIXL = EnginePort("nixl", 5600, variable="VLLM_NIXL_SIDE_CHANNEL_PORT")


def test_ports_in_a_row_have_positions_in_a_row() -> None:
    assert port_positions([_EVENTS, _NIXL]) == {"kv-events": 0, "nixl": 8}
    with pytest.raises(ValueError, match="needs 33 ports"):
        port_positions([EnginePort("many", 20080, count=33)])


def test_only_the_number_of_the_port_is_replaced() -> None:
    arguments = ("--seed", "20080", "--kv-events-config", '{"endpoint":"tcp://*:20080","x":120080}')
    assert named_arguments(arguments, [_EVENTS]) == (
        *("--seed", "20080", "--kv-events-config"),
        f'{{"endpoint":"tcp://*:{port_reference("kv-events")}","x":120080}}',
    )
    assert named_variables([_EVENTS, _NIXL]) == {"VLLM_NIXL_SIDE_CHANNEL_PORT": "$(port:nixl)"}


@pytest.mark.parametrize(
    "arguments", [(), ("--kv-events-config", "{}"), ("--kv-events-config", "20080 20080")]
)
def test_a_port_that_is_not_where_it_should_be_is_an_error(arguments: tuple[str, ...]) -> None:
    """Two workers of a host would take the same port."""
    with pytest.raises(ValueError, match="exactly once"):
        named_arguments(arguments, [_EVENTS])

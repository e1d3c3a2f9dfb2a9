"""Runs distributed maps as Step Functions does.

The emulator does not evaluate JSONata in a distributed map's item reader, item selector and concurrency
limit,
ignores UpdateMapRun, and does not apply a map's JSONata output
(https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html).
"""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ministack.services import stepfunctions

from inference_local.emulator.patches.task_tokens import demand_small

# Threads per map: the emulator's limit for states without one.
_MAX_CHILDREN = 64
_LOOK_SECONDS = 0.5

_run_plain = stepfunctions._run_distributed_map
_run_sub_machine = stepfunctions._run_sub_machine
_changed = threading.Condition()
_running: dict[str, int] = defaultdict(int)
_limits: dict[str, int] = {}


def apply() -> None:
    """Apply the patch."""
    stepfunctions._run_distributed_map = _run_distributed_map
    stepfunctions._run_sub_machine = _run_gated


def _run_distributed_map(state: Mapping[str, Any], raw_input: Any, *others: Any) -> Any:
    """Evaluate JSONata, pass plain items to the emulator, and apply the output."""
    _, iterator, execution, context = others
    if stepfunctions._state_query_language(state, context) != "JSONata":
        return _run_plain(state, raw_input, *others)
    plain = {key: value for key, value in copy.deepcopy(dict(state)).items() if key not in _EVALUATED}
    plain.update(
        {
            key: stepfunctions._apply_jsonata_template(state[key], raw_input, context)
            for key in ("ToleratedFailurePercentage", "ToleratedFailureCount")
            if key in state
        }
    )
    limit = int(stepfunctions._apply_jsonata_template(state.get("MaxConcurrency", 0), raw_input, context))
    plain |= {"ItemsPath": "$", "MaxConcurrency": _MAX_CHILDREN}
    items = _selected(state, _items(state, raw_input, context), raw_input, context)
    _limits[f"{execution['executionArn']}/{state.get('Label')}"] = limit
    result, _ = _run_plain(plain, items, items, iterator, execution, context)
    demand_small(result, str(state.get("Label") or "map"))
    stepfunctions._apply_state_assign(state, raw_input, context, result=result)
    output = stepfunctions._apply_jsonata_output(state, raw_input, context, result=result, default=result)
    return output, stepfunctions._next_or_end(state)


_EVALUATED = ("Assign", "ItemReader", "Items", "ItemSelector", "MaxConcurrency", "Output")


def _items(state: Mapping[str, Any], raw_input: Any, context: Any) -> list[Any]:
    """Return the items of a map."""
    reader = state.get("ItemReader")
    if reader is None:
        items = stepfunctions._jsonata_state_field(state, "Items", "array", raw_input, context)
    else:
        arguments = stepfunctions._apply_jsonata_template(reader["Arguments"], raw_input, context)
        items = stepfunctions._read_map_items({**reader, "Arguments": arguments}, raw_input, context)
    return list(items)


def _selected(state: Mapping[str, Any], items: list[Any], raw_input: Any, context: Any) -> list[Any]:
    """Return the input of each child."""
    selector = state.get("ItemSelector")
    if selector is None:
        return items
    return [
        stepfunctions._apply_jsonata_template(
            selector, raw_input, {**context, "Map": {"Item": {"Index": index, "Value": item}}}
        )
        for index, item in enumerate(items)
    ]


def _run_gated(states: Any, start: Any, given: Any, execution: Any, context: Any) -> Any:
    """Run a child when its map run is below its current limit."""
    name = execution.get("mapRunArn")
    run = stepfunctions._map_runs.get(name) if name else None
    if run is None:
        return _run_sub_machine(states, start, given, execution, context)
    label = name.split("/")[-1].split(":")[0]
    with _changed:
        # The emulator got another limit. From the first child on, the run shows the limit of the state.
        limit = _limits.pop(f"{run['executionArn']}/{label}", None)
        if limit is not None:
            run["maxConcurrency"] = limit
        while run["maxConcurrency"] and _running[name] >= run["maxConcurrency"]:
            _changed.wait(_LOOK_SECONDS)
        _running[name] += 1
    try:
        return _run_sub_machine(states, start, given, execution, context)
    finally:
        with _changed:
            _running[name] -= 1
            _changed.notify_all()

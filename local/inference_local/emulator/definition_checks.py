"""Decide from the definition of a state machine whether Step Functions refuses it.

The rows are in `definition_refusals.py`. Each check returns what to fill into the words of its row, and None
if the row does not apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from inference_local.emulator.refusal_checks import Values
from inference_local.emulator.refusals import Check
from inference_local.emulator.request_parameters import SERVICES, service_model

State = Mapping[str, Any]
_TYPES: Final = ("Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map")
#: AWS Step Functions Developer Guide, transforming data with JSONata: fields of states in JSONPath only.
_OF_JSONPATH: Final = ("InputPath", "Parameters", "ResultPath", "ResultSelector", "OutputPath", "ItemsPath")
_COMMON: Final = frozenset(
    ["Type", "Comment", "QueryLanguage", "InputPath", "OutputPath", "Output", "Assign"]
)
_NEXT: Final = frozenset(["Next", "End"])
_RESULT: Final = frozenset(["Parameters", "ResultSelector", "ResultPath", "Retry", "Catch"])
#: Amazon States Language specification: the fields of each type of state.
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "Task": _NEXT
    | _RESULT
    | {"Resource", "Arguments", "Credentials", "TimeoutSeconds", "TimeoutSecondsPath"}
    | {"HeartbeatSeconds", "HeartbeatSecondsPath"},
    "Pass": _NEXT | {"Result", "ResultPath", "Parameters"},
    "Wait": _NEXT | {"Seconds", "SecondsPath", "Timestamp", "TimestampPath"},
    "Choice": frozenset(["Choices", "Default"]),
    "Succeed": frozenset(),
    "Fail": frozenset(["Error", "ErrorPath", "Cause", "CausePath"]),
    "Parallel": _NEXT | _RESULT | {"Branches", "Arguments"},
    "Map": _NEXT
    | _RESULT
    | {"ItemProcessor", "Iterator", "Items", "ItemsPath", "ItemSelector", "ItemReader", "ItemBatcher"}
    | {"ResultWriter", "MaxConcurrency", "MaxConcurrencyPath", "Label", "ToleratedFailurePercentage"}
    | {"ToleratedFailurePercentagePath", "ToleratedFailureCount", "ToleratedFailureCountPath"},
}
_LONGEST_STATE: Final = 80
_LONGEST_LABEL: Final = 40
#: Step Functions Developer Guide, error handling: bounds of a retrier.
_MOST_ATTEMPTS: Final = 99_999_999
_LONGEST_DELAY: Final = 31_622_400
#: Step Functions Developer Guide, integrating optimized services: actions of the services that we call.
_ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "lambda": frozenset(["invoke"]),
    "sqs": frozenset(["sendMessage"]),
    "sns": frozenset(["publish"]),
    "events": frozenset(["putEvents"]),
    "dynamodb": frozenset(["getItem", "putItem", "updateItem", "deleteItem"]),
    "states": frozenset(["startExecution"]),
    "ecs": frozenset(["runTask"]),
}


def _read(given: Values) -> Any:
    """Return the definition of a call or of a resource; None without one, and of one that is no JSON."""
    found = given.get("definition") or given.get("DefinitionString") or given.get("Definition")
    try:
        return json.loads(found) if isinstance(found, str) else found
    except ValueError:
        return None


def _machines(machine: Any, place: str = "") -> Iterator[tuple[str, State]]:
    """Yield a machine, and those in its states, each with its place in the definition."""
    if not isinstance(machine, Mapping):
        return
    yield place, machine
    for name, state in _states(machine).items():
        below = f"{place}/States/{name}"
        for key in ("ItemProcessor", "Iterator"):
            yield from _machines(state.get(key), f"{below}/{key}")
        for index, branch in enumerate(state.get("Branches") or ()):
            yield from _machines(branch, f"{below}/Branches[{index}]")


def _states(machine: State) -> Mapping[str, State]:
    found = machine.get("States")
    return {name: each for name, each in found.items() if isinstance(each, Mapping)} if found else {}


def _all_states(given: Values) -> Iterator[tuple[str, str, State]]:
    """Yield the place, the name and the fields of each state."""
    for place, machine in _machines(_read(given)):
        for name, state in _states(machine).items():
            yield f"{place}/States/{name}", name, state


def _targets(state: State) -> Iterator[tuple[str, str]]:
    """Yield the field and the name of each state that may follow a state."""
    for field in ("Next", "Default"):
        if field in state:
            yield field, state[field]
    for field in ("Choices", "Catch"):
        for index, each in enumerate(state.get(field) or ()):
            if "Next" in each:
                yield f"{field}[{index}]/Next", each["Next"]


def no_json(given: Values) -> Values | None:
    found = given.get("definition") or given.get("DefinitionString")
    if not isinstance(found, str):
        return None
    try:
        read = json.loads(found)
    except ValueError as error:
        return {"found": error}
    return None if isinstance(read, dict) else {"found": "Definition must be a valid JSON object"}


def missing_fields(given: Values) -> Values | None:
    for place, machine in _machines(_read(given)):
        if missing := [name for name in ("States", "StartAt") if not machine.get(name)]:
            return {"fields": ", ".join(missing), "place": place or "/"}
    return None


def missing_target(given: Values) -> Values | None:
    for place, machine in _machines(_read(given)):
        states = _states(machine)
        begin = machine.get("StartAt")
        if states and begin and begin not in states:
            return {"state": begin, "place": f"{place}/StartAt"}
        for name, state in states.items():
            for field, target in _targets(state):
                if target not in states:
                    return {"state": target, "place": f"{place}/States/{name}/{field}"}
    return None


def not_reachable(given: Values) -> Values | None:
    for place, machine in _machines(_read(given)):
        states = _states(machine)
        seen: set[str] = set()
        waiting = [machine.get("StartAt")]
        while waiting:
            name = waiting.pop()
            if isinstance(name, str) and name in states and name not in seen:
                seen.add(name)
                waiting += [target for _, target in _targets(states[name])]
        if left := [name for name in states if name not in seen]:
            return {"state": left[0], "place": f"{place}/States/{left[0]}"}
    return None


def unknown_type(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        if state.get("Type") not in _TYPES:
            return {"types": ", ".join(_TYPES), "place": f"{place}/Type"}
    return None


def other_language(given: Values) -> Values | None:
    if (_read(given) or {}).get("QueryLanguage") != "JSONata":
        return None
    for place, _, state in _all_states(given):
        if state.get("QueryLanguage") == "JSONPath":
            return {"place": place}
    return None


def fields_of_jsonpath(given: Values) -> Values | None:
    whole = (_read(given) or {}).get("QueryLanguage")
    for place, _, state in _all_states(given):
        if state.get("QueryLanguage", whole) == "JSONata":
            for field in _OF_JSONPATH:
                if field in state:
                    return {"field": field, "place": place}
    return None


def unknown_field(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        known = _FIELDS.get(str(state.get("Type")))
        if known is not None and (others := sorted(state.keys() - known - _COMMON)):
            return {"field": others[0], "place": place}
    return None


def ends_and_goes_on(given: Values) -> Values | None:
    """States other than the last ones, and choices, either end or go on."""
    for place, _, state in _all_states(given):
        if state.get("Type") in ("Task", "Wait", "Pass", "Parallel", "Map") and (
            ("Next" in state) == bool(state.get("End"))
        ):
            return {"place": place}
    return None


def express_token(given: Values) -> Values | None:
    if "EXPRESS" not in (given.get("type"), given.get("StateMachineType")):
        return None
    for place, _, state in _all_states(given):
        if str(state.get("Resource") or "").endswith(".waitForTaskToken"):
            return {"place": f"{place}/Resource"}
    return None


def unknown_resource(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        resource = str(state.get("Resource") or "")
        if state.get("Type") == "Task" and not _is_known(resource):
            return {"resource": resource, "place": f"{place}/Resource"}
    return None


def _is_known(resource: str) -> bool:
    """Return whether a task has a resource that exists, as far as we know the services."""
    found = re.fullmatch(r"arn:aws[a-z-]*:states:[^:]*:[^:]*:(?P<rest>.+)", resource)
    if found is None:
        return resource.startswith(("arn:", "$")) or "{%" in resource
    service, _, action = found["rest"].partition(":")
    if service == "aws-sdk":
        service, _, action = action.partition(":")
        name = {"sfn": "stepfunctions"}.get(service, service)
        operation = action.partition(".")[0]
        known = service_model(name).operation_names if name in SERVICES else None
        return known is None or (operation[:1].upper() + operation[1:] in known and operation[:1].islower())
    actions = _ACTIONS.get(service)
    return actions is None or re.split(r"[.:]", action)[0] in actions


def long_name(given: Values) -> Values | None:
    for place, name, _ in _all_states(given):
        if len(name) > _LONGEST_STATE:
            return {"place": place}
    return None


def doubled_name(given: Values) -> Values | None:
    seen: set[str] = set()
    for place, name, _ in _all_states(given):
        if name in seen:
            return {"place": place}
        seen.add(name)
    return None


def wrong_label(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        label = state.get("Label")
        if label is not None and (not 1 <= len(label) <= _LONGEST_LABEL or _SPECIAL.search(label)):
            return {"place": f"{place}/Label"}
    return None


#: Step Functions API Reference, CreateStateMachine, name: characters that no name has.
_SPECIAL: Final = re.compile('[\\s<>{}\\[\\]?*"#%\\\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]')


def all_errors_first(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        for field in ("Retry", "Catch"):
            rows = list(state.get(field) or ())
            for index, each in enumerate(rows):
                errors = each.get("ErrorEquals") or ()
                if "States.ALL" in errors and (len(errors) > 1 or index < len(rows) - 1):
                    return {"place": f"{place}/{field}[{index}]/ErrorEquals"}
    return None


def wrong_retrier(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        for index, each in enumerate(state.get("Retry") or ()):
            interval, delay = each.get("IntervalSeconds", 1), each.get("MaxDelaySeconds")
            fits = (
                1 <= interval <= _MOST_ATTEMPTS
                and 0 <= each.get("MaxAttempts", 3) <= _MOST_ATTEMPTS
                and each.get("BackoffRate", 2) >= 1
                and (delay is None or interval < delay < _LONGEST_DELAY)
                and each.get("JitterStrategy", "NONE") in ("NONE", "FULL")
            )
            if not fits:
                return {"place": f"{place}/Retry[{index}]"}
    return None


def long_heartbeat(given: Values) -> Values | None:
    for place, _, state in _all_states(given):
        heartbeat, timeout = state.get("HeartbeatSeconds"), state.get("TimeoutSeconds", _MOST_ATTEMPTS)
        if isinstance(heartbeat, int) and isinstance(timeout, int) and not 0 < heartbeat < timeout:
            return {"place": f"{place}/HeartbeatSeconds"}
    return None


def wrong_name(given: Values) -> Values | None:
    name = given.get("name") or given.get("StateMachineName")
    return {"name": name} if name and _SPECIAL.search(str(name)) else None


def _logs(given: Values) -> tuple[str, list[str]]:
    """Return the level and the destinations of the log of a machine."""
    found = given.get("loggingConfiguration") or given.get("LoggingConfiguration") or {}
    plain = {key[0].lower() + key[1:]: value for key, value in found.items()}
    arns = []
    for each in plain.get("destinations") or ():
        group = each.get("cloudWatchLogsLogGroup") or each.get("CloudWatchLogsLogGroup") or {}
        arns.append(str(group.get("logGroupArn") or group.get("LogGroupArn") or ""))
    return str(plain.get("level") or "OFF"), arns


def no_destination(given: Values) -> Values | None:
    level, destinations = _logs(given)
    return {} if len(destinations) > 1 or (level != "OFF" and not destinations) else None


def wrong_destination(given: Values) -> Values | None:
    return next(({"arn": arn} for arn in _logs(given)[1] if not arn.endswith(":*")), None)


def wrong_input(name: str) -> Check:
    def check(given: Values) -> Values | None:
        try:
            json.loads(given.get(name) or "{}")
        except ValueError as error:
            return {"found": error}
        return None

    return check

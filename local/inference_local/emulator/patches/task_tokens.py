"""Ends tasks that wait for a token if heartbeats are missed or the execution is stopped.

The emulator waits forever and continues to accept heartbeats. In a stopped execution it retries tasks, and an
error changes the execution's status to failed
(https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-wait-token).
It takes results of any size, and answers each token that it does not have in the same way.
"""

from __future__ import annotations

import contextvars
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from ministack.core.responses import error_response_json
from ministack.services import stepfunctions

from inference_local.emulator.refusals import DATA_LIMIT, TASK_ENDED, TOKEN_UNKNOWN

_LOOK_SECONDS = 0.25
# This is not a Step Functions error, so no retrier or catcher handles it.
_STOPPED = "ExecutionStopped"
_STOPPED_CAUSE = "The execution was stopped."
#: AWS Step Functions Developer Guide, quotas of executions: 256 KiB of input or result as UTF-8.
_LARGEST_RESULT: Final = 262_144
#: Form of the emulator's tokens.
_TOKEN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_invoke_plain = stepfunctions._invoke_with_callback
_execute_task = stepfunctions._execute_task
_invoke_resource = stepfunctions._invoke_resource
_fail_execution = stepfunctions._fail_execution
_error_matches = stepfunctions._error_matches
_execution: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar(
    "execution", default=None
)


def apply() -> None:
    """Apply the patch."""
    stepfunctions._error_matches = _matches
    stepfunctions._execute_task = _execute
    stepfunctions._fail_execution = _fail
    stepfunctions._invoke_with_callback = _invoke
    stepfunctions._invoke_resource = _invoke_limited
    stepfunctions._send_task_success = _of_waiting_tasks(stepfunctions._send_task_success)
    stepfunctions._send_task_failure = _of_waiting_tasks(stepfunctions._send_task_failure)
    stepfunctions._send_task_heartbeat = _of_waiting_tasks(stepfunctions._send_task_heartbeat)


def demand_small(result: Any, name: str) -> None:
    """Fail a state whose result is larger than Step Functions takes.

    name: Service or state that returned it.
    """
    if len(json.dumps(result, ensure_ascii=False, default=str).encode()) > _LARGEST_RESULT:
        raise stepfunctions._ExecutionError(DATA_LIMIT.code, str(DATA_LIMIT.error(name=name)))


def _invoke_limited(resource: str, *arguments: Any, **names: Any) -> Any:
    """Invoke a task, and refuse a result that is too large."""
    result = _invoke_resource(resource, *arguments, **names)
    demand_small(result, resource.partition(":::")[2].partition(":")[0] or resource)
    return result


def _of_waiting_tasks(plain: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a handler that answers the tokens of tasks that have ended as Step Functions does."""

    def handle(data: Mapping[str, Any]) -> Any:
        token = str(data.get("taskToken") or "")
        if token in stepfunctions._task_tokens:
            return plain(data)
        error = (TASK_ENDED if _TOKEN.fullmatch(token) else TOKEN_UNKNOWN).error()
        return error_response_json(error.code, str(error), 400)

    return handle


def _execute(state: Any, raw_input: Any, execution: Any, context: Any) -> Any:
    """Execute a task and remember its execution."""
    token = _execution.set(execution)
    try:
        return _execute_task(state, raw_input, execution, context)
    finally:
        _execution.reset(token)


def _matches(error_equals: Any, error: str) -> bool:
    """Return whether a retrier or a catcher matches an error."""
    return error != _STOPPED and bool(_error_matches(error_equals, error))


def _fail(execution: Any, error: str, cause: str) -> None:
    """Fail an execution, unless it was stopped."""
    if execution["status"] != "ABORTED":
        _fail_execution(execution, error, cause)


def _invoke(resource: str, given: Any, token: str, state: Mapping[str, Any]) -> Any:
    """Invoke a task and watch it while it waits. Do not invoke tasks of stopped executions."""
    if not _is_running():
        raise stepfunctions._ExecutionError(_STOPPED, _STOPPED_CAUSE)
    ended = threading.Event()
    watch = contextvars.copy_context()
    watcher = threading.Thread(
        target=watch.run, args=(_watch, token, state.get("HeartbeatSeconds"), ended), daemon=True
    )
    watcher.start()
    try:
        return _invoke_plain(resource, given, token, state)
    finally:
        ended.set()


def _watch(token: str, heartbeat_seconds: float | None, ended: threading.Event) -> None:
    """End a task whose execution was stopped or that sends no heartbeats."""
    began = time.time()
    while not ended.wait(_LOOK_SECONDS):
        waiting = stepfunctions._task_tokens.get(token)
        if waiting is None:
            continue
        beat = waiting["heartbeat"]
        last = max(began, datetime.fromisoformat(beat).timestamp()) if beat else began
        if not _is_running():
            error = {"Error": _STOPPED, "Cause": _STOPPED_CAUSE}
        elif heartbeat_seconds and time.time() - last > float(heartbeat_seconds):
            error = {"Error": "States.HeartbeatTimeout", "Cause": ""}
        else:
            continue
        waiting["error"] = error
        waiting["event"].set()
        return


def _is_running() -> bool:
    """Return whether the execution of this task and its parent execution are running."""
    execution = _execution.get()
    if execution is None:
        return True
    run = stepfunctions._map_runs.get(execution.get("mapRunArn", ""))
    parent = stepfunctions._executions.get(run["executionArn"]) if run else None
    return execution["status"] == "RUNNING" and (parent is None or parent["status"] == "RUNNING")

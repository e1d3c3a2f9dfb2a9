"""Ends tasks that wait for a token if heartbeats are missed or the execution is stopped.

The emulator waits forever and continues to accept heartbeats. In a stopped execution it retries tasks, and an
error changes the execution's status to failed
(https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-wait-token).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ministack.services import stepfunctions

_LOOK_SECONDS = 0.25
# This is not a Step Functions error, so no retrier or catcher handles it.
_STOPPED = "ExecutionStopped"
_STOPPED_CAUSE = "The execution was stopped."

_invoke_plain = stepfunctions._invoke_with_callback
_execute_task = stepfunctions._execute_task
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

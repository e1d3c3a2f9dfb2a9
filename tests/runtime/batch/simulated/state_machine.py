"""Step Functions as a discrete-event simulation: executes a definition against a clock and account quotas.

It knows the states, fields and errors that the state machine of batch uses, as the Amazon States Language
(https://states-language.net) and the developer guide of Step Functions describe them. Any other state or
field is an error. What a task does is the caller's: functions, and workers behind a queue.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from tests.runtime.batch.simulated.error_matching import catcher, matching
from tests.runtime.batch.simulated.expressions import evaluate

Process = Generator[simpy.Event, Any, Any]
#: Events that a task adds to the history for each attempt: scheduled, started, submitted, and its end.
_EVENTS_PER_ATTEMPT = 4
#: Events of entering and leaving a state.
_EVENTS_PER_STATE = 2
#: Events of the start and the end of an execution (Step Functions API Reference, HistoryEvent).
_EVENTS_PER_EXECUTION = 2
_CALL = "arn:aws:states:::lambda:invoke"
_CALL_AND_WAIT = "arn:aws:states:::lambda:invoke.waitForTaskToken"
_SEND_AND_WAIT = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
_KNOWN_FIELDS = {
    *("Type", "Next", "End", "Assign", "Output", "Choices", "Default", "Resource", "Arguments", "Retry"),
    *("HeartbeatSeconds", "Label", "ItemReader", "ItemSelector", "ItemProcessor", "MaxConcurrency"),
    *("ToleratedFailurePercentage", "Catch"),
}


class TaskError(Exception):
    """An error of a state, by its name in the definition's retries."""

    def __init__(self, name: str, cause: str = "") -> None:
        super().__init__(f"{name}: {cause}")
        self.name = name


class StoppedError(Exception):
    """StopExecution was called."""


@dataclass(frozen=True)
class Limits:
    """Quotas that an execution meets."""

    history_events: int
    """Events of one execution."""
    child_starts_per_second: float
    """Standard child executions that one map run starts."""


@dataclass
class Outside:
    """What the machine works with."""

    call: Callable[[str, Any], Process]
    """Calls a function with a payload. A process that returns its result, or raises `TaskError`."""
    send: Callable[[str, Any], None]
    """Takes the message of a task that waits for its token. Returns at once."""
    read: Callable[[str], Sequence[Any]]
    """Returns the items of a map's object, by its key."""


@dataclass
class Waiting:
    """A task that waits for its token."""

    answer: simpy.Event
    beat: simpy.Event


@dataclass
class MapRun:
    """A running map."""

    label: str
    concurrency: int
    """Child executions that run at the same time. UpdateMapRun changes it."""
    running: int = 0
    changed: list[simpy.Event] = field(default_factory=list)

    def change(self) -> None:
        waiting, self.changed = self.changed, []
        for each in waiting:
            each.succeed()


@dataclass
class Execution:
    """An execution, or a child execution."""

    name: str
    input: Any
    status: str = "RUNNING"
    """As DescribeExecution shows it."""
    output: Any = None
    error: str = ""
    started_at: float = 0.0
    ended_at: float | None = None
    events: int = 0
    map_runs: list[MapRun] = field(default_factory=list)
    process: simpy.Process | None = None
    visited: list[str] = field(default_factory=list)


class Machine:
    """A state machine.

    ended: Called with each execution that has ended, but not with child executions.
    chance: Random numbers of the retries' jitter.
    """

    def __init__(
        self,
        env: simpy.Environment,
        definition: Mapping[str, Any],
        outside: Outside,
        *,
        limits: Limits,
        ended: Callable[[Execution], None] = lambda _: None,
        chance: random.Random | None = None,
    ) -> None:
        self._env = env
        self._definition = definition
        self._outside = outside
        self._limits = limits
        self._ended = ended
        self._chance = chance or random.Random(1)  # noqa: S311 - no secret
        self._tokens: dict[str, Waiting] = {}
        self._numbers = itertools.count(1)
        self.executions: dict[str, Execution] = {}
        self.most_events = 0

    def start(self, name: str, given: Any) -> bool:
        """Start an execution, and return whether its name was free."""
        if name in self.executions:
            return False
        execution = Execution(name, given, started_at=self._env.now)
        self.executions[name] = execution
        execution.process = self._env.process(self._run(execution))
        return True

    def stop(self, name: str) -> None:
        """Stop an execution if it runs."""
        execution = self.executions[name]
        if execution.status == "RUNNING" and execution.process is not None:
            execution.process.interrupt(StoppedError())

    def succeed(self, token: str, output: Any) -> bool:
        """Answer a token, and return whether a task waited for it."""
        waiting = self._tokens.pop(token, None)
        if waiting is not None:
            waiting.answer.succeed(output)
        return waiting is not None

    def fail(self, token: str, error: str) -> bool:
        waiting = self._tokens.pop(token, None)
        if waiting is not None:
            waiting.answer.succeed(TaskError(error))
        return waiting is not None

    def beat(self, token: str) -> bool:
        """Take a heartbeat, and return whether a task waits for the token."""
        waiting = self._tokens.get(token)
        if waiting is not None:
            waiting.beat.succeed()
            waiting.beat = self._env.event()
        return waiting is not None

    def _run(self, execution: Execution) -> Process:
        try:
            execution.output = yield from self._states(execution, self._definition, execution.input)
            execution.status = "SUCCEEDED"
        except TaskError as error:
            execution.status, execution.error = "FAILED", str(error)
        except simpy.Interrupt:
            execution.status, execution.error = "ABORTED", "Cancelled"
        execution.ended_at = self._env.now
        self.most_events = max(self.most_events, execution.events)
        self._ended(execution)

    def _states(self, execution: Execution, machine: Mapping[str, Any], given: Any) -> Process:
        variables: dict[str, Any] = {}
        self._count(execution, _EVENTS_PER_EXECUTION)
        name = machine["StartAt"]
        while True:
            state = machine["States"][name]
            unknown = state.keys() - _KNOWN_FIELDS
            assert not unknown, f"{name}: {sorted(unknown)} are not simulated"
            execution.visited.append(name)
            self._count(execution, _EVENTS_PER_STATE)
            if state["Type"] == "Succeed":
                return given
            if state["Type"] == "Choice":
                name = _chosen(state, variables, given)
                continue
            try:
                result = yield from self._work(execution, state, variables, given)
            except TaskError as error:
                caught = catcher(state, error.name)
                if caught is None:
                    raise
                given, name = evaluate(caught["Output"], variables, {"input": given}), caught["Next"]
                continue
            known = {"input": given, "result": result}
            given = evaluate(state["Output"], variables, known) if "Output" in state else result
            variables |= evaluate(state.get("Assign", {}), variables, known)
            if state.get("End"):
                return given
            name = state["Next"]

    def _work(
        self, execution: Execution, state: Mapping[str, Any], variables: Mapping[str, Any], given: Any
    ) -> Process:
        if state["Type"] == "Pass":
            return given
        if state["Type"] == "Map":
            return (yield from self._map(execution, state, variables, given))
        assert state["Type"] == "Task", state["Type"]
        return (yield from self._with_retries(execution, state, variables, given))

    def _with_retries(
        self, execution: Execution, state: Mapping[str, Any], variables: Mapping[str, Any], given: Any
    ) -> Process:
        tried = [0] * len(state.get("Retry", ()))
        while True:
            self._count(execution, _EVENTS_PER_ATTEMPT)
            try:
                return (yield from self._task(state, variables, given))
            except TaskError as error:
                place = matching(state.get("Retry", ()), error.name)
                if place is None:
                    raise
                retry = state["Retry"][place]
                if tried[place] >= retry.get("MaxAttempts", 3):
                    raise
                yield self._env.timeout(self._delay(retry, tried[place]))
                tried[place] += 1

    def _delay(self, retry: Mapping[str, Any], tried: int) -> float:
        """Return the wait before a retry. Step Functions has these defaults."""
        maximum = retry.get("MaxDelaySeconds", float("inf"))
        # A power of a thousand retries would overflow.
        seconds = min(
            retry.get("IntervalSeconds", 1) * retry.get("BackoffRate", 2.0) ** min(tried, 60), maximum
        )
        if retry.get("JitterStrategy") == "FULL":
            return self._chance.uniform(0, seconds)
        return float(seconds)

    def _task(self, state: Mapping[str, Any], variables: Mapping[str, Any], given: Any) -> Process:
        token = f"token-{next(self._numbers)}"
        known = {"input": given, "context": {"Task": {"Token": token}}}
        arguments = evaluate(state["Arguments"], variables, known)
        if state["Resource"] == _CALL:
            payload = yield from self._outside.call(arguments["FunctionName"], arguments["Payload"])
            return {"Payload": payload}
        waiting = Waiting(self._env.event(), self._env.event())
        self._tokens[token] = waiting
        try:
            if state["Resource"] == _CALL_AND_WAIT:
                yield from self._outside.call(arguments["FunctionName"], arguments["Payload"])
            else:
                assert state["Resource"] == _SEND_AND_WAIT, state["Resource"]
                self._outside.send(arguments["QueueUrl"], arguments["MessageBody"])
            return (yield from self._answer(waiting, state.get("HeartbeatSeconds")))
        finally:
            self._tokens.pop(token, None)

    def _answer(self, waiting: Waiting, seconds: float | None) -> Process:
        """Wait for the answer to a token, for as long as heartbeats arrive in time."""
        while not waiting.answer.triggered:
            limits = [] if seconds is None else [self._env.timeout(seconds)]
            beat = waiting.beat
            yield self._env.any_of([waiting.answer, beat, *limits])
            if limits and not (waiting.answer.triggered or beat.triggered):
                raise TaskError("States.HeartbeatTimeout")
        if isinstance(waiting.answer.value, TaskError):
            raise waiting.answer.value
        return waiting.answer.value

    def _map(
        self, execution: Execution, state: Mapping[str, Any], variables: Mapping[str, Any], given: Any
    ) -> Process:
        known = {"input": given}
        key = evaluate(state["ItemReader"]["Arguments"]["Key"], variables, known)
        items = self._outside.read(key)
        run = MapRun(state["Label"], int(evaluate(state["MaxConcurrency"], variables, known)))
        execution.map_runs.append(run)
        failed: list[str] = []
        maximum = len(items) * state.get("ToleratedFailurePercentage", 0) / 100
        children: set[simpy.Process] = set()
        try:
            for item in items:
                while run.running >= run.concurrency:
                    change = self._env.event()
                    run.changed.append(change)
                    yield change
                    _refuse_too_many(failed, maximum)
                selected = evaluate(
                    state["ItemSelector"], variables, {**known, "context": {"Map": {"Item": {"Value": item}}}}
                )
                run.running += 1
                child = self._env.process(self._child(state, selected, run, failed))
                children.add(child)
                child.callbacks.append(children.discard)
                yield self._env.timeout(1 / self._limits.child_starts_per_second)
            while children:
                change = self._env.event()
                run.changed.append(change)
                yield change
                _refuse_too_many(failed, maximum)
        finally:
            for each in list(children):
                if each.is_alive:
                    each.interrupt(StoppedError())
            execution.map_runs.remove(run)
        return {}

    def _child(self, state: Mapping[str, Any], given: Any, run: MapRun, failed: list[str]) -> Process:
        child = Execution(state["Label"], given)
        try:
            yield from self._states(child, state["ItemProcessor"], given)
        except TaskError as error:
            failed.append(str(error))
        except simpy.Interrupt:
            return
        self.most_events = max(self.most_events, child.events)
        run.running -= 1
        # Its process has ended when those that wait for it look.
        self._env.process(self._announce(run))

    def _announce(self, run: MapRun) -> Process:
        yield self._env.timeout(0)
        run.change()

    def _count(self, execution: Execution, events: int) -> None:
        execution.events += events
        if execution.events > self._limits.history_events:
            raise TaskError("States.Runtime", "the history has too many events")


def _refuse_too_many(failed: Sequence[str], maximum: float) -> None:
    if len(failed) > maximum:
        raise TaskError("States.ExceedToleratedFailureThreshold", failed[0])


def _chosen(state: Mapping[str, Any], variables: Mapping[str, Any], given: Any) -> str:
    for choice in state["Choices"]:
        if evaluate_condition(choice["Condition"], variables, given):
            return str(choice["Next"])
    return str(state["Default"])


def evaluate_condition(condition: str, variables: Mapping[str, Any], given: Any) -> bool:
    return evaluate(condition, variables, {"input": given}) is True

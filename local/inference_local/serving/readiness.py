"""Waits until a frontend lists its model and all of its workers, answers, or no longer lists dead workers."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from urllib.parse import quote

_PERIOD_SECONDS = 0.05
_REQUEST_SECONDS = 5.0


class NotReady(Exception):  # noqa: N818 - the name says what happened
    """A frontend did not become ready in time.

    name: The frontend.
    missing: What it does not do yet.
    """

    def __init__(self, name: str, missing: str) -> None:
        super().__init__(f"{name} was not ready in time: {missing}")


def wait_until_ready(
    name: str, port: int, model: str, workers: int, *, deadline: float, check: Callable[[], None]
) -> None:
    """Poll a frontend until its model and workers are registered.

    name: The frontend, for messages.
    port: Its port on this machine.
    model: Name of the model that it must list.
    workers: Number of workers that must be registered.
    deadline: Reading of ``time.monotonic`` at which it must be ready.
    check: Raises an error if a process has died.
    Raises NotReady if they are not registered in time.
    """
    while (found := registered_workers(port, model) or 0) < workers:
        _pause(name, _registered(found, workers), deadline, check)


def wait_until_listed(
    name: str, port: int, model: str, *, deadline: float, check: Callable[[], None]
) -> None:
    """Poll a frontend until it knows a name that lists of models do not show.

    name, port, model, deadline, check: As for `wait_until_ready`.
    Raises NotReady if it does not know the name in time.
    """
    while not _get(port, f"/v1/models/{quote(model, safe=':')}"):
        # The folder in which workers register is watched, and all programs of a user share the watches.
        missing = f"it does not know '{model}'; if its log says 'Too many open files', raise the limit "
        _pause(name, f"{missing}fs.inotify.max_user_instances of this machine", deadline, check)


def wait_until_answered(
    name: str, port: int, model: str, *, deadline: float, check: Callable[[], None]
) -> None:
    """Ask a frontend for one token until it gives it.

    With separate prefill workers, Dynamo 1.6.1 lists a model before its prefill routing is active. Until then
    it answers 503 ("prefill routing … is still activating", seen on a busy machine). No page shows it.

    name, port, model, deadline, check: As for `wait_until_ready`.
    Raises NotReady if it gives none in time.
    """
    body = json.dumps({"model": model, "prompt": "ready", "max_tokens": 1})
    while not _gives(port, body, deadline - time.monotonic()):
        _pause(name, "it answers no request", deadline, check)


def wait_until_forgotten(
    name: str, port: int, model: str, workers: int, *, deadline: float, check: Callable[[], None]
) -> None:
    """Poll a frontend until it lists no more workers than are alive.

    name, port, model, deadline, check: As for `wait_until_ready`.
    workers: Number of live workers.
    Raises NotReady if it still lists dead workers.
    """
    while (found := registered_workers(port, model)) is None or found > workers:
        _pause(name, _registered(found or 0, workers), deadline, check)


def _registered(found: int, expected: int) -> str:
    return f"{found} of {expected} workers are registered"


def _pause(name: str, missing: str, deadline: float, check: Callable[[], None]) -> None:
    check()
    if time.monotonic() > deadline:
        raise NotReady(name, missing)
    time.sleep(_PERIOD_SECONDS)


def registered_workers(port: int, model: str) -> int | None:
    """Return how many workers a frontend lists: 0 without the model, None if it does not answer."""
    models = _get(port, "/v1/models")
    if models is None:
        return None
    listed = models.get("data", [])
    if not any(model == entry["id"] or model in entry.get("aliases", ()) for entry in listed):
        return 0
    health = _get(port, "/health")
    if health is None:
        return None
    return sum(instance["endpoint"] == "generate" for instance in health.get("instances", []))


def _gives(port: int, body: str, seconds: float) -> bool:
    """Return whether a frontend answers a completion with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=max(seconds, _REQUEST_SECONDS))
    try:
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return response.status == http.client.OK
    finally:
        connection.close()


def _get(port: int, path: str) -> dict[str, list[dict[str, str]]] | None:
    """Return a JSON response, empty for an error; None if the frontend does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return json.loads(body) if response.status == http.client.OK else {}
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

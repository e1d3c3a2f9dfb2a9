"""Waits until a frontend lists its model and all of its workers, or no longer lists dead workers."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable

_PERIOD_SECONDS = 0.05
_REQUEST_SECONDS = 5.0


class NotReady(Exception):  # noqa: N818 - the name says what happened
    """A frontend did not become ready in time.

    Parameters
    ----------
    name
        The frontend.
    found, expected
        Number of registered workers, and the expected number.
    """

    def __init__(self, name: str, found: int, expected: int) -> None:
        super().__init__(f"{name} was not ready in time: {found} of {expected} workers are registered")


def wait_until_ready(
    name: str, port: int, model: str, workers: int, *, deadline: float, check: Callable[[], None]
) -> None:
    """Poll a frontend until its model and workers are registered.

    Parameters
    ----------
    name
        The frontend, for messages.
    port
        Its port on this machine.
    model
        Name of the model that it must list.
    workers
        Number of workers that must be registered.
    deadline
        Reading of ``time.monotonic`` at which it must be ready.
    check
        Raises an error if a process has died.

    Raises
    ------
    NotReady
        If they are not registered in time.
    """
    while (found := registered_workers(port, model) or 0) < workers:
        _pause(name, found, workers, deadline, check)


def wait_until_forgotten(
    name: str, port: int, model: str, workers: int, *, deadline: float, check: Callable[[], None]
) -> None:
    """Poll a frontend until it lists no more workers than are alive.

    Parameters
    ----------
    name, port, model, deadline, check
        As for `wait_until_ready`.
    workers
        Number of live workers.

    Raises
    ------
    NotReady
        If it still lists dead workers.
    """
    while (found := registered_workers(port, model)) is None or found > workers:
        _pause(name, found or 0, workers, deadline, check)


def _pause(name: str, found: int, workers: int, deadline: float, check: Callable[[], None]) -> None:
    check()
    if time.monotonic() > deadline:
        raise NotReady(name, found, workers)
    time.sleep(_PERIOD_SECONDS)


def registered_workers(port: int, model: str) -> int | None:
    """Return how many workers a frontend lists; 0 if it does not list the model, None if it does not answer.

    Parameters
    ----------
    port
        Its port on this machine.
    model
        Name of the model.
    """
    models = _get(port, "/v1/models")
    if models is None:
        return None
    if model not in {entry["id"] for entry in models.get("data", [])}:
        return 0
    health = _get(port, "/health")
    if health is None:
        return None
    return sum(instance["endpoint"] == "generate" for instance in health.get("instances", []))


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

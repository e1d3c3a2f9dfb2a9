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
    while (found := registered_workers(port, model)) < workers:
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
    while (found := registered_workers(port, model)) > workers:
        _pause(name, found, workers, deadline, check)


def _pause(name: str, found: int, workers: int, deadline: float, check: Callable[[], None]) -> None:
    check()
    if time.monotonic() > deadline:
        raise NotReady(name, found, workers)
    time.sleep(_PERIOD_SECONDS)


def registered_workers(port: int, model: str) -> int:
    """Return how many workers a frontend lists. 0 if it does not list the model or does not answer.

    Parameters
    ----------
    port
        Its port on this machine.
    model
        Name of the model.
    """
    listed = {entry["id"] for entry in _get(port, "/v1/models").get("data", [])}
    if model not in listed:
        return 0
    instances = _get(port, "/health").get("instances", [])
    return sum(instance["endpoint"] == "generate" for instance in instances)


def _get(port: int, path: str) -> dict[str, list[dict[str, str]]]:
    """Return a JSON response, empty if the frontend is not running yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return json.loads(body) if response.status == http.client.OK else {}
    except (OSError, http.client.HTTPException):
        return {}
    finally:
        connection.close()

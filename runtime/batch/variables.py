"""Reads environment variables, which configure the functions and the worker."""

from __future__ import annotations

from collections.abc import Mapping


class BatchSettingsError(Exception):
    """Environment variables are missing or invalid. One message names all of them."""


def missing(environment: Mapping[str, str], *names: str) -> list[str]:
    """Return a message that names the missing or empty variables; an empty text if all are set."""
    absent = [name for name in names if not environment.get(name)]
    return [f"environment variables are missing: {', '.join(absent)}"] if absent else []


def require(environment: Mapping[str, str], *names: str) -> None:
    """Raise BatchSettingsError if any of these variables is missing or empty."""
    if errors := missing(environment, *names):
        raise BatchSettingsError("; ".join(errors))

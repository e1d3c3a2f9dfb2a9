"""Plugins of every run, and which examples generated tests take."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = [
    "tests.plugins.aws_models",
    "tests.plugins.collection_time",
    "tests.plugins.cost",
    "tests.plugins.sharing",
]

# The same in every run, however slow the machine is; `pytest --hypothesis-profile default` takes others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

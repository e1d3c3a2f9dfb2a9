"""Plugins of every run, and the Hypothesis profile."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = [
    "tests.plugins.aws_models",
    "tests.plugins.aws_refusals",
    "tests.plugins.collection_time",
    "tests.plugins.cost",
    "tests.plugins.engine_results",
    "tests.plugins.garbage",
    "tests.plugins.missing_files",
    "tests.plugins.programs",
    "tests.plugins.tiers",
]

# Every run uses the same examples without a deadline. `pytest --hypothesis-profile default` uses random ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

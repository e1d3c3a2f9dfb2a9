"""Names given files that do not exist. With several processes, pytest says only that it finds no tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    folder = config.invocation_params.dir
    missing = [each for each in config.args if not (folder / each.partition("::")[0]).exists()]
    if missing:
        raise pytest.UsageError(f"no such file or folder of tests: {', '.join(missing)}")

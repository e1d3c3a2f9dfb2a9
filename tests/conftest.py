"""How two processes share the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
#: Layers that stay together: templates are synthesised once for all, and local servers need a processor.
_TOGETHER = frozenset({"templates", "local"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a layer, or else a file, in one process: before pytest-xdist reads what belongs together."""
    for item in items:
        place = item.path.relative_to(_HERE)
        group = place.parts[0] if place.parts[0] in _TOGETHER else str(place)
        item.add_marker(pytest.mark.xdist_group(group))

"""Distributes tests over processes."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

#: Layers whose tests run in one process: templates are synthesised once, and local servers need a processor.
_TOGETHER = frozenset({"templates", "local"})
#: The longest tests start first, so that no process works on them alone at the end.
_LONGEST = ("tests/local/", "tests/templates/", "tests/unit/house/test_style.py")


class LayerScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Runs each file, and each of the layers above, in one process.

    The mark ``xdist_group`` has no effect: pytest-xdist 3.8 adds the group to an attribute of the test that
    pytest 9.2 no longer reads, without a warning.
    """

    def _split_scope(self, nodeid: str) -> str:
        place = PurePath(nodeid.partition("::")[0]).relative_to("tests")
        return place.parts[0] if place.parts[0] in _TOGETHER else str(place)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first, in an order that is the same in every process."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LayerScheduling | None:
    """Distribute by layers with ``--dist loadgroup``. Other modes are unchanged."""
    return LayerScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None

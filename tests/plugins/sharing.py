"""How several processes share the tests."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

#: Layers that stay together: templates are synthesised once for all, and local servers need a processor.
_TOGETHER = frozenset({"templates", "local"})
#: What takes longest, which starts first. A process that begins with one of them ends with little else.
_LONGEST = ("tests/local/", "tests/templates/", "tests/unit/house/test_style.py")


class LayerScheduling(LoadScopeScheduling):
    """Keeps a layer, or else a file, in one process.

    Marks of ``xdist_group`` do not: pytest-xdist 3.8 adds the group to an attribute of the test that pytest
    9.2 reads no longer, and says nothing.
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
    """Share by layers where tests go in groups; every other way is pytest-xdist's own."""
    return LayerScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None

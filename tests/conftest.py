"""How two processes share the tests, and which examples generated tests take."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The same in every run, however slow the machine is; `pytest --hypothesis-profile default` takes others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

_HERE = Path(__file__).parent
#: Layers that stay together: templates are synthesised once for all, and local servers need a processor.
_TOGETHER = frozenset({"templates", "local"})


class LayerScheduling(LoadScopeScheduling):
    """Keeps a layer, or else a file, in one process.

    Marks of ``xdist_group`` do not: pytest-xdist 3.8 adds the group to an attribute of the test that pytest
    9.2 reads no longer, and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        place = PurePath(nodeid.partition("::")[0]).relative_to(_HERE.name)
        return place.parts[0] if place.parts[0] in _TOGETHER else str(place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LayerScheduling | None:
    """Share by layers where tests go in groups; every other way is pytest-xdist's own."""
    return LayerScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None

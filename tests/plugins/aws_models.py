"""Lets every AWS client of a test process share one loader, so that it reads each service's description once.

Tests make new sessions, so that none sees another's credentials or region. Without this, each session would
decompress and parse the descriptions again, which takes up to 0.2 s per client.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import botocore.session
import pytest


@pytest.fixture(scope="session", autouse=True)
def one_loader() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield

"""Shares one loader between all AWS clients of a test process, so that each service description is read once.

Each test creates a new session, so that it does not use another test's credentials or region. Without the
shared loader, each session would decompress and parse the descriptions again, up to 0.2 s per client.
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

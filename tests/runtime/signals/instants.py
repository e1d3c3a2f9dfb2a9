"""Instants of the tests' signals, in seconds since 1970: none comes closer while the tests run."""

from __future__ import annotations

#: In 2020.
EXPIRED = 1_600_000_000
#: In 2023.
WRITTEN = 1_700_000_000
#: In 2096.
EXPIRES = 4_000_000_000

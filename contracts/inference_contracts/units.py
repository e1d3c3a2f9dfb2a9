"""Units of size and time, and how many of one make another.

Sizes in KiB, MiB and GiB count in powers of two, those in MB and GB in powers of ten.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
KIB_PER_MIB: Final = 1024
MIB_PER_GIB: Final = 1024
MB: Final = 10**6
GB: Final = 10**9

MICROSECONDS_PER_SECOND: Final = 1_000_000
MILLISECONDS_PER_SECOND: Final = 1000
SECONDS_PER_MINUTE: Final = 60
SECONDS_PER_HOUR: Final = 3600
SECONDS_PER_DAY: Final = 86_400
MINUTES_PER_HOUR: Final = 60
MINUTES_PER_DAY: Final = 1440
HOURS_PER_DAY: Final = 24
#: AWS's own calculator has this many hours in a month (365 * 24 / 12).
HOURS_PER_MONTH: Final = 730
MINUTES_PER_MONTH: Final = HOURS_PER_MONTH * MINUTES_PER_HOUR

THOUSAND: Final = 1000
MILLION: Final = 1_000_000

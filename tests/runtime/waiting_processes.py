"""What a process waits for, as the kernel tells it."""

from __future__ import annotations

import re
from pathlib import Path


def waits_for_lock(pid: int) -> bool:
    """Return whether a process waits for a lock of `flock` that another one has (proc_locks(5))."""
    return bool(re.search(rf"-> FLOCK +ADVISORY +\w+ {pid} ", Path("/proc/locks").read_text()))

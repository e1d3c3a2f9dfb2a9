"""Ties the emulator's Lambda workers to its life.

ministack keeps workers (Python and Node processes) warm and ends them when it shuts down in order; after a
SIGKILL they would live on. Each is started through `parent_bound`, from one thread that never ends, because
the death signal follows the thread that forked (prctl(2)).
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from inference_blueprints.processes import parent_bound

_FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker-starter")
_PLAIN_INIT = subprocess.Popen.__init__


def _bound_init(self: subprocess.Popen[Any], args: Any, *others: Any, **options: Any) -> None:
    """Start the program behind `parent_bound`; a shell line cannot be wrapped and is left alone."""
    if isinstance(args, (list, tuple)) and not options.get("shell"):
        args = [sys.executable, "-I", "-S", parent_bound.__file__, str(os.getpid()), *args]
    _FORKER.submit(_PLAIN_INIT, self, args, *others, **options).result()


def apply() -> None:
    """Start every process of the emulator so that it dies with it."""
    subprocess.Popen.__init__ = _bound_init  # type: ignore[method-assign]

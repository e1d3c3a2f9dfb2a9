"""Ends the emulator's Lambda workers when the emulator dies.

ministack keeps workers (Python and Node processes) warm and ends them at an orderly shutdown. After a SIGKILL
they would continue to run. Each is started through `parent_bound`, from one thread that never ends, because
the death signal follows the thread that forked (prctl(2)).
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from inference_local.processes import parent_bound

_FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker-starter")
_PLAIN_INIT = subprocess.Popen.__init__


def _bound_init(self: subprocess.Popen[Any], args: Any, *others: Any, **options: Any) -> None:
    """Start the program through `parent_bound`. A shell command line cannot be wrapped and is unchanged."""
    if isinstance(args, (list, tuple)) and not options.get("shell"):
        args = [sys.executable, "-I", "-S", parent_bound.__file__, str(os.getpid()), *args]
    _FORKER.submit(_PLAIN_INIT, self, args, *others, **options).result()


def apply() -> None:
    """Apply the patch to every process that the emulator starts."""
    subprocess.Popen.__init__ = _bound_init  # type: ignore[method-assign]

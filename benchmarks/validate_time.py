"""How long `blueprints validate quickstart-g6e` takes, as a new process.

The goal is 0.3 s. `validate_time_libraries` compares its processor time with that of a process that only
imports the modules of other projects and of Python that the command imports; the goal is twice that.
`validate_time_import_lines` compares it with `import pydantic, typer, yaml` alone. pydantic loads its parts
when they are first used, so these lines import less than half of what any program with a model and a command
imports.

Of the time beyond the libraries, a third is pydantic building the classes of a blueprint's hundred sections
and the validators of those that the file has (`Section` in `inference_blueprints/spec/section.py`). An eighth
makes 150 data classes (`inference_contracts/records.py`), a seventh reads and checks the file, the rest is
the import of 190 modules.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.figure import (
    BLUEPRINTS,
    ROOT,
    Figure,
    cost,
    interleaved_medians,
    wall_seconds,
)

#: What its processes run.
PROGRAMS = ("inference_blueprints/cli/main.py", "inference_blueprints/loading.py")
_ROUNDS = 15
_GOAL_SECONDS = 0.3
_GOAL_RATIO = 2.0
_VALIDATE: Sequence[str | Path] = [BLUEPRINTS, "validate", "quickstart-g6e"]
_IMPORT_LINES: Sequence[str | Path] = [sys.executable, "-c", "import pydantic, typer, yaml"]
#: Prints the modules that the command has imported when it ends, in their order.
_LIST_MODULES = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["blueprints", "validate", "quickstart-g6e", "--output", "json"]
from inference_blueprints.cli.main import main
main()
"""
_IMPORT_MODULES = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def measure() -> list[Figure]:
    """Take the measurement."""
    libraries = library_imports()
    wall, validate, imported, lines = interleaved_medians(
        [
            lambda: wall_seconds(_VALIDATE),
            lambda: cost(_VALIDATE).processor_seconds,
            lambda: cost(libraries).processor_seconds,
            lambda: cost(_IMPORT_LINES).processor_seconds,
        ],
        _ROUNDS,
    )
    return [
        Figure("validate_time", wall, "s", goal=_GOAL_SECONDS),
        Figure("validate_time_libraries", validate, "s", baseline=imported, goal=_GOAL_RATIO),
        Figure("validate_time_import_lines", validate, "s", baseline=lines),
    ]


def library_imports() -> list[str]:
    """Return the command of a process that imports the modules of `_library_modules` and ends."""
    return [sys.executable, "-c", _IMPORT_MODULES, *_library_modules()]


def _library_modules() -> list[str]:
    """Return the modules that the command imports and that are not this project's, in order of import."""
    command = [sys.executable, "-c", _LIST_MODULES]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    own = ("inference_", "__main__")
    return [name for name in result.stderr.split() if not name.startswith(own)]

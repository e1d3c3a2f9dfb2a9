"""How much memory `blueprints validate quickstart-g6e` uses at its peak.

The baseline is a process that only imports the required libraries (pydantic, PyYAML, typer).
`validate_memory_libraries` has another one: all modules of other projects and of Python that the command
imports. pydantic loads its parts when they are first used, so this is the least that a program with a model
and a command takes; it is 85 % of what the goal allows.

`validate_memory_types` is a process that imports the same modules and reads the file into its types. Before
any rule is checked, it takes 102 % of what the goal allows: the format's hundred sections are pydantic
models, and their classes and validators exist whatever the file has. So the goal cannot be met with these
libraries and types.
"""

from __future__ import annotations

import sys

from benchmarks.harness.figure import BLUEPRINTS, Figure, cost, interleaved_medians
from benchmarks.validate_time import library_imports

#: What its processes run.
PROGRAMS = ("inference_blueprints/cli/main.py", "inference_blueprints/loading.py")
_ROUNDS = 5
_GOAL_RATIO = 1.5
_LIBRARIES = "import pydantic, typer, yaml"
#: Reads the blueprint into its types, as the command does, and checks no rule.
_READ_TYPES = """
import importlib, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
from inference_blueprints.garbage import collect_rarely
from inference_blueprints.spec import composer, source
from inference_blueprints.spec.blueprint import Blueprint
collect_rarely()
path = source.find("quickstart-g6e")
document = composer.parse(source.read(path, str(path)), str(path))
Blueprint.model_validate(document.root.value, by_alias=True, by_name=False)
"""


def measure() -> list[Figure]:
    """Take the measurement."""
    imports = library_imports()
    python, option, _, *modules = imports
    validate, libraries, imported, types = interleaved_medians(
        [
            lambda: cost([BLUEPRINTS, "validate", "quickstart-g6e"]).memory_mib,
            lambda: cost([sys.executable, "-c", _LIBRARIES]).memory_mib,
            lambda: cost(imports).memory_mib,
            lambda: cost([python, option, _READ_TYPES, *modules]).memory_mib,
        ],
        _ROUNDS,
    )
    return [
        Figure("validate_memory", validate, "MiB", baseline=libraries, goal=_GOAL_RATIO),
        Figure("validate_memory_libraries", validate, "MiB", baseline=imported),
        Figure("validate_memory_types", types, "MiB", baseline=libraries),
    ]

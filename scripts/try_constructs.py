"""Synthesise the examples of the constructs from installed wheels, on each Python and CDK that they support.

    .venv/bin/python scripts/try_constructs.py [--python 3.11 --python 3.12 …]

It ends with 1 if an example does not synthesise, or a Python is missing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from wheels import PYTHONS, ROOT, WheelError, build, environment, find_python, required, run

EXAMPLES = tuple(sorted((ROOT / "constructs/examples").glob("*.py")))
#: The lowest versions that the distributions allow, and the newest.
RESOLUTIONS = ("lowest-direct", "highest")
#: What `lowest-direct` takes the lowest version of: what the constructs and the parts below them name.
REQUIRED = required("inference-constructs")
#: Says what is installed, and fails if the library is.
_VERSIONS = """
import platform
from importlib.metadata import distributions
found = {each.name.lower(): each.version for each in distributions()}
assert "inference-blueprints" not in found, "the library is installed"
names = ("aws-cdk-lib", "constructs")
print("Python", platform.python_version(), *(f"{name} {found[name]}" for name in names))
"""


def install(directory: Path, wheels: Path, *, python: str | Path, resolution: str) -> Path:
    """Return the Python of a new environment that has the constructs, what they need, and nothing else."""
    return environment(directory, wheels, *REQUIRED, constraints=None, python=python, resolution=resolution)


def versions(python: Path, directory: Path) -> str:
    """Return the versions of the CDK in an environment. Raises WheelError: The library is installed too."""
    return run(python, "-c", _VERSIONS, directory=directory).strip()


def synthesise(python: Path, example: Path, directory: Path) -> list[Path]:
    """Run an example in an empty folder, and return its templates. Raises WheelError: It failed."""
    directory.mkdir(parents=True)
    shutil.copy(example, directory / "app.py")
    # Without a variable that the CDK's command sets, an app writes to a temporary folder.
    (directory / "run.py").write_text(
        'import os, runpy\nos.environ["CDK_OUTDIR"] = "cdk.out"\nrunpy.run_path("app.py")\n', encoding="utf-8"
    )
    run(python, "run.py", directory=directory)
    return sorted((directory / "cdk.out").glob("*.template.json"))


def main() -> int:
    """Try every example in every environment, and print a line for each environment."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--python", action="append", help="a version; all versions without it")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(place / "wheels")
        for version in parser.parse_args().python or PYTHONS:
            try:
                python = find_python(version)
            except WheelError as error:
                failed += 1
                print(error, file=sys.stderr)
                continue
            for resolution in RESOLUTIONS:
                row = place / f"{len(list(place.iterdir()))}-{resolution}"
                installed = install(row / "venv", place / "wheels", python=python, resolution=resolution)
                print(f"{versions(installed, place)}:", end=" ", flush=True)
                for example in EXAMPLES:
                    try:
                        templates = synthesise(installed, example, row / example.stem)
                        print(f"{example.stem} {len(templates)}", end=" ", flush=True)
                    except WheelError as error:
                        failed += 1
                        print(f"\n{example.stem} failed: {error}", file=sys.stderr)
                print()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

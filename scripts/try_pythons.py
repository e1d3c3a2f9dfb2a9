"""Install the library from wheels on each Python that it supports, and compare the templates byte by byte.

    .venv/bin/python scripts/try_pythons.py [BLUEPRINT …]

All have the versions of requirements.lock. It ends with 1 if a template differs, a command fails, or a Python
is missing: what was not tried is not known to work.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wheels import PYTHONS, ROOT, WheelError, build, environment, find_python, run

BLUEPRINTS = tuple(path.stem for path in sorted((ROOT / "blueprints").glob("*.yaml")))


def synthesise(python: Path, blueprint: str, home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Let an installed library synthesise a blueprint, and return the digest of each template and asset list.

    python: Python of the environment.
    home: Where it runs; the output stays in a folder with the name of the blueprint.
    Raises WheelError: It failed.
    """
    words = ("synth", blueprint, "--directory", blueprint)
    run(python.with_name("blueprints"), *words, directory=home, variables=variables)
    files = [path for kind in ("template", "assets") for path in (home / blueprint).glob(f"*.{kind}.json")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def differences(first: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the names of files that are not the same in both, or in one only."""
    names = sorted({*first, *other})
    return [name for name in names if first.get(name) != other.get(name)]


def main() -> int:
    """Try each Python, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("blueprint", nargs="*", help="names of shipped blueprints; all without it")
    blueprints = parser.parse_args().blueprint or BLUEPRINTS
    first: dict[str, dict[str, str]] = {}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(place / "wheels")
        for version in PYTHONS:
            try:
                installed = environment(
                    place / version, place / "wheels", "inference-blueprints", python=find_python(version)
                )
                wrong, files = [], 0
                for blueprint in blueprints:
                    home = place / f"home-{version}"
                    home.mkdir(exist_ok=True)
                    variables = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
                    found = synthesise(installed, blueprint, home, variables)
                    wrong += differences(first.setdefault(blueprint, found), found)
                    files += len(found)
            except WheelError as error:
                failed = True
                print(error, file=sys.stderr)
                continue
            failed = failed or bool(wrong)
            print(f"Python {version}: {files} files; different: {', '.join(wrong) or 'none'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

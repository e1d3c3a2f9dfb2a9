"""Record what a release synthesised: the templates, charts and code of some shipped blueprints.

Writes ``tests/releases/<commit>.tar.xz``. `tests/releases` deploys it to the emulator and then what this
checkout synthesises. Run it for every release, and delete the files of releases from which nobody upgrades
any more. It needs the package registries: the release is set up in a folder of its own.

    .venv/bin/python scripts/record_release.py COMMIT BLUEPRINT...
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "tests/releases"
#: Modules of other projects in the code of functions, and the packages that have them. They are not recorded.
PACKAGES = {
    "aws_lambda_powertools": "aws-lambda-powertools",
    "jinja2": "jinja2",
    "kafka": "kafka-python",
    "markupsafe": "markupsafe",
    "multipart.py": "multipart",
    "numpy": "numpy",
    "numpy.libs": "numpy",
    "typing_extensions.py": "typing-extensions",
    "urllib3": "urllib3",
    "valkey": "valkey",
}
#: Files of an assembly that no deployment reads.
LEFT_OUT = ("tree.json", "validation-report.json", ".metadata.json", ".zip")


def main() -> None:
    """Record a release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="commit or tag of the release")
    parser.add_argument("blueprints", nargs="+", help="names of shipped blueprints")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder, "release")
        _run("git", "clone", "--quiet", ROOT, release)
        _run("git", "-C", release, "checkout", "--quiet", arguments.commit)
        _run("make", "--silent", "-C", release, "setup")
        for blueprint in arguments.blueprints:
            output = Path(folder, "out", blueprint)
            _run(release / ".venv/bin/blueprints", "synth", blueprint, "--directory", output)
        archive = TARGET / f"{arguments.commit}.tar.xz"
        archive.write_bytes(packed(Path(folder, "out")))
    print(f"wrote {archive.relative_to(ROOT)}, {archive.stat().st_size // 1024} KiB")


def _run(*command: str | Path) -> None:
    subprocess.run(["/usr/bin/env", *command], env={**os.environ, "CDK_VALIDATION": "false"}, check=True)


def packed(assemblies: Path) -> bytes:
    """Return an archive of assemblies; code and charts that several have are in it once."""
    assets: dict[str, Path] = {}
    packages: dict[str, list[str]] = {}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as archive:
        for assembly in sorted(assemblies.iterdir()):
            for path in sorted(assembly.iterdir()):
                if path.is_dir() and path.name.startswith("asset."):
                    assets[path.name] = path
                elif path.is_file() and not path.name.endswith(LEFT_OUT):
                    _add(archive, path, f"stacks/{assembly.name}/{path.name}")
        for name, asset in sorted(assets.items()):
            found = {PACKAGES[each.name] for each in asset.iterdir() if each.name in PACKAGES}
            packages[name] = sorted(found)
            for path in _own_files(asset):
                _add(archive, path, f"assets/{name}/{path.relative_to(asset)}")
        text = json.dumps(packages).encode()
        member = tarfile.TarInfo("packages.json")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


def _own_files(asset: Path) -> Iterator[Path]:
    for path in sorted(asset.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and path.relative_to(asset).parts[0] not in PACKAGES:
            yield path


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file without its owner and times."""
    member = tarfile.TarInfo(name)
    member.size = path.stat().st_size
    with path.open("rb") as content:
        archive.addfile(member, content)


if __name__ == "__main__":
    main()

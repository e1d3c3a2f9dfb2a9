"""Check that all generated files are what the tree generates: ``make verify``.

The generators run in a copy of the tree, which git then compares. The tree itself stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parent.parent
#: Installed packages, which git ignores. Generators use those of the tree.
_INSTALLED: Final = (".venv", "node_modules")
_AUTHOR: Final = ("-c", "user.name=verify", "-c", "user.email=verify")
#: git's letter for a file in which the copy differs.
_STATES: Final = {"M": "changed", "A": "missing", "D": "left over"}
_LINES_PER_FILE: Final = 10
_CHARACTERS: Final = 160


def verify(tree: Path, generate: Callable[[Path], None]) -> str:
    """Return how the generated files differ from those of a fresh run; nothing if they do not.

    tree: A checkout.
    generate: Writes all generated files of a folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        _copy(tree, copy)
        _git(copy, "init", "--quiet")
        _git(copy, "add", "--all", "--force")
        _link_installed(tree, copy)
        _git(copy, *_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "the tree as it is")
        compare = ["diff", "--cached", "--no-renames"]
        generate(copy)
        _git(copy, "add", "--all")
        changes = [line.split("\t") for line in _git(copy, *compare, "--name-status").splitlines()]
        return "\n".join(
            _description(_STATES[state], name, _git(copy, *compare, "--unified=0", "--", name))
            for state, name in changes
        )


def _copy(tree: Path, copy: Path) -> None:
    """Copy the files that git tracks or would track."""
    listed = _git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if os.path.lexists(tree / name):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, copy / name, follow_symlinks=False)


def _link_installed(tree: Path, copy: Path) -> None:
    """Link the installed packages. git would not ignore the links: `.gitignore` names folders."""
    (copy / ".git" / "info" / "exclude").write_text("\n".join(_INSTALLED))
    for name in _INSTALLED:
        if (tree / name).exists():
            (copy / name).symlink_to(tree / name)


def _description(state: str, name: str, difference: str) -> str:
    """Return what happened to a file, with the first lines of the difference."""
    lines = difference.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    shown = [line[:_CHARACTERS] for line in lines[start:][:_LINES_PER_FILE]]
    more = len(lines) - start - len(shown)
    return "\n  ".join([f"{state}: {name}", *shown, *([f"... and {more} more lines"] if more > 0 else [])])


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints, without the settings of the user or of a hook that runs this."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        ["git", "-c", "core.quotePath=false", *arguments],  # noqa: S607
        cwd=folder,
        env=environment | settings,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def _run_generators(copy: Path) -> None:
    """Run the copy's own generators, which import nothing from the tree."""
    print("generating in a copy:", flush=True)
    command = [sys.executable, str(copy / "scripts" / "generate.py")]
    if subprocess.run(command, cwd=copy, check=False).returncode:
        sys.exit("a generator failed, see above")


def main(tree: Path = TREE, generate: Callable[[Path], None] = _run_generators) -> None:
    """Verify the tree. Raises SystemExit if a generated file differs, or a generator fails."""
    start = time.monotonic()
    if differences := verify(tree, generate):
        sys.exit(f"{differences}\nrun: make generate, read the difference, commit it")
    print(f"all generated files are current ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()

"""Stands in for uv: records its calls, creates an empty environment, and fails or hangs on request.

``FAKE_UV`` is a folder. ``calls`` gets a line per call. A file ``fail`` or ``hang`` changes the next
``pip sync``; ``wrong platform`` the import check. The Python of the environment is this program too.
"""

import os
import sys
import time
from pathlib import Path

# The environment's Python, which runs `-I import_check.py TARGET`.
_PYTHON = f"""#!/bin/sh
exec "{sys.executable}" "{__file__}" check "$3"
"""


def main(folder: Path, words: list[str]) -> None:
    """Answer one call."""
    if words[0] == "check":
        check(folder, Path(words[1]))
        return
    with (folder / "calls").open("a") as calls:
        calls.write(" ".join(words) + "\n")
    if words[0] == "venv":
        environment = Path(words[-1])
        for part in ("bin", "lib/python3.11/site-packages"):
            (environment / part).mkdir(parents=True, exist_ok=True)
        (environment / "bin/python").write_text(_PYTHON)
        (environment / "bin/python").chmod(0o755)
        return
    downloads = Path(words[words.index("--cache-dir") + 1])
    (downloads / "archive-v0").mkdir(parents=True, exist_ok=True)
    (downloads / "archive-v0/whole").write_bytes(b"0" * 100_000)
    (downloads / ".tmpPart").mkdir(exist_ok=True)
    if (folder / "fail").exists():
        (folder / "fail").unlink()
        print("error: Failed to fetch torch\n  Caused by: dns error", file=sys.stderr)
        sys.exit(2)
    if (folder / "hang").exists():
        (folder / "hang").rename(folder / "hanging")
        (folder / "draft").write_text(str(os.getpid()))
        (folder / "draft").rename(folder / "pid")  # a reader never sees an empty file
        while (folder / "hanging").exists():
            time.sleep(0.02)
    (downloads / ".tmpPart").rmdir()
    # A file of NIXL, linked to the downloads as uv links it.
    packages = Path(words[words.index("--python") + 1]).parents[1] / "lib/python3.11/site-packages"
    (packages / "nixl_cu13").mkdir(exist_ok=True)
    (downloads / "archive-v0/_api.py").write_text("agent_config.pthrDelay = 0\n")
    linked = packages / "nixl_cu13/_api.py"
    linked.unlink(missing_ok=True)
    linked.hardlink_to(downloads / "archive-v0/_api.py")


def check(folder: Path, target: Path) -> None:
    """Stand in for the import check of vLLM."""
    if (folder / "wrong platform").exists():
        print("vLLM chose the platform cuda")
        sys.exit(1)
    target.write_text('{"vllm": "1.2.3"}')


if __name__ == "__main__":
    main(Path(os.environ["FAKE_UV"]), sys.argv[1:])

"""Stands in for uv: records its calls, creates an empty environment, and fails or hangs on request.

``FAKE_UV`` is a folder. ``calls`` gets a line per call. A file ``fail`` or ``hang`` changes the next
``pip sync``; ``wrong platform`` the import check.
"""

import os
import sys
import time
from pathlib import Path

# Stands in for the environment's Python, which runs `-I import_check.py TARGET`.
_PYTHON = """#!/bin/sh
if [ -e "$FAKE_UV/wrong platform" ]; then echo "vLLM chose the platform cuda"; exit 1; fi
echo '{"vllm": "1.2.3"}' >"$3"
"""


def main(folder: Path, words: list[str]) -> None:
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


main(Path(os.environ["FAKE_UV"]), sys.argv[1:])

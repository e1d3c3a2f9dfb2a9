"""Record which release of vLLM and of SGLang was the first to register each model class.

Writes ``catalog/inference_catalog/data/classes_by_release.json``. Add a release to `RELEASES`, run it again:

    .venv/bin/python scripts/record_model_classes.py

The registries are read from the wheels on the configured package index (2 to 6 MB of each), and never run.
A class of the oldest release below may be older than it.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from inference_catalog.engine_wheels.model_classes import SGLANG_MODELS, VLLM_REGISTRY
from inference_catalog.engine_wheels.release_file import ENGINE_WHEELS
from inference_catalog.engine_wheels.wheels import open_wheel

TARGET = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/classes_by_release.json"
#: The releases that are read, oldest first. Patch releases are left out unless the first one was withdrawn.
RELEASES = {
    "vllm": tuple(f"0.{minor}.0" for minor in range(19, 34)),
    "sglang": tuple(f"0.5.{patch}" for patch in range(5, 24)),
}
SOURCES = {"vllm": VLLM_REGISTRY, "sglang": f"{SGLANG_MODELS}*.py"}


def classes_of(engine: str) -> dict[str, Any]:
    """Return the releases of an engine, and for each class the first, and the one that no longer has it."""
    releases: dict[str, str] = {}
    classes: dict[str, dict[str, str]] = {}
    for release in RELEASES[engine]:
        wheel = open_wheel(f"{engine}=={release}")
        registered = ENGINE_WHEELS[engine].model_classes(wheel.archive)
        releases[release] = wheel.digest
        for name in registered:
            classes.setdefault(name, {"first": release}).pop("until", None)
        for name in classes.keys() - set(registered):
            classes[name].setdefault("until", release)
        print(f"{engine} {release}: {len(registered)} classes")
    return {"source": f"{SOURCES[engine]} of the wheels", "releases": releases, "classes": classes}


def main() -> None:
    """Read the releases and write the file."""
    lines = []
    for engine in RELEASES:
        found = classes_of(engine)
        rows = ",\n".join(
            f"        {json.dumps(name)}: {json.dumps(found['classes'][name])}"
            for name in sorted(found["classes"])
        )
        head = json.dumps({"source": found["source"], "releases": found["releases"]}, indent=2)
        head = head.removesuffix("\n}").replace("\n", "\n    ")
        lines.append(f'    "{engine}": {head},\n      "classes": {{\n{rows}\n      }}\n    }}')
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    body = ",\n".join(lines)
    TARGET.write_text(f'{{\n  "date": "{date}",\n  "engines": {{\n{body}\n  }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()

"""Record the environment variables that vLLM and SGLang define.

Writes ``catalog/inference_catalog/data/environment_names.json``. Run it after a change of the pinned
engines:

    .venv/bin/python scripts/record_environment_names.py

It reads one module from each engine's wheel over HTTP and never imports it.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import inference_catalog as catalog
from inference_catalog.engine_wheels.environment_names import ENVIRONMENT_MODULES
from inference_catalog.engine_wheels.wheels import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/environment_names.json"


def main() -> None:
    engines = {}
    for name, module in ENVIRONMENT_MODULES.items():
        release = catalog.engine(name).engine_version
        with open_remote_wheel(f"{name}=={release}") as wheel:
            names = module.names(wheel)
        engines[name] = {
            "prefix": module.prefix,
            "release": release,
            "names": names,
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "source": f"{module.path} of the wheel {name} {release} on PyPI",
        }
    TARGET.write_text(json.dumps({"engines": engines}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Record the environment variables that vLLM and SGLang define.

Writes ``catalog/inference_catalog/data/environment_names.json``. Run it after a change of the pinned
engines:

    .venv/bin/python scripts/record_environment_names.py

It reads one module from each engine's wheel over HTTP and never imports it.
"""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import inference_catalog as catalog
from inference_catalog.engine_wheels.wheels import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/environment_names.json"
#: By the blueprint's key: package, module, prefix of its names, and the line that defines a name.
ENGINES = {
    "vllm": ("vllm", "vllm/envs.py", "VLLM_", r'^    "(VLLM_[A-Z0-9_]+)":'),
    "sglang": ("sglang", "sglang/srt/environ.py", "SGLANG_", r"^    (SGLANG_[A-Z0-9_]+) *="),
}


def main() -> None:
    engines = {}
    for name, (package, module, prefix, pattern) in ENGINES.items():
        release = catalog.engine(name).engine_version
        with open_remote_wheel(f"{package}=={release}") as wheel:
            text = wheel.read(module).decode("utf-8")
        engines[name] = {
            "prefix": prefix,
            "release": release,
            "names": sorted(set(re.findall(pattern, text, re.MULTILINE))),
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "source": f"{module} of the wheel {package} {release} on PyPI",
        }
    TARGET.write_text(json.dumps({"engines": engines}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

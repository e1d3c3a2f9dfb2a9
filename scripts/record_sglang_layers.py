"""Record what SGLang's own classes allocate, and how its pools divide memory, for the tests of the counting.

    .venv/bin/python scripts/record_sglang_layers.py GROUP [--only NAME] [--packages FOLDER]

GROUP is catalogue, classes or heldOut, as of `record_model_layers.py`, or fourDevices: entries whose heads 8
devices cannot divide. Each writes ``tests/unit/catalog/recorded_sglang/GROUP.json``.

SGLang runs with the Python and PyTorch of vLLM's environment, which `record_model_layers.py` installs. Its
wheel and the packages that it needs besides go to FOLDER, by default a new one (230 MB). What only a machine
with a GPU has is pretended (`sglang_inside.py`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from record_engine_flags import required_engine_version
from record_model_layers import Group, models_of, record, update

from inference_local.serving.vllm_cpu.installation import VLLM

RECORDED = Path(__file__).resolve().parents[1] / "tests/unit/catalog/recorded_sglang"
_INSIDE = Path(__file__).with_name("sglang_inside.py")

GROUPS: Mapping[str, Group] = {
    "catalogue": Group(("9.0",), (1, 8), ("auto", "fp8_e4m3")),
    "classes": Group(("9.0",), (1, 8), ("auto",)),
    "heldOut": Group(("9.0",), (1, 8), ("auto", "fp8_e4m3")),
    "fourDevices": Group(("9.0",), (4,), ("auto",), names=r"google/gemma-4-E.B-it"),
}
#: What SGLang 0.5.21 requires in a release of its own, and what vLLM's environment does not have.
_PACKAGES = (
    "compressed-tensors==0.18.0",
    "easydict==1.14",
    "gguf==0.19.0",
    "orjson==3.13.0",
    "tokenizers==0.22.2",
    "transformers==5.12.1",
    "xxhash==4.1.0",
    "zstandard==0.25.0",
)


def install(folder: Path, python: Path, release: str) -> None:
    """Install SGLang's wheel and what it needs, without what they require, into a folder."""
    words = ("pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--python", str(python))
    target = ("--target", str(folder), f"sglang=={release}", *_PACKAGES)
    subprocess.run([sys.executable, "-m", "uv", *words, *target], check=True)


def main() -> None:
    """Record a group."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("group", choices=GROUPS)
    options.add_argument("--only", metavar="NAME", help="a pattern of names to record again")
    options.add_argument("--packages", type=Path, metavar="FOLDER", help="keep the installed packages here")
    chosen = options.parse_args()
    group = GROUPS[chosen.group]
    models = models_of("catalogue" if chosen.group == "fourDevices" else chosen.group)
    release, python = required_engine_version("sglang"), VLLM.python(print)
    with tempfile.TemporaryDirectory(prefix="sglang-") as temporary:
        folder = chosen.packages or Path(temporary)
        if not (folder / f"sglang-{release}.dist-info").exists():
            install(folder, python, release)
        program = [python, _INSIDE]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        update(
            RECORDED / f"{chosen.group}.json",
            f"sglang {release}",
            # Arguments of a model are those of vLLM.
            [model | {"arguments": {}} for model in models if re.fullmatch(group.names, model["name"])],
            lambda models: record(program, models, group, environment),
            chosen.only,
        )


if __name__ == "__main__":
    main()

"""Record the flags of ``vllm serve`` in AWS's vLLM images for Neuron.

Writes ``catalog/inference_catalog/data/engines/vllmNeuron.json`` and, for the accelerators that the newest
image leaves out, a file in the folder of the same name. Run it again after a change of `IMAGES`:

    .venv/bin/python scripts/record_neuron_flags.py

The plug-in adds no flags of its own: its settings are keys of ``--additional-config``
(``vllm-neuron/docs/guides/reference-configuration.md`` of aws-neuron/aws-neuron-sdk). So the flags are those
of vLLM's wheel of the release in the image, which is never imported. PyPI's packages named after the plug-in
are empty.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

from record_engine_flags import TARGETS, owned_tables

from inference_catalog.engine_wheels.flag_definitions import (
    VLLM_ARGUMENTS,
    Flags,
    vllm_flags,
    vllm_server_flags,
    vllm_server_module,
)
from inference_catalog.engine_wheels.release_file import table_text
from inference_catalog.engine_wheels.wheels import open_remote_wheel

#: The blueprint's key of the engine.
OWNER = "vllmNeuron"
REPOSITORY = "public.ecr.aws/neuron/pytorch-inference-vllm-neuronx"
LIST = (
    "README.md (vllm-inference-neuronx) of github.com/aws-neuron/deep-learning-containers at "
    "2be9ed1d5da9d7c8e15d7abac1eb7f550ed3a723, 2026-08-17"
)


@dataclass(frozen=True)
class NeuronImage:
    """An image of AWS's list."""

    tag: str
    vllm: str
    """Release of vLLM in it."""
    accelerators: tuple[str, ...]
    """Accelerators of the catalogue that the list names for it and that a newer image does not serve."""
    target: str
    """File below the folder of engines."""


IMAGES = (
    NeuronImage(
        "0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04", "0.24.0", ("trainium2",), "vllmNeuron.json"
    ),
    NeuronImage(
        "0.16.0-neuronx-py312-sdk2.31.1-ubuntu24.04",
        "0.16.0",
        ("inferentia2", "trainium"),
        "vllmNeuron/0.16.0-sdk2.31.1.json",
    ),
)


def recorded(image: NeuronImage, target: Path) -> str:
    """Return the file of an image, with what the plan owns as it stands in the present one."""
    with open_remote_wheel(f"vllm=={image.vllm}") as wheel:
        flags: Flags = vllm_flags(wheel)
        server_flags: Flags = vllm_server_flags(wheel)
        module = vllm_server_module(wheel)
    document = {
        "image": REPOSITORY,
        "version": image.tag,
        "digest": None,
        "engine_version": image.vllm,
        "accelerators": image.accelerators,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"vllm {image.vllm} ({VLLM_ARGUMENTS} and {module} of its wheel)",
        "image_source": LIST,
    }
    tables = {"flags": flags, "server_flags": server_flags}
    parts = [json.dumps(document, indent=2).removesuffix("\n}")]
    for key, table in tables.items():
        parts.append(table_text(key, {name: flag | {"owner": OWNER} for name, flag in table.items()}))
    return ",\n".join([*parts, *owned_tables(target)]) + "\n}\n"


def main() -> None:
    """Record the flags of each image."""
    for image in IMAGES:
        target = TARGETS / image.target
        Path(target.parent).mkdir(exist_ok=True)
        target.write_text(recorded(image, target), encoding="utf-8")
        print(f"{target}: vllm {image.vllm}")


if __name__ == "__main__":
    main()

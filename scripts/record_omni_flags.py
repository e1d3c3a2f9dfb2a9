"""Record the flags of ``vllm serve --omni``.

Writes ``catalog/inference_catalog/data/engines/vllmOmni.json``. Run it again after a change of the
release below:

    .venv/bin/python scripts/record_omni_flags.py [--digest sha256:…]

The flags are those of vLLM and those that vLLM-Omni adds, read from both wheels, which are never imported.
vLLM-Omni's releases have the number of the vLLM that they are built for (``vllm_omni/version.py``).
"""

from __future__ import annotations

import argparse
import datetime
import json

from record_engine_flags import TARGETS, owned_tables

from inference_catalog.engine_wheels.flag_definitions import (
    OMNI_ARGUMENTS,
    VLLM_ARGUMENTS,
    omni_flags,
    vllm_flags,
    vllm_server_flags,
    vllm_server_module,
)
from inference_catalog.engine_wheels.release_file import table_text
from inference_catalog.engine_wheels.wheels import open_wheel

#: The blueprint's key of the engine.
OWNER = "vllmOmni"
RELEASE = "0.30.0"
IMAGE = "docker.io/vllm/vllm-omni"
IMAGE_SOURCE = (
    "docs/getting_started/installation/gpu/cuda.inc.md of github.com/vllm-project/vllm-omni: official images "
    "vllm/vllm-omni on Docker Hub, with the release as tag; v0.30.0 in the run of 2026-10-06 that "
    "artifacts/live/verify233-rtxpro6000-20261006/REPORT.md of github.com/metrum-ai/bench-cli records"
)


def main() -> None:
    """Record the flags and write the engine's file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--digest", help="manifest digest of the image, sha256:…, if it is known")
    given = options.parse_args()
    vllm, omni = open_wheel(f"vllm=={RELEASE}"), open_wheel(f"vllm-omni=={RELEASE}")
    flags = vllm_flags(vllm.archive) | omni_flags(omni.archive)
    server_flags = vllm_server_flags(vllm.archive)
    document = {
        "image": IMAGE,
        "version": f"v{RELEASE}",
        "digest": given.digest,
        "engine_version": RELEASE,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source": f"vllm-omni {RELEASE} ({OMNI_ARGUMENTS} of its wheel, {omni.digest}) and vllm {RELEASE} "
        f"({VLLM_ARGUMENTS} and {vllm_server_module(vllm.archive)} of its wheel, {vllm.digest})",
        "image_source": IMAGE_SOURCE,
    }
    head = json.dumps(document, indent=2).removesuffix("\n}")
    tables = {"flags": flags, "server_flags": server_flags}
    owned = {
        key: {name: flag | {"owner": OWNER} for name, flag in each.items()} for key, each in tables.items()
    }
    parts = [head, *(table_text(key, table) for key, table in owned.items())]
    target = TARGETS / f"{OWNER}.json"
    parts += owned_tables(target)
    target.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(
        f"{target}: {len(flags)} flags of vllm-omni {RELEASE} and {len(server_flags)} of the server of vllm"
    )


if __name__ == "__main__":
    main()

"""Builds the programs that are not in the cache: ``python -m inference_blueprints.local.control_plane``."""

from __future__ import annotations

import argparse
import sys

from inference_blueprints.errors import UserError
from inference_blueprints.local.control_plane import artefacts, build


def main() -> int:
    """Build programs and copy files, with one line of output each. Then free the disk space of the build."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keda", action="store_true", help="build KEDA as well, for make test-scaling")
    keda = artefacts.KEDA_PROGRAMS if parser.parse_args().keda else ()
    try:
        for row in (*artefacts.PROGRAMS, *keda):
            build.program(row, _print)
        for files in (
            artefacts.KWOK_STAGES,
            artefacts.LEADER_WORKER_SET_WEBHOOKS,
            artefacts.KARPENTER_EXAMPLES,
            *artefacts.CUSTOM_RESOURCES,
            *artefacts.CHARTS,
        ):
            build.module_files(files, _print)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    build.remove_build_cache()
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

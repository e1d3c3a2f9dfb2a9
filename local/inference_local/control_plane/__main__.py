"""Builds the programs that are not in the cache: ``python -m inference_local.control_plane``."""

from __future__ import annotations

import argparse
import sys

from inference_contracts.errors import UserError
from inference_local.control_plane import artefacts, build
from inference_local.serving.llama_cpp import server_build

_PROGRAMS = {row.name: row for row in (artefacts.ETCD, artefacts.PROMETHEUS, *artefacts.PROGRAMS)}
_FILES = (
    artefacts.KWOK_STAGES,
    artefacts.LEADER_WORKER_SET_WEBHOOKS,
    artefacts.KARPENTER_EXAMPLES,
    artefacts.KARPENTER_REPAIR,
    *artefacts.CUSTOM_RESOURCES,
    *artefacts.CHARTS,
)


def main() -> int:
    """Build programs and copy files, and report each. Then free the disk space of the build."""
    options = _parser().parse_args()
    programs = options.only or tuple(_PROGRAMS.values())
    keda = artefacts.KEDA_PROGRAMS if options.keda else ()
    try:
        for row in (*programs, *keda):
            build.program(row, _print)
        for files in () if options.only else _FILES:
            build.module_files(files, _print)
        if options.llama:
            server_build.llama_server(_print)
            server_build.llama_quantize(_print)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    build.remove_build_cache()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference_local.control_plane")
    parser.add_argument(
        "--only",
        type=_named,
        default=(),
        metavar="NAME,...",
        help=f"build only these programs, and copy no definitions and charts: {', '.join(_PROGRAMS)}",
    )
    parser.add_argument("--keda", action="store_true", help="build KEDA as well, for make test-scaling")
    parser.add_argument(
        "--llama", action="store_true", help="build llama.cpp's programs as well, for make test-llama"
    )
    return parser


def _named(names: str) -> tuple[artefacts.Program, ...]:
    unknown = set(names.split(",")) - _PROGRAMS.keys()
    if unknown:
        raise argparse.ArgumentTypeError(
            f"got {', '.join(sorted(unknown))}; allowed are {', '.join(_PROGRAMS)}, separated by commas"
        )
    return tuple(_PROGRAMS[name] for name in names.split(","))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

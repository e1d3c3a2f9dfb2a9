"""Builds llama.cpp's programs from their source, once per machine and set of processor instructions."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.processes.checked_folder import made_once
from inference_local.processes.child_processes import ended_with_this
from inference_local.serving.llama_cpp.source_archive import BUILD, cache_folder, unpacked_source

SERVER, QUANTIZE = "llama-server", "llama-quantize"
# What announces a build before it starts; measured on 2026-11-27: 1,103 s.
_DURATION = "about 18 minutes on two processors"
#: Without the web page, which the build would download, and without HTTPS, which nothing here needs. The
#: compiler optimises little: the build takes most of the time of a first run, and the models here are tiny.
_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DLLAMA_ALL_WARNINGS=OFF",
    "-DGGML_ALL_WARNINGS=OFF",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DGGML_NATIVE=OFF",
)
#: Options of instructions, by the flags in /proc/cpuinfo that a processor with them has. They are chosen here
#: and not by the compiler, so that the name of the folder contains them.
_INSTRUCTIONS = {
    "GGML_SSE42": {"sse4_2"},
    "GGML_AVX": {"avx"},
    "GGML_AVX2": {"avx2"},
    "GGML_BMI2": {"bmi2"},
    "GGML_FMA": {"fma"},
    "GGML_F16C": {"f16c"},
    "GGML_AVX512": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
}
_PROGRAMS = ("cmake", "ninja", "c++")
_SHOWN_LINES = 15
# A build must not slow down the machine.
_NICENESS = 10


def llama_server(report: Report) -> Path:
    """Return the program llama-server. The first use builds it.

    report: Called with a line for the cache hit, or for the build and its duration.
    Returns: The program, in a folder whose content matches its checksums.
    Raises UserError if a program for the build is missing, the source cannot be downloaded, or the build
        fails.
    """
    if not is_built():
        report(
            f"{SERVER} {BUILD} is built from source once, which takes {_DURATION}; simulated engines need no "
            "build: --engines simulated"
        )
    return _built(SERVER, report)


def llama_quantize(report: Report) -> Path:
    """Return the program llama-quantize, which only tests need. The first use builds it."""
    return _built(QUANTIZE, report)


def is_built() -> bool:
    """Return whether llama-server is in the cache."""
    return _folder(SERVER).is_dir()


def instruction_options(flags: Iterable[str]) -> tuple[str, ...]:
    """Return the options of CMake that switch instructions on or off.

    flags: Flags of the processor, as in /proc/cpuinfo.
    """
    has = set(flags)
    return tuple(f"-D{name}={'ON' if needed <= has else 'OFF'}" for name, needed in _INSTRUCTIONS.items())


def _options() -> tuple[str, ...]:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    line = next((line for line in text.splitlines() if line.startswith("flags")), "flags:")
    return (*_OPTIONS, *instruction_options(line.partition(":")[2].split()))


def _built(program: str, report: Report) -> Path:
    title = f"{program} {BUILD}"
    return made_once(_folder(program), title, lambda draft: _build(program, draft, report), report) / program


def _folder(program: str) -> Path:
    recipe = hashlib.sha256(json.dumps([BUILD, _options()]).encode()).hexdigest()[:12]
    return cache_folder() / f"{program.removeprefix('llama-')}-{BUILD}-{recipe}"


def _build(program: str, draft: Path, report: Report) -> None:
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        raise UserError(
            f"{program} {BUILD} is built from source, which needs {', '.join(_PROGRAMS)}; missing: "
            f"{', '.join(missing)}; install a C++ compiler, and CMake and Ninja, of which PyPI has wheels"
        )
    source = unpacked_source(report)
    with tempfile.TemporaryDirectory(prefix="llama-cpp-build-") as name:
        folder = Path(name)
        _run(["cmake", "-S", str(source), "-B", name, "-G", "Ninja", *_options()])
        _run(["cmake", "--build", name, "--target", program, "--parallel", str(os.cpu_count() or 1)])
        _run(["strip", "-o", str(draft / program), str(folder / "bin" / program)])


def _run(command: list[str]) -> None:
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process,
        ended_with_this(process),
    ):
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        output, _ = process.communicate()
    if process.returncode:
        lines = "\n  ".join(output.splitlines()[-_SHOWN_LINES:])
        raise UserError(f"llama.cpp {BUILD} could not be built: {' '.join(command[:2])} failed:\n  {lines}")

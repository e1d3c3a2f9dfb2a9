"""Mounts of a task, in a mount namespace of its own."""

from __future__ import annotations

from pathlib import Path

from inference_local.processes.child_processes import ProcessGroup, log_tail
from inference_local.serving.isolation import Mount, open_isolation, started_in, with_mounts

_PATIENCE_SECONDS = 240.0
_PATHS = ("/inference-test", "/var/inference-test/copy")
_LOOK = """
cat /inference-test/file && ! touch /inference-test/new && touch /var/inference-test/copy/new &&
  ls /proc/driver && test -d /usr && test "$PWD" = "$1" && test -r "$0"
"""


def test_a_task_finds_folders_at_its_own_paths_and_the_machine_does_not(tmp_path: Path) -> None:
    source, other = tmp_path / "source", tmp_path / "other"
    for folder in (source, other):
        folder.mkdir()
    (source / "file").write_text("text\n")
    mounts = [
        Mount(source, _PATHS[0], read_only=True),
        Mount(other, _PATHS[1]),
        Mount(source, "/proc/driver"),
    ]
    command = ["/bin/sh", "-c", _LOOK, str(tmp_path / "source/file"), str(tmp_path)]
    with ProcessGroup() as processes:
        isolation = open_isolation(started_in(processes, tmp_path / "network.log"), as_root=True)
        assert isolation.holder is not None, isolation.reason
        log = tmp_path / "task.log"
        task = processes.start(
            "task",
            isolation.command(with_mounts(command, mounts, tmp_path)),
            environment={"PATH": "/usr/bin:/bin"},
            log_path=log,
            working_directory=tmp_path,
        )
        assert task.popen.wait(_PATIENCE_SECONDS) == 0, log_tail(log)
    lines = log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("text", "file")
    assert "Read-only file system" in lines[1]
    assert (other / "new").is_file()
    assert not any(Path(path).exists() for path in _PATHS)
    assert list((tmp_path / "root").iterdir()) == []

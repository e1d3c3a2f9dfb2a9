"""The namespace with the rights that a user may have: root, an ordinary user, and none at all."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_local.processes.child_processes import ProcessDied, ProcessGroup
from inference_local.serving import isolation as isolation_module
from inference_local.serving.isolation import open_isolation, started_in

_ROOT = Path(__file__).parents[4]
_AS_ROOT = ("unshare", "--user", "--map-root-user")
_AS_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
# The kernel refuses namespaces above this limit, which counts for the wrapper's user namespace alone.
_CLOSED = (*_AS_ROOT, "sh", "-c", 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', "sh")
# Runs a command in the isolation and prints what that command sees.
_PROGRAM = """
import json, sys
from pathlib import Path
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.isolation import open_isolation, started_in
LOOK = '''
import json, os, socket
from pathlib import Path
listener = socket.create_server(("127.0.0.1", 0))
socket.create_connection(listener.getsockname()).close()
devices = [line.split(":")[0].strip() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps({"user": os.getuid(), "devices": devices, "capabilities": int(status["CapEff"], 16)}))
'''
directory = Path(sys.argv[1])
with ProcessGroup(grace_seconds=1) as group:
    isolation = open_isolation(started_in(group, directory / "holder.log"))
    command = isolation.command([sys.executable, "-I", "-S", "-c", LOOK])
    process = group.start("look", command, environment={}, log_path=directory / "look.log")
    assert process.popen.wait(120) == 0, (directory / "look.log").read_text()
    print(json.dumps({"reason": isolation.reason, **json.loads((directory / "look.log").read_text())}))
"""


def _look(directory: Path, wrapper: tuple[str, ...], *needed: str) -> dict[str, Any]:
    """Open the isolation with the rights that the wrapper leaves; `needed` must be possible with them."""
    possible = subprocess.run([*wrapper, *needed, "true"], capture_output=True, text=True, check=False)
    if possible.returncode != 0:
        pytest.skip(f"this machine does not let its users do that: {possible.stderr.strip()}")
    command = [*wrapper, sys.executable, "-c", _PROGRAM, str(directory)]
    answer = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert answer.returncode == 0, answer.stderr
    seen: dict[str, Any] = json.loads(answer.stdout)
    return seen


@pytest.mark.parametrize("wrapper", [_AS_ROOT, _AS_USER], ids=["root", "user"])
def test_commands_see_loopback_alone_and_it_works(tmp_path: Path, wrapper: tuple[str, ...]) -> None:
    seen = _look(tmp_path, wrapper, "unshare", "--user", "--net")
    assert seen["reason"] == ""
    assert seen["devices"] == ["lo"]


def test_a_user_stays_that_user_and_gains_no_rights(tmp_path: Path) -> None:
    seen = _look(tmp_path, _AS_USER, "unshare", "--user", "--net")
    assert (seen["user"], seen["capabilities"]) == (1000, 0)


def test_where_namespaces_are_closed_commands_run_in_the_open_and_the_reason_is_known(tmp_path: Path) -> None:
    seen = _look(tmp_path, _CLOSED)
    assert seen["reason"] == "No space left on device"  # what the kernel calls a limit that is reached
    assert seen["devices"] != ["lo"] or Path("/proc/net/dev").read_text().count(":") == 1


def test_a_holder_that_breaks_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation_module, "_PROGRAM", [sys.executable, "-c", "raise SystemExit('broken')"])
    with ProcessGroup(grace_seconds=1) as group, pytest.raises(ProcessDied, match="broken"):
        open_isolation(started_in(group, tmp_path / "holder.log"))

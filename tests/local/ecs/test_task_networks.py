"""Networks of hosts and tasks, in a network namespace of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inference_local.processes.child_processes import ProcessGroup, log_tail
from inference_local.serving.isolation import open_isolation, started_in

_PATIENCE_SECONDS = 120.0
PROGRAM = """
import json, pathlib, subprocess, sys, time
from inference_local.emulator.ecs.network.task_networks import OwnNetworks
from inference_local.processes.child_processes import ProcessGroup

folder = pathlib.Path(sys.argv[1])
SERVE = "import http.server as h; h.HTTPServer(('0.0.0.0', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
ASK = '''
import sys, time, urllib.request
for _ in range(int(sys.argv[2])):
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=2).status); break
    except OSError as error:
        said = str(error); time.sleep(0.1)
else:
    print(said)
'''
with ProcessGroup() as processes:
    networks = OwnNetworks(processes, folder / "networks.log")
    places = {"task-1": "10.64.0.1", "task-2": "10.64.0.2"}
    for name, address in places.items():  # both listen on every interface, on the same port
        command = networks.command(name, address, [sys.executable, "-c", SERVE])
        processes.start(name, command, environment={}, log_path=folder / f"{name}.log")
    def asked(command):
        return subprocess.run(command, capture_output=True, text=True, env={}).stdout.strip()
    def ask(name, url, tries=600):
        return asked(networks.command(name, places[name], [sys.executable, "-c", ASK, url, str(tries)]))
    found = {
        "other": ask("task-1", "http://10.64.0.2:8000"),
        "own": ask("task-2", "http://127.0.0.1:8000"),
        "here": asked([sys.executable, "-c", ASK, "http://10.64.0.1:8000", "600"]),
    }
    networks.cut("task-2")
    found["lost"] = ask("task-1", "http://10.64.0.2:8000", 1)
    (folder / "result.json").write_text(json.dumps(found))
"""


def test_each_task_has_an_address_and_all_ports(tmp_path: Path) -> None:
    with ProcessGroup() as processes:
        isolation = open_isolation(started_in(processes, tmp_path / "network.log"), as_root=True)
        assert isolation.holder is not None, isolation.reason
        names = tmp_path / "names"
        names.write_text("10.64.0.1 discovery.internal\n")
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        run = processes.start(
            "tasks", isolation.command(command, names), environment={}, log_path=tmp_path / "tasks.log"
        )
        assert run.popen.wait(_PATIENCE_SECONDS) == 0, log_tail(tmp_path / "tasks.log")
        reads = [sys.executable, "-c", "import socket; print(socket.gethostbyname('discovery.internal'))"]
        asked = processes.start(
            "name", isolation.command(reads, names), environment={}, log_path=tmp_path / "name.log"
        )
        assert asked.popen.wait(_PATIENCE_SECONDS) == 0
    found = json.loads((tmp_path / "result.json").read_text())
    lost = found.pop("lost")
    assert found == {"other": "200", "own": "200", "here": "200"}
    assert lost != "200"
    assert (tmp_path / "name.log").read_text() == "10.64.0.1\n"

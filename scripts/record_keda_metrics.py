"""Record the metrics of the real KEDA: one ScaledObject that it can read, and one whose trigger always fails.

    .venv/bin/python scripts/record_keda_metrics.py

It writes `keda_operator_1.prom`, `keda_operator_2.prom`, a minute later, and `keda_adapter.prom` to
tests/local/monitoring/recorded: KEDA's own metrics, without those of Go's runtime and of the client of the
API server. KEDA and a control plane are built once, see `make test-scaling`.
"""

from __future__ import annotations

import re
import tempfile
import time
import urllib.request
from pathlib import Path

from inference_local.control_plane import definitions
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster.autoscaling.branches import Branch
from tests.cluster.autoscaling.keda import CONTROLLER_FLAGS, api_server_flags, keda
from tests.cluster.autoscaling.scaled_deployments import branch_deployment, in_namespace, roomy_node
from tests.cluster.autoscaling.scripted_prometheus import ScriptedPrometheus, serving
from tests.cluster.state import namespace_object

FOLDER = Path(__file__).resolve().parent.parent / "tests/local/monitoring/recorded"
BETWEEN_SECONDS = 60
_NAMESPACE = "inference"
_OWN = re.compile("(# (HELP|TYPE) )?keda_")
_WINDOW = ("0 0 1 1 *", "1 0 1 1 *")
_FAILED = re.compile(r'^keda_scaler_detail_errors_total\{.*scaledObject="failing".*\} [1-9]', re.MULTILINE)
_READ = re.compile(r'^keda_scaler_metrics_value\{.*scaledObject="working".*\} [1-9]', re.MULTILINE)
_BRANCHES = (
    Branch(name="working", start=1, scripts={"tokens": [(0, 500.0)]}, numbers=[1]),
    Branch(name="failing", start=1, scripts={"tokens": [(0, None)]}, numbers=[1]),
)


def main() -> None:
    """Run KEDA, wait until it has read and failed to read, and write what it reports."""
    prometheus = ScriptedPrometheus(
        {f"{each.name}/{trigger}": script for each in _BRANCHES for trigger, script in each.scripts.items()}
    )
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        flags = api_server_flags(folder / "front-proxy")
        plane = ControlPlane(folder, report=print, api_server_flags=flags, controller_flags=CONTROLLER_FLAGS)
        with plane, serving(prometheus):
            definitions.install(plane.kubectl, print)
            plane.kubectl.apply([roomy_node(), namespace_object(_NAMESPACE)])
            plane.kubectl.apply([branch_deployment(each, _NAMESPACE) for each in _BRANCHES])
            with keda(plane) as metrics:
                plane.kubectl.apply(
                    [
                        in_namespace(each.manifest(prometheus.address, _WINDOW), _NAMESPACE)
                        for each in _BRANCHES
                    ]
                )

                def reported() -> bool:
                    text = _text(metrics.operator)
                    return bool(_FAILED.search(text) and _READ.search(text))

                plane.kubectl.wait_until(reported, "KEDA's metrics of both objects")
                _write("keda_operator_1", metrics.operator)
                time.sleep(BETWEEN_SECONDS)
                _write("keda_operator_2", metrics.operator)
                _write("keda_adapter", metrics.adapter)


def _text(url: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as response:
        text: str = response.read().decode()
    return text


def _write(name: str, url: str) -> None:
    lines = _text(url).splitlines(keepends=True)
    own = [line for line in lines if _OWN.match(line)]
    (FOLDER / f"{name}.prom").write_text("".join(own), encoding="utf-8")


if __name__ == "__main__":
    main()

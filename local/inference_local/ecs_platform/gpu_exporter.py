"""A stand-in for NVIDIA's exporter of GPU metrics: it lists the GPUs of its host, which do nothing.

It serves one series of NVIDIA/dcgm-exporter 4.8.2 (``default-counters.csv``, ``DCGM_FI_DEV_GPU_UTIL``) for
each GPU that the driver lists now. Others, such as those of errors, are absent.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from inference_blueprints.render.ecs.metrics_task import EXPORTER_PORT

_GPUS: Final = Path("/proc/driver/nvidia/gpus")


def exposition(gpus: Path) -> str:
    """Return the text of the metrics."""
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for number, path in enumerate(sorted(gpus.glob("*/information"))):
        identifier = path.read_text(encoding="utf-8").split()[-1]
        lines.append(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{number}",UUID="{identifier}"}} 0')
    return "\n".join(lines) + "\n"


class _ExporterHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = exposition(_GPUS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no line per request."""


if __name__ == "__main__":
    # The network of its host, in a namespace that nothing outside reaches.
    ThreadingHTTPServer(("0.0.0.0", EXPORTER_PORT), _ExporterHandler).serve_forever()  # noqa: S104

"""LiteLLM's proxy: one process without a database, with one model and one key.

Its keys and budgets need a database, and the client of that is a program that its package downloads. So
this proxy knows one key, its master key, and keeps no budget and no record of usage: that is less work
than it has in production. Its other settings are those of https://docs.litellm.ai/docs/proxy/prod
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from benchmarks.front_door import Started
from benchmarks.harness.measured_door import MeasuredWay
from benchmarks.harness.peers import litellm_check
from benchmarks.harness.peers.installed import installing, report, until_it_answers
from inference_local.environments.environment import NeededMachine, PackageEnvironment, locked_version
from inference_local.processes.free_ports import free_ports

_REQUIREMENTS: Final = Path(__file__).with_name("litellm_requirements.txt")
LITELLM: Final = PackageEnvironment(
    name="litellm",
    title=f"LiteLLM {locked_version(_REQUIREMENTS, 'litellm')}",
    requirements=_REQUIREMENTS,
    installed_bytes=800_000_000,
    downloaded_bytes=200_000_000,
    duration="half a minute",
    check=Path(litellm_check.__file__),
    machine=NeededMachine({"x86_64": "x86-64", "aarch64": "arm64"}, ((3, 11),), cpu_flags={}),
)
_KEY: Final = "sk-benchmark"


def start(started: Started) -> MeasuredWay:
    """Start it. Raises BenchmarkError if it cannot be installed, or does not start."""
    with installing(LITELLM.title):
        python = LITELLM.python(report)
    [port] = free_ports(1)
    folder = started.folder / "litellm"
    folder.mkdir()
    target = {
        "model": "openai/m",
        "api_base": f"http://127.0.0.1:{started.model}/v1",
        "api_key": "none",
    }
    configuration = {
        "model_list": [{"model_name": "m", "litellm_params": target}],
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": _KEY},
    }
    (folder / "configuration.yaml").write_text(json.dumps(configuration))
    process = started.processes.start(
        "litellm",
        [
            python.with_name("litellm"),
            *("--config", folder / "configuration.yaml"),
            *("--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"),
        ],
        environment={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            # Its prices are those in the package: it would fetch them at the start.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_LOG": "ERROR",
            "LITELLM_MODE": "PRODUCTION",
        },
        log_path=folder / "litellm.log",
        working_directory=folder,
    )
    way = MeasuredWay("litellm", port, (("authorization", f"Bearer {_KEY}"),), (process.pid,))
    return until_it_answers(way, started.processes)

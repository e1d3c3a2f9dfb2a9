"""What the CloudWatch agent of the cluster reads from a real Prometheus, asked as its configuration says."""

from __future__ import annotations

import re
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from inference_blueprints.render.eks.insights_configuration import insights_configuration
from inference_blueprints.render.monitoring.recordings import recordings
from inference_catalog.catalogue import shipped
from inference_contracts.metric_labels import GPU_JOB, KEDA_JOB, RECORDED_JOB
from tests.local.monitoring.asked import alarm_queries, panel_queries, quickstart
from tests.local.monitoring.exporters import PLATFORM, served_files
from tests.local.monitoring.live import LivePlatform, live_platform

_PATIENCE_SECONDS = 120.0
#: Recorded output of exporters that do not run here.
_EXPORTERS = {"dcgm_l40s_idle.prom": GPU_JOB, "keda_operator_2.prom": KEDA_JOB}


def _job() -> dict[str, Any]:
    """Return the rendered job of the agent that reads recorded series."""
    configuration = insights_configuration(
        region="us-east-1", cluster_name=PLATFORM, gpu_namespace=None, traces=False
    )
    (job,) = [
        job
        for agent in configuration["agents"]
        if "otelConfig" in agent
        for job in agent["otelConfig"]["receivers"]["prometheus/platform"]["config"]["scrape_configs"]
        if job["job_name"] == RECORDED_JOB
    ]
    found: dict[str, Any] = job
    return found


def _federated(live: LivePlatform) -> Counter[str]:
    """Ask Prometheus as the agent does; return how many series each name has."""
    job = _job()
    url = f"{live.prometheus.base_url}{job['metrics_path']}?{urlencode(job['params'], doseq=True)}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=_PATIENCE_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    return Counter(re.split(r"[{ ]", line, maxsplit=1)[0] for line in lines if not line.startswith("#"))


def test_the_agent_gets_what_alarms_and_dashboards_ask_for_and_nothing_else(tmp_path: Path) -> None:
    recorded = {name for recording in recordings() for name in recording.series}
    queries = [*alarm_queries(quickstart()).values(), *panel_queries(PLATFORM).values()]
    asked = {word for query in queries for word in re.findall(r"\w+", query)} & recorded
    with served_files(_EXPORTERS) as targets, live_platform(tmp_path, list(targets.values())) as live:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while missing := asked - set(federated := _federated(live)):
            assert time.monotonic() < deadline, missing
            time.sleep(0.5)
        assert set(federated) <= recorded
        # Prometheus here drops nothing, so the selection alone keeps the many series of programs out.
        dropped = shipped().serving_metrics.dropped_names
        (many,) = live.prometheus.query(f'count({{__name__=~"{dropped}"}})')
        assert many.value > sum(federated.values())
        again = {name: len(live.prometheus.query(name)) for name in federated}
        assert federated == again

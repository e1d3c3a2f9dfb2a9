"""The same elastic file on EKS and on ECS: what scales it there, and its workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import yaml

from inference_blueprints.render.eks.model_values import deployment_values
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.prometheus.local_prometheus import LocalPrometheus
from inference_local.scaling.elastic_parts import elastic_roles, scrape_targets
from inference_local.scaling.elastic_run import ElasticRun
from tests.charts.renderings import run_helm
from tests.local.conformance.platforms import AGGREGATED, EcsRendering, EksRendering

MINIMUM, MAXIMUM = 1, 3


def elastic(content: dict[str, Any]) -> None:
    """Let the number of workers follow the load. A worker carries few requests within its objectives."""
    spec = content["spec"]
    spec["observability"] = {}
    spec["pools"][0]["nodes"]["max"] = MAXIMUM + 1
    [model] = spec["models"]
    model["objectives"] = {"timeToFirstTokenP90Ms": 2000, "timePerOutputTokenP90Ms": 30}
    aggregated = model["deployments"][0]["aggregated"]
    aggregated["replicas"] = {"min": MINIMUM, "max": MAXIMUM}
    aggregated["scaledBy"] = {"load": {}}


class ElasticPlatform(Protocol):
    """A platform whose workers follow the load."""

    url: str
    headers: Any
    """`url`, `headers`: See `ConformingPlatform`."""

    def serving(self) -> int:
        """Return the number of workers that serve and are not ending."""

    def why(self) -> str:
        """Return what was last decided."""

    def close(self) -> None:
        """End it."""


class ElasticEks:
    """The plan's processes, and the decisions of KEDA's stand-in over the rendered ScaledObject."""

    def __init__(self, directory: Path) -> None:
        platform = self._platform = EksRendering(directory, elastic)
        self.url, self.headers = platform.url, platform.headers
        blueprint = platform.loaded.blueprint
        records = directory / "records"
        _render(platform, records / "cluster" / "inference")
        targets = partial(scrape_targets, blueprint, platform.serving)
        prometheus = LocalPrometheus(directory / "prometheus", platform.processes, lambda _: None)
        prometheus.start(targets())
        roles = elastic_roles(blueprint, platform.serving, records)
        self._run = ElasticRun(platform.serving, prometheus, roles, targets)
        self._run.__enter__()

    def serving(self) -> int:
        return len(self._platform.running())

    def why(self) -> str:
        return str(self._run.samples[-1:])

    def close(self) -> None:
        self._run.__exit__(None, None, None)
        self._platform.close()


class ElasticEcs:
    """The rendered tasks, and target tracking by the stand-in of Application Auto Scaling."""

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        self._platform = EcsRendering(directory, report, elastic, workers=MINIMUM)
        self.url, self.headers = self._platform.url, self._platform.headers
        self._scaling = self._platform.platform.emulator.client("application-autoscaling")

    def serving(self) -> int:
        return sum(
            each["healthStatus"] == "HEALTHY" for each in self._platform.running(self._platform.service)
        )

    def why(self) -> str:
        activities = self._scaling.describe_scaling_activities(ServiceNamespace="ecs")["ScalingActivities"]
        return "; ".join(each["Cause"] for each in activities)

    def close(self) -> None:
        self._platform.close()


def _render(platform: EksRendering, folder: Path) -> None:
    """Write the objects of the deployment that scale its workers, as the emulator records them."""
    folder.mkdir(parents=True)
    plan = platform.deployment.plan
    result = run_helm(
        *("template", AGGREGATED.release),
        str(stage_chart(charts_directory() / plan.chart, folder)),
        *("--namespace", "inference", "--kube-version", "1.36"),
        values=deployment_values(plan),
    )
    assert result.returncode == 0, result.stderr
    for manifest in yaml.safe_load_all(result.stdout):
        if manifest and manifest["kind"] == "ScaledObject":
            name = manifest["metadata"]["name"]
            assert AGGREGATED.model in name
            (folder / f"scaledobject.keda.sh-{name}.yaml").write_text(yaml.safe_dump(manifest))

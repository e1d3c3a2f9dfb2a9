"""Writes third-party charts as folders, from Go modules or as stand-ins with the same name.

A local run uses no registry. If a Go module that is built anyway contains the project's chart, that chart is
installed. The other charts are replaced by charts that install only their custom resource
definitions; their controllers do not run.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import yaml

from inference_blueprints.single_build import Report
from inference_catalog.charts import Chart, charts
from inference_local.control_plane import artefacts, build
from inference_local.control_plane.definitions import Definition, definitions
from inference_local.serving.platform_parts import PlatformPart

# Files are installed unchanged: field descriptions may contain text that looks like a template.
_TEMPLATE = '{{ range $path, $_ := .Files.Glob "definitions/*.yaml" }}---\n{{ $.Files.Get $path }}\n{{ end }}'


#: Chart to its row of `artefacts.CHARTS` and its folder there.
MODULE_CHARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "karpenter": ("karpenter-chart", "charts/karpenter"),
        "kueue": ("kueue-chart", "charts/kueue"),
        "lws": ("lws-chart", "charts/lws"),
    }
)
#: Parts of those charts that are left out, per chart. They call a running controller, but no pod runs here,
#: so the API server would refuse every request that they handle.
_UNANSWERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"kueue": ("webhook", "visibility"), "lws": ("webhook",)}
)
#: Charts without a module, and the API groups of their definitions, if any. The module has a folder for
#: karpenter-crd, but its templates are symbolic links, which a module's archive leaves out.
STAND_INS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "karpenter-crd": frozenset({"karpenter.sh", "karpenter.k8s.aws"}),
        "aws-load-balancer-controller": frozenset({"elbv2.k8s.aws"}),
        "dynamo-platform": frozenset({"nvidia.com"}),
        "keda": frozenset({"keda.sh"}),
    }
)


def write_charts(directory: Path, report: Report) -> None:
    """Write a folder for each third-party chart that a platform installs.

    directory: Where the folders go, each named after its chart.
    report: Receives a line for every module that is found in the cache or copied.
    """
    directory.mkdir(parents=True, exist_ok=True)
    known = definitions(report)
    for chart in _registry_charts():
        target = directory / chart.name
        if chart.name in MODULE_CHARTS:
            name, folder = MODULE_CHARTS[chart.name]
            (row,) = (row for row in artefacts.CHARTS if row.name == name)
            shutil.copytree(
                build.module_files(row, report) / folder,
                target,
                ignore=shutil.ignore_patterns(*_UNANSWERED.get(chart.name, ())),
            )
        else:
            groups = STAND_INS.get(chart.name, frozenset())
            _write_stand_in(target, chart, [each for each in known if each["spec"]["group"] in groups])


def describe_charts(installed: Collection[str]) -> Iterator[PlatformPart]:
    """Yield the rows of the table of parts for third-party charts."""
    real = ", ".join(sorted(set(installed) & MODULE_CHARTS.keys()))
    others = ", ".join(sorted(set(installed) - MODULE_CHARTS.keys()))
    cut = ", ".join(sorted(set(installed) & _UNANSWERED.keys()))
    if real:
        without = f"; parts that need a running controller are left out of {cut}" if cut else ""
        yield PlatformPart("Third-party charts", "real", f"installed from their Go modules: {real}{without}")
    if others:
        yield PlatformPart(
            "Third-party charts without a package",
            "stubbed",
            f"replaced by charts with their custom resource definitions and no controller: {others}",
        )


def _registry_charts() -> Iterator[Chart]:
    return (chart for chart in charts().values() if chart.repository)


def _write_stand_in(target: Path, chart: Chart, definitions_: Sequence[Definition]) -> None:
    for folder in ("definitions", "templates"):
        (target / folder).mkdir(parents=True)
    about = {
        "apiVersion": "v2",
        "name": chart.name,
        "version": chart.version,
        "description": f"The custom resource definitions of {chart.name}, without its controller",
    }
    (target / "Chart.yaml").write_text(yaml.safe_dump(about))
    (target / "templates" / "definitions.yaml").write_text(_TEMPLATE)
    for each in definitions_:
        text = yaml.safe_dump(each, sort_keys=False)
        (target / "definitions" / f"{each['metadata']['name']}.yaml").write_text(text)

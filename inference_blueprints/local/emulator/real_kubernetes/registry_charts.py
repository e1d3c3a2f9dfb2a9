"""The charts of registries, as folders: out of Go modules that hold them, or stand-ins of the same name.

No registry is reached by a local run. A module that is built anyway may hold its project's chart; that chart
is installed as it is. The others are replaced by a chart that installs their custom resource definitions, so
that whatever uses these meets a real API server; their controllers do not run.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import yaml

from inference_blueprints.catalog.charts import Chart, charts
from inference_blueprints.local.control_plane import artefacts, build
from inference_blueprints.local.control_plane.definitions import Definition, definitions
from inference_blueprints.targets.local.platform_parts import PlatformPart

# Files are installed word by word: descriptions of fields may hold what looks like a template.
_TEMPLATE = '{{ range $path, $_ := .Files.Glob "definitions/*.yaml" }}---\n{{ $.Files.Get $path }}\n{{ end }}'


#: Chart to its row of `artefacts.CHARTS` and its folder there.
MODULE_CHARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "karpenter": ("karpenter-chart", "charts/karpenter"),
        "kueue": ("kueue-chart", "charts/kueue"),
        "lws": ("lws-chart", "charts/lws"),
    }
)
#: Parts of those charts that are left out, by chart: only a running controller could answer the calls that
#: they send it, and no pod runs here; the server would refuse whatever they ask about.
_UNANSWERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"kueue": ("webhook", "visibility"), "lws": ("webhook",)}
)
#: Chart without a module to the API groups whose definitions it brings, if it brings any. Of karpenter-crd
#: the module has a folder, with links in place of templates, which a module's archive leaves out.
STAND_INS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "karpenter-crd": frozenset({"karpenter.sh", "karpenter.k8s.aws"}),
        "aws-load-balancer-controller": frozenset({"elbv2.k8s.aws"}),
        "dynamo-platform": frozenset({"nvidia.com"}),
        "keda": frozenset({"keda.sh"}),
    }
)


def write_charts(directory: Path, report: build.Report) -> None:
    """Write a folder for every chart of a registry that a platform installs.

    Parameters
    ----------
    directory
        Where the folders go, each named after its chart.
    report
        Receives a line for every module that is found in the cache or copied.
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
    """Yield the lines of the table of parts about charts of registries.

    Parameters
    ----------
    installed
        Names of those that were installed.
    """
    real = ", ".join(sorted(set(installed) & MODULE_CHARTS.keys()))
    others = ", ".join(sorted(set(installed) - MODULE_CHARTS.keys()))
    cut = ", ".join(sorted(set(installed) & _UNANSWERED.keys()))
    if real:
        without = f"; without what only a running controller answers: {cut}" if cut else ""
        yield PlatformPart(
            "Charts of others", "real", f"installed as their Go module holds them: {real}{without}"
        )
    if others:
        yield PlatformPart(
            "Charts without a package",
            "stubbed",
            f"charts of the same name bring their custom resource definitions and no controller: {others}",
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

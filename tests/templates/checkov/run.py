"""checkov over templates and the objects that they bring to Kubernetes: ``make check-templates``.

checkov pins libraries that this project has newer, so it lives in an environment of its own, which uv makes
when it is first needed. Its version and a date fix every package of it, without a second lock file.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.tools import helm
from inference_catalog.charts import charts_directory, stage_chart
from tests.templates.conftest import BASE
from tests.templates.synthesis import write_templates
from tests.templates.test_validation import everything

_VERSION = "3.3.30"
_PACKAGES_UNTIL = "2026-11-20T00:00:00Z"
_ACKNOWLEDGED = Path(__file__).parent / "acknowledged.yaml"
_UV = Path(sys.executable).parent / "uv"
_NAMESPACE = "inference"
_FRAMEWORKS = ("cloudformation", "kubernetes")

Finding = tuple[str, str, str]


def main() -> int:
    """Print what is found and not acknowledged, and acknowledgements of what is no longer found."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for name, blueprint in _blueprints(folder):
            _write(blueprint, name, folder / "checked")
        findings = [each for framework in _FRAMEWORKS for each in _findings(folder / "checked", framework)]
    acknowledged = yaml.safe_load(_ACKNOWLEDGED.read_text(encoding="utf-8"))
    open_findings = sorted({f for f in findings if not any(_covers(entry, f) for entry in acknowledged)})
    unused = [entry for entry in acknowledged if not any(_covers(entry, f) for f in findings)]
    for check, name, resource in open_findings:
        print(f"{check}: {resource}: {name}")
    for entry in unused:
        print(
            f"{_ACKNOWLEDGED.name}: {entry['check']} on {entry['resource']} is not found any more; remove it"
        )
    print(f"checkov {_VERSION}: {len(findings)} findings, {len(open_findings)} of them not acknowledged")
    return 1 if open_findings or unused else 0


def _blueprints(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every shipped blueprint, one with every option that weakens something, and one over HTTPS."""
    yield from shipped().items()
    for change in (everything, _over_https):
        document = copy.deepcopy(dict(BASE))
        change(document["spec"])
        path = folder / f"{change.__name__}.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        yield change.__name__, path


def _over_https(spec: dict[str, Any]) -> None:
    """Give the load balancer a certificate."""
    arn = "arn:aws:acm:us-west-2:111122223333:certificate/0a1b2c3d"
    spec["network"] = {"certificateArn": arn, "domain": "models.example.com"}


def _write(blueprint: Path, name: str, folder: Path) -> None:
    """Write a blueprint's templates, and the objects that Kubernetes gets of them, as checkov reads them.

    Each framework has a folder of its own: checkov takes every YAML file with the word Resources for a
    template of CloudFormation.
    """
    templates = write_templates(blueprint, folder / "cloudformation" / name)
    loaded = load_blueprint(str(blueprint)).blueprint
    if loaded.spec.cluster.eks is None:
        return
    folder = folder / "kubernetes" / name
    folder.mkdir(parents=True)
    objects = [each for stack in templates.by_stack for each in templates.manifests(stack)]
    for model in build_plan(loaded).models:
        for deployment in model.deployments:
            values = folder / "values.json"
            values.write_text(
                json.dumps(deployment_values(deployment, weights_bucket="weights", certificate_arn="arn")),
                encoding="utf-8",
            )
            chart = stage_chart(charts_directory() / deployment.chart, folder / "charts")
            command: list[str | Path] = [
                helm(),
                "template",
                deployment.release,
                chart,
                "--namespace",
                _NAMESPACE,
            ]
            rendered = subprocess.run(
                [*command, "--values", values], capture_output=True, text=True, check=True
            ).stdout
            values.unlink()
            objects += [_as_installed(each) for each in yaml.safe_load_all(rendered) if each]
    objects += [pod for each in objects for pod in _pods(each)]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")


def _as_installed(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a chart with the namespace that Helm gives to one without."""
    return {**item, "metadata": {"namespace": _NAMESPACE, **item["metadata"]}}


def _pods(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pods that Dynamo's operator makes of a graph: checkov does not look into its templates."""
    if graph["kind"] == "DynamoGraphDeployment":
        for component in graph["spec"]["components"]:
            metadata = {"name": component["name"], "namespace": _NAMESPACE}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": component["podTemplate"]["spec"],
            }


def _findings(folder: Path, framework: str) -> list[Finding]:
    """Return check, its name and the resource of everything that checkov finds."""
    words = ["tool", "run", "--quiet", "--exclude-newer", _PACKAGES_UNTIL, "--python", sys.executable]
    checkov = ["--from", f"checkov=={_VERSION}", "checkov", "--directory", str(folder / framework)]
    options = ["--framework", framework, "--skip-download", "--quiet", "--output", "json"]
    ran = subprocess.run(
        [str(_UV), *words, *checkov, *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LOG_LEVEL": "ERROR"},
    )
    if not ran.stdout.strip():
        raise SystemExit(f"checkov said nothing: {ran.stderr.strip()}")
    report = json.loads(ran.stdout)
    if report["summary"]["parsing_errors"] or not report["summary"]["resource_count"]:
        raise SystemExit(f"checkov could not read {framework}: {report['summary']}\n{ran.stderr.strip()}")
    return [
        (failed["check_id"], failed["check_name"], failed["resource"])
        for failed in report["results"]["failed_checks"]
    ]


def _covers(entry: dict[str, str], finding: Finding) -> bool:
    check, _, resource = finding
    return entry["check"] == check and re.fullmatch(entry["resource"], resource) is not None


if __name__ == "__main__":
    sys.exit(main())

"""Charts that were fetched beside a blueprint are deployed as assets instead of from their repositories."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.versions import keep_lock
from inference_blueprints.spec.source import shipped
from tests.charts.repositories import put_archives
from tests.templates.synthesis import write_templates


def test_charts_that_are_there_are_deployed_as_assets(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(shipped()["quickstart-g6e"].read_text(encoding="utf-8"), encoding="utf-8")
    keep_lock(load_blueprint(str(file)), file)
    put_archives(tmp_path / "charts")
    outdir = tmp_path / "cdk.out"
    write_templates(file, outdir)
    template = json.loads((outdir / "quickstart-Platform.template.json").read_text(encoding="utf-8"))
    releases = [
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "Custom::AWSCDK-EKS-HelmChart"
    ]
    assert releases
    assert {"Repository", "Version", "Chart"}.isdisjoint(set().union(*releases))
    assets = {json.dumps(each["ChartAssetURL"]).split("/")[-1].split(".zip")[0] for each in releases}
    assert len(assets) == len(releases)
    files = json.loads((outdir / "quickstart-Platform.assets.json").read_text(encoding="utf-8"))["files"]
    folders = [outdir / files[asset]["source"]["path"] for asset in assets]
    names = {
        yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))["name"] for folder in folders
    }
    assert names == {"karpenter-crd", "karpenter", "aws-load-balancer-controller", "dynamo-platform"}

"""Charts are fetched by real helm from repositories of both kinds, checked, recorded and deployed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.catalog.charts import Chart
from inference_blueprints.catalog.releases import shipped_releases
from inference_blueprints.deployment.versions.chart_archives import fetch
from inference_blueprints.deployment.versions.locking import keep_lock
from inference_blueprints.errors import BlueprintError, UserError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.local.control_plane.certificates import Authority
from inference_blueprints.spec.shipped import shipped
from inference_blueprints.tools import helm
from tests.charts.repositories import Content, index, packed, registry, served

VERSION = "1.2.3"


@dataclass
class Served:
    """A chart in a repository."""

    chart: Chart
    content: Content
    archive: bytes

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.archive).hexdigest()}"


@pytest.fixture(params=["index", "oci"])
def repository(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A repository of each kind, which helm trusts and asks without a proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    archive = packed(tmp_path / "source", "sample", VERSION, helm())
    chart = Chart("sample", VERSION, "default", "1.30")
    if request.param == "index":
        content = index("sample", VERSION, archive)
        with served(content) as host:
            yield Served(replace(chart, repository=f"http://{host}"), content, archive)
        return
    authority = Authority(tmp_path / "authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    content = registry("charts/sample", VERSION, archive)
    with served(content, authority) as host:
        yield Served(replace(chart, repository=f"oci://{host}/charts/sample"), content, archive)


def fetched(repository: Served, folder: Path, **pins: Any) -> Path:
    [archive] = fetch({"sample": replace(repository.chart, **pins)}, folder)
    assert archive.digest == repository.digest
    return archive.path


def test_what_is_fetched_is_what_the_repository_holds(repository: Served, tmp_path: Path) -> None:
    folder = tmp_path / "charts"
    path = fetched(repository, folder, digest=repository.digest)
    assert path == folder / f"sample-{VERSION}.tgz"
    assert path.read_bytes() == repository.archive
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_what_is_there_is_not_fetched_again(repository: Served, tmp_path: Path) -> None:
    fetched(repository, tmp_path)
    repository.content.clear()
    fetched(repository, tmp_path)


def test_another_digest_is_refused_and_nothing_is_kept(repository: Served, tmp_path: Path) -> None:
    folder, pinned = tmp_path / "charts", "sha256:" + "0" * 64
    with pytest.raises(UserError, match=rf"got digest {repository.digest}, {pinned} is pinned"):
        fetched(repository, folder, digest=pinned)
    assert not folder.exists()


def test_an_archive_that_was_changed_is_refused(repository: Served, tmp_path: Path) -> None:
    path = fetched(repository, tmp_path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UserError, match="is pinned"):
        fetched(repository, tmp_path, digest=repository.digest)


def test_a_version_that_the_repository_has_not(repository: Served, tmp_path: Path) -> None:
    place = re.escape(repository.chart.repository or "")
    with pytest.raises(UserError, match=rf"sample 9\.9\.9: cannot be fetched from {place}: .*9\.9\.9"):
        fetched(repository, tmp_path, version="9.9.9")


def test_every_chart_that_cannot_be_had_is_named(repository: Served, tmp_path: Path) -> None:
    gone = replace(repository.chart, name="gone", repository="http://127.0.0.1:9")
    lost = replace(repository.chart, name="lost", repository="oci://127.0.0.1:9/lost")
    with pytest.raises(UserError) as caught:
        fetch({"gone": gone, "sample": repository.chart, "lost": lost}, tmp_path)
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["gone", "lost"]
    assert (tmp_path / f"sample-{VERSION}.tgz").is_file()


def test_a_folder_that_cannot_be_written_to(repository: Served, tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("a file")
    with pytest.raises(UserError, match="choose another folder with --to"):
        fetched(repository, tmp_path / "charts")


# Beside a blueprint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(shipped()["quickstart-g6e"].read_text())
    return path


def put_archives(file: Path) -> dict[str, bytes]:
    """Put an archive of every chart beside a blueprint."""
    folder = file.parent / "charts"
    folder.mkdir()
    archives = {}
    for name, chart in shipped_releases().registry_charts.items():
        source = file.parent / "source" / name
        archives[name] = packed(source, name, chart.version, helm())
        (folder / f"{name}-{chart.version}.tgz").write_bytes(archives[name])
    return archives


def test_record_pins_what_is_there_and_loading_checks_it(file: Path) -> None:
    archives = put_archives(file)
    assert sum("no digest is pinned" in str(each) for each in load_blueprint(str(file)).warnings) == len(
        archives
    )
    command = [str(Path(sys.executable).parent / "blueprints"), "charts", "fetch", str(file), "--record"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    loaded = load_blueprint(str(file))
    assert loaded.lock is not None
    pinned = {name: pin.digest for name, pin in loaded.lock.charts.items()}
    assert pinned == {
        name: f"sha256:{hashlib.sha256(archive).hexdigest()}" for name, archive in archives.items()
    }
    assert not [each for each in loaded.warnings if "digest" in str(each)]

    changed = file.parent / "charts" / f"karpenter-{loaded.lock.charts['karpenter'].version}.tgz"
    changed.write_bytes(b"something else")
    with pytest.raises(BlueprintError, match=rf"{changed}: got digest .* is pinned; remove the file and run"):
        load_blueprint(str(file))


def test_an_archive_of_another_version_is_not_used_and_said_so(file: Path) -> None:
    (file.parent / "charts").mkdir()
    (file.parent / "charts/karpenter-0.9.0.tgz").write_bytes(b"old")
    loaded = load_blueprint(str(file))
    assert loaded.blueprint.releases.charts["karpenter"].archive is None
    assert [each.message for each in loaded.warnings if "karpenter-0.9.0.tgz" in each.file]


def test_charts_that_are_there_are_deployed_as_assets(file: Path) -> None:
    keep_lock(load_blueprint(str(file)), file)
    put_archives(file)
    outdir = file.parent / "cdk.out"
    command = [
        str(Path(sys.executable).parent / "blueprints"),
        "synth",
        str(file),
        "--directory",
        str(outdir),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert ran.returncode == 0, ran.stderr
    template = json.loads((outdir / "quickstart-Platform.template.json").read_text())
    releases = [
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "Custom::AWSCDK-EKS-HelmChart"
    ]
    assert releases
    assert {"Repository", "Version", "Chart"}.isdisjoint(set().union(*releases))
    assets = {json.dumps(each["ChartAssetURL"]).split("/")[-1].split(".zip")[0] for each in releases}
    assert len(assets) == len(releases)
    names = {
        re.search(r"name: (\S+)", (outdir / f"asset.{asset}" / "Chart.yaml").read_text())[1]  # type: ignore[index]
        for asset in assets
    }
    assert names == {"karpenter-crd", "karpenter", "aws-load-balancer-controller", "dynamo-platform"}

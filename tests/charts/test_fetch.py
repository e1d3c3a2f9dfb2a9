"""Charts are fetched by real helm from repositories of both kinds, checked and recorded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.versions import fetch
from inference_blueprints.spec.source import shipped
from inference_catalog.charts import Chart
from inference_contracts.errors import BlueprintError, UserError
from inference_local.control_plane.certificates import Authority
from tests.charts.repositories import Content, index, packed, put_archives, registry, served
from tests.unit.command_run import blueprints

VERSION = "1.2.3"
ARCHIVE = packed("sample", VERSION)
DIGEST = f"sha256:{hashlib.sha256(ARCHIVE).hexdigest()}"


@dataclass
class Repository:
    """A repository on loopback, and the chart that it holds."""

    chart: Chart
    content: Content
    certificate: Path | None


@pytest.fixture(scope="module", params=["index", "oci"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    """Serve a repository of each kind in turn."""
    chart, content = Chart("sample", VERSION, "default", "1.30"), Content()
    if request.param == "index":
        with served(content) as host:
            yield Repository(replace(chart, repository=f"http://{host}"), content, None)
        return
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with served(content, authority) as host:
        chart = replace(chart, repository=f"oci://{host}/charts/sample")
        yield Repository(chart, content, authority.certificate)


@pytest.fixture
def repository(server: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository that holds the chart, which helm trusts and asks without a proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    if server.certificate:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    server.content.clear()
    server.content |= (
        registry("charts/sample", VERSION, ARCHIVE)
        if server.certificate
        else index("sample", VERSION, ARCHIVE)
    )
    return server


def fetched(repository: Repository, folder: Path, **pins: Any) -> Path:
    [archive] = fetch({"sample": replace(repository.chart, **pins)}, folder)
    assert archive.digest == DIGEST
    return archive.path


def test_what_is_fetched_is_what_the_repository_holds(repository: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "charts"
    path = fetched(repository, folder, digest=DIGEST)
    assert path == folder / f"sample-{VERSION}.tgz"
    assert path.read_bytes() == ARCHIVE
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_what_is_there_is_not_fetched_again(repository: Repository, tmp_path: Path) -> None:
    fetched(repository, tmp_path)
    repository.content.clear()
    fetched(repository, tmp_path)


def test_another_digest_is_refused_and_nothing_is_kept(repository: Repository, tmp_path: Path) -> None:
    folder, pinned = tmp_path / "charts", "sha256:" + "0" * 64
    with pytest.raises(UserError, match=rf"got digest {DIGEST}, {pinned} is pinned"):
        fetched(repository, folder, digest=pinned)
    assert not folder.exists()


def test_an_archive_that_was_changed_is_refused(repository: Repository, tmp_path: Path) -> None:
    path = fetched(repository, tmp_path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UserError, match="is pinned"):
        fetched(repository, tmp_path, digest=DIGEST)


def test_a_version_that_the_repository_has_not(repository: Repository, tmp_path: Path) -> None:
    place = re.escape(repository.chart.repository or "")
    with pytest.raises(UserError, match=rf"sample 9\.9\.9: cannot be fetched from {place}: .*9\.9\.9"):
        fetched(repository, tmp_path, version="9.9.9")


def test_every_chart_that_cannot_be_had_is_named(repository: Repository, tmp_path: Path) -> None:
    gone = replace(repository.chart, name="gone", repository="http://127.0.0.1:9")
    lost = replace(repository.chart, name="lost", repository="oci://127.0.0.1:9/lost")
    with pytest.raises(UserError) as caught:
        fetch({"gone": gone, "sample": repository.chart, "lost": lost}, tmp_path)
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["gone", "lost"]
    assert (tmp_path / f"sample-{VERSION}.tgz").is_file()


def test_a_folder_that_cannot_be_written_to(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("a file")
    with pytest.raises(UserError, match="choose another folder with --to"):
        fetched(repository, tmp_path / "charts")


# Beside a blueprint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(shipped()["quickstart-g6e"].read_text())
    return path


def test_record_pins_what_is_there_and_loading_checks_it(file: Path) -> None:
    archives = put_archives(file.parent / "charts")
    assert sum("no digest is pinned" in str(each) for each in load_blueprint(str(file)).warnings) == len(
        archives
    )
    ran = blueprints("charts", "fetch", str(file), "--record", folder=file.parent)
    assert ran.code == 0, ran.err
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

"""A Lambda worker finds the programs of its layers, made executable, and a folder of its own."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from ministack.services import lambda_svc

from inference_local.emulator.real_kubernetes import lambda_programs
from inference_local.emulator.real_kubernetes.lambda_programs import LambdaPrograms

EXECUTABLE, PLAIN = 0o100755, 0o100644


def layer(**files: int) -> bytes:
    """A layer with programs that print their own name, each with the mode bits given."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, mode in files.items():
            member = zipfile.ZipInfo(f"{name}/{name}")
            member.external_attr = mode << 16
            archive.writestr(member, f"#!/bin/sh\necho {name} $*\n")
    return content.getvalue()


def before_helm() -> bytes:
    """A layer whose program is found before Helm, and runs it by its place on AWS."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("kubectl/helm", '#!/bin/sh\nexec /opt/helm/helm "$@" --force\n')
    return content.getvalue()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LambdaPrograms:
    layers = {"tools": layer(helm=EXECUTABLE, kubectl=EXECUTABLE, notes=PLAIN), "before": before_helm()}
    monkeypatch.setattr(lambda_svc, "_resolve_layer_zip", lambda reference: layers.get(reference["Arn"]))
    monkeypatch.setattr(lambda_programs, "_PLAIN_CREDENTIALS", lambda _: {"AWS_ACCESS_KEY_ID": "role"})
    monkeypatch.setenv("MINISTACK_REGION", "us-west-2")
    return LambdaPrograms(tmp_path, tmp_path / "charts")


@pytest.mark.parametrize("name", ["helm", "kubectl"])
def test_a_program_of_a_layer_is_found_by_its_name(
    programs: LambdaPrograms, name: str, tmp_path: Path
) -> None:
    """It turns red if the layer is not on the path, or its program cannot be executed."""
    path = programs.environment({"Layers": [{"Arn": "tools"}]})["PATH"]
    found = shutil.which(name, path=path)
    assert found is not None
    assert Path(found).is_relative_to(tmp_path)


@pytest.mark.clock
@pytest.mark.parametrize("name", ["helm", "kubectl"])
def test_a_program_of_a_layer_runs_by_its_name(programs: LambdaPrograms, name: str) -> None:
    environment = programs.environment({"Layers": [{"Arn": "tools"}]})
    result = subprocess.run([name, "version"], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"{name} version"


@pytest.mark.clock
def test_a_program_before_helm_runs_helm(programs: LambdaPrograms) -> None:
    environment = programs.environment({"Layers": [{"Arn": "before"}, {"Arn": "tools"}]})
    result = subprocess.run(["helm", "upgrade"], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "helm upgrade --force"


def test_two_workers_share_layers_and_no_folder(programs: LambdaPrograms, tmp_path: Path) -> None:
    first, second = (programs.environment({"Layers": [{"Arn": "tools"}]}) for _ in range(2))
    assert first["TEST_OUTDIR"] != second["TEST_OUTDIR"]
    assert len(list(tmp_path.glob("layer-*"))) == 1


def test_a_function_without_layers_has_its_credentials_only(programs: LambdaPrograms) -> None:
    assert programs.environment({}) == {"AWS_ACCESS_KEY_ID": "role"}


def test_a_layer_that_is_not_here_is_left_out(programs: LambdaPrograms) -> None:
    assert programs.environment({"Layers": [{"Arn": "another account's"}]}) == {"AWS_ACCESS_KEY_ID": "role"}

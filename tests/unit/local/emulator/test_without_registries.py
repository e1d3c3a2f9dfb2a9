"""What CDK's handler asks of a registry comes from a folder; everything else reaches the real program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inference_blueprints.local.emulator.real_kubernetes import without_registries


@pytest.fixture
def charts(tmp_path: Path) -> Path:
    chart = tmp_path / "charts" / "karpenter"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: karpenter")
    return chart.parent


def run(name: str, charts: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program before one that prints its own arguments, in a folder of its own."""
    program = [sys.executable, "-c", "import sys; print(*sys.argv[1:])"]
    launcher = [sys.executable, "-I", "-S", without_registries.__file__]
    command = [*launcher, name, str(charts), *program, "--", *arguments]
    work = charts.parent / "work"
    work.mkdir()
    return subprocess.run(command, cwd=work, input="none", capture_output=True, text=True, check=False)


def test_a_pulled_chart_lies_where_helm_would_unpack_it(charts: Path) -> None:
    address = "oci://public.ecr.aws/karpenter/karpenter"
    result = run("helm", charts, "pull", address, "--version", "1.14.1", "--untar")
    assert result.returncode == 0
    assert (charts.parent / "work" / "karpenter" / "Chart.yaml").read_text() == "name: karpenter"


def test_a_chart_of_a_repository_becomes_the_folder_and_keeps_its_other_options(charts: Path) -> None:
    options = ("--repo", "https://example.test", "--values", "v.yaml", "--version", "1", "--wait")
    result = run("helm", charts, "upgrade", "karpenter", "karpenter", "--install", *options)
    assert result.stdout.split() == [
        *("upgrade", "karpenter", str(charts / "karpenter"), "--install", "--values", "v.yaml", "--wait")
    ]


@pytest.mark.parametrize(
    "arguments", [("pull", "oci://example.test/other"), ("upgrade", "x", "other", "--repo", "https://a.test")]
)
def test_an_unknown_chart_is_an_error_that_names_the_known_ones(charts: Path, arguments: list[str]) -> None:
    result = run("helm", charts, *arguments)
    assert result.returncode == 1
    assert "have only these charts: karpenter" in result.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("aws", ("ecr-public", "get-login-password", "--region", "us-east-1"), "none"),
        ("helm", ("registry", "login", "--password-stdin", "public.ecr.aws"), ""),
        ("aws", ("eks", "update-kubeconfig", "--name", "x"), "eks update-kubeconfig --name x"),
        ("helm", ("upgrade", "model", "chart", "--wait"), "upgrade model chart --wait"),
        ("helm", ("uninstall", "model"), "uninstall model"),
    ],
)
def test_logins_have_nowhere_to_go_and_the_rest_reaches_the_program(
    charts: Path, name: str, arguments: list[str], answer: str
) -> None:
    result = run(name, charts, *arguments)
    assert (result.returncode, result.stdout.strip()) == (0, answer)

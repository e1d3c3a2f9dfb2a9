"""What CDK's handler asks of a registry comes from a folder; everything else reaches the real program."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from inference_local.emulator.real_kubernetes import without_registries


@pytest.fixture
def charts(tmp_path: Path) -> Path:
    chart = tmp_path / "charts" / "karpenter"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: karpenter")
    return chart.parent


class BecameError(Exception):
    """The program became another."""

    def __init__(self, program: str, words: list[str]) -> None:
        assert words[0] == program == "real"
        self.words = words[1:]


@dataclass(frozen=True)
class Run:
    """Runs the program in this process, before one that is only noted."""

    charts: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, name: str, *arguments: str) -> str:
        """Return the arguments that reach the real program, or what is printed."""
        try:
            without_registries.main(name, self.charts, ["real"], list(arguments))
        except BecameError as became:
            return " ".join(became.words)
        return self.capture.readouterr().out.strip()


@pytest.fixture
def run(
    charts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    def become(program: str, words: list[str]) -> None:
        raise BecameError(program, words)

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr(sys, "stdin", io.StringIO("none"))
    monkeypatch.chdir(tmp_path)
    return Run(charts, capsys)


def test_a_pulled_chart_lies_where_helm_would_unpack_it(run: Run, tmp_path: Path) -> None:
    address = "oci://public.ecr.aws/karpenter/karpenter"
    assert run("helm", "pull", address, "--version", "1.14.1", "--untar") == ""
    assert (tmp_path / "karpenter" / "Chart.yaml").read_text() == "name: karpenter"


def test_a_chart_of_a_repository_becomes_the_folder_and_keeps_its_other_options(run: Run) -> None:
    options = ("--repo", "https://example.test", "--values", "v.yaml", "--version", "1", "--wait")
    assert run("helm", "upgrade", "karpenter", "karpenter", "--install", *options).split() == [
        *("upgrade", "karpenter", str(run.charts / "karpenter"), "--install", "--values", "v.yaml", "--wait")
    ]


@pytest.mark.parametrize(
    "arguments", [("pull", "oci://example.test/other"), ("upgrade", "x", "other", "--repo", "https://a.test")]
)
def test_an_unknown_chart_is_an_error_that_names_the_known_ones(run: Run, arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="have only these charts: karpenter"):
        run("helm", *arguments)


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
    run: Run, name: str, arguments: list[str], answer: str
) -> None:
    assert run(name, *arguments) == answer


@pytest.mark.clock
def test_it_starts_with_the_standard_library_alone_and_becomes_the_program(charts: Path) -> None:
    program = [sys.executable, "-c", "import sys; print(*sys.argv[1:])"]
    launcher = [sys.executable, "-I", "-S", without_registries.__file__, "helm", str(charts)]
    command = [*launcher, *program, "--", "uninstall", "model"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "uninstall model\n"

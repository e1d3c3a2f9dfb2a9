"""`blueprints benchmark`: what it prints without asking anybody, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

PROGRAM = [sys.executable, "-m", "inference_blueprints.cli.main", "benchmark"]
URL, BLUEPRINT = "http://qwen3-8b.internal/v1", ("--blueprint", "quickstart-g6e")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command without credentials."""

    def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment = {**kept, "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path), **variables}
        result = subprocess.run(
            [*PROGRAM, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in result.stderr
        return result

    return start


def test_a_dry_run_prints_what_would_be_made_and_makes_nothing(run: Run) -> None:
    options = ("--job", "--dry-run", "--requests", "5", "--api-key-env", "MY_KEY", "--image", "mine/aiperf:1")
    result = run(URL, *BLUEPRINT, *options, MY_KEY="sk-a-secret")
    assert result.returncode == 0, result.stderr
    job, config_map, secret = yaml.safe_load_all(result.stdout)
    assert [each["kind"] for each in (job, config_map, secret)] == ["Job", "ConfigMap", "Secret"]
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "mine/aiperf:1"
    assert secret["data"] == {"apiKey": ""}
    assert "sk-a-secret" not in result.stdout + result.stderr
    packed = base64.b64decode(config_map["binaryData"]["questions.json.gz"])
    document = json.loads(gzip.decompress(packed))
    assert len(document["requests"]) == 5
    assert document["arguments"][document["arguments"].index("--url") + 1] == "http://qwen3-8b.internal"


def test_a_trace_of_one_s_own_goes_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("timestamp,input,output\n0,300,20\n0.5,900,30\n1.5,40,10\n")
    result = run(URL, *BLUEPRINT, "--job", "--dry-run", "--trace", "mine.csv")
    _, config_map = yaml.safe_load_all(result.stdout)
    document = json.loads(gzip.decompress(base64.b64decode(config_map["binaryData"]["questions.json.gz"])))
    assert [each["timestamp"] for each in document["requests"]] == [0.0, 500.0, 1500.0]
    assert [each["body"]["max_tokens"] for each in document["requests"]] == [20, 30, 10]
    assert [sum(words for words, _ in each["blocks"]) for each in document["requests"]] == [300, 900, 40]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dry-run",), "got --dry-run without --job"),
        (("--image", "mine"), "got --image without --job"),
        (("--api-key-env", "NO_KEY"), "--api-key-env: the environment variable NO_KEY is not set"),
        (("--ca-file", "no.pem"), "--ca-file: no.pem: no certificates in PEM format"),
        (("--against", "no.json"), "--against: no.json: cannot be read as a search of tune"),
        (("--job",), "credentials"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(options: tuple[str, ...], words: str, run: Run) -> None:
    result = run(URL, *BLUEPRINT, *options)
    assert result.returncode == 1
    assert words in result.stderr.splitlines()[-1]


def test_an_embedding_model_is_not_measured_by_answers(run: Run, tmp_path: Path) -> None:
    """Every request would be a chat, which the model refuses."""
    shown = subprocess.run(
        [sys.executable, "-m", "inference_blueprints.cli.main", "show", "quickstart-g6e"],
        capture_output=True,
        text=True,
        check=True,
    )
    document = yaml.safe_load(shown.stdout)
    model = document["spec"]["models"][0]
    model["workload"] = {"inputTokens": 500, "peakRequestsPerSecond": 2}
    model |= {"task": "embed", "stack": {"llmD": {}}, "objectives": {}}
    (tmp_path / "vectors.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    result = run(URL, "--blueprint", "vectors.yaml", "--job", "--dry-run")
    assert result.returncode == 1
    assert "with 'task: embed'; this command measures answers" in result.stderr
    assert result.stdout == ""


def test_a_model_that_makes_images_is_not_measured_by_answers(run: Run) -> None:
    result = run(URL, "--blueprint", "image-generation", "--job", "--dry-run")
    assert result.returncode == 1
    assert "with 'task: images'; this command measures answers of tokens" in result.stderr
    assert result.stdout == ""


def test_an_address_that_is_none_is_an_error(run: Run) -> None:
    result = run("nowhere", *BLUEPRINT, "--job", "--dry-run")
    assert result.returncode == 1
    assert "got 'nowhere', expected an address" in result.stderr

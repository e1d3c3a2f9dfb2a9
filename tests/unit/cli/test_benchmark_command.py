"""`blueprints benchmark`: what it prints without asking anybody, and what it refuses."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from inference_blueprints.spec.source import shipped
from tests.unit.command_run import Ran, blueprints

URL, BLUEPRINT = "http://qwen3-8b.internal/v1", ("--blueprint", "quickstart-g6e")
Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command without credentials."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))

    def start(*arguments: str, **variables: str) -> Ran:
        return blueprints("benchmark", *arguments, folder=tmp_path, **variables)

    return start


def test_a_dry_run_prints_what_would_be_made_and_makes_nothing(run: Run) -> None:
    options = ("--job", "--dry-run", "--requests", "5", "--api-key-env", "MY_KEY", "--image", "mine/aiperf:1")
    result = run(URL, *BLUEPRINT, *options, MY_KEY="sk-a-secret")
    assert result.code == 0, result.err
    job, config_map, secret = yaml.safe_load_all(result.out)
    assert [each["kind"] for each in (job, config_map, secret)] == ["Job", "ConfigMap", "Secret"]
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "mine/aiperf:1"
    assert secret["data"] == {"apiKey": ""}
    assert "sk-a-secret" not in result.out + result.err
    packed = base64.b64decode(config_map["binaryData"]["questions.json.gz"])
    document = json.loads(gzip.decompress(packed))
    assert len(document["requests"]) == 5
    assert document["arguments"][document["arguments"].index("--url") + 1] == "http://qwen3-8b.internal"


def test_a_trace_of_one_s_own_goes_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("timestamp,input,output\n0,300,20\n0.5,900,30\n1.5,40,10\n")
    result = run(URL, *BLUEPRINT, "--job", "--dry-run", "--trace", "mine.csv")
    _, config_map = yaml.safe_load_all(result.out)
    document = json.loads(gzip.decompress(base64.b64decode(config_map["binaryData"]["questions.json.gz"])))
    assert [each["timestamp"] for each in document["requests"]] == [0.0, 500.0, 1500.0]
    assert [each["body"]["max_tokens"] for each in document["requests"]] == [20, 30, 10]
    assert [sum(words for words, _ in each["blocks"]) for each in document["requests"]] == [300, 900, 40]


@pytest.mark.parametrize(
    ("options", "asked", "object_name"),
    [
        ((), "Qwen/Qwen3-8B", "benchmark-qwen-qwen3-8b-"),
        (("--model", "Qwen/Qwen3-8B"), "Qwen/Qwen3-8B", "benchmark-qwen-qwen3-8b-"),
        (("--model", "qwen3-8b"), "qwen3-8b", "benchmark-qwen3-8b-"),
    ],
)
def test_requests_have_the_name_that_the_user_gives(
    options: tuple[str, ...], asked: str, object_name: str, run: Run, tmp_path: Path
) -> None:
    """Objects of Kubernetes have names of small letters, digits and hyphens, as no public name has."""
    document = yaml.safe_load(shipped()["quickstart-g6e"].read_text(encoding="utf-8"))
    document["spec"]["models"][0]["publicName"] = "Qwen/Qwen3-8B"
    (tmp_path / "named.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    result = run(URL, "--blueprint", "named.yaml", "--job", "--dry-run", "--requests", "5", *options)
    job, config_map = yaml.safe_load_all(result.out)
    packed = json.loads(gzip.decompress(base64.b64decode(config_map["binaryData"]["questions.json.gz"])))
    assert packed["arguments"][packed["arguments"].index("--model") + 1] == asked
    assert job["metadata"]["name"].startswith(object_name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "qwen3"), "got --model qwen3; allowed are qwen3-8b"),
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
    assert result.code == 1
    assert words in result.err.splitlines()[-1]


def test_an_embedding_model_is_not_measured_by_answers(run: Run, tmp_path: Path) -> None:
    """Every request would be a chat, which the model refuses."""
    document = yaml.safe_load(shipped()["quickstart-g6e"].read_text(encoding="utf-8"))
    model = document["spec"]["models"][0]
    model["workload"] = {"inputTokens": 500, "peakRequestsPerSecond": 2}
    model |= {"task": "embed", "stack": {"llmD": {}}, "objectives": {}}
    (tmp_path / "vectors.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    result = run(URL, "--blueprint", "vectors.yaml", "--job", "--dry-run")
    assert result.code == 1
    assert "with 'task: embed'; this command measures answers" in result.err
    assert result.out == ""


def test_a_model_that_makes_images_is_not_measured_by_answers(run: Run) -> None:
    result = run(URL, "--blueprint", "image-generation", "--job", "--dry-run")
    assert result.code == 1
    assert "with 'task: images'; this command measures answers of tokens" in result.err
    assert result.out == ""


def test_an_address_that_is_none_is_an_error(run: Run) -> None:
    result = run("nowhere", *BLUEPRINT, "--job", "--dry-run")
    assert result.code == 1
    assert "got 'nowhere', expected an address" in result.err

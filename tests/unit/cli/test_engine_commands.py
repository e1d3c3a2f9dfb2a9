"""The commands engines record and engines compare."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_catalog.catalogue import shipped
from tests.unit.catalog.test_engine_wheels import NAME, VLLM
from tests.unit.command_run import Ran, blueprints


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(tmp_path / NAME, "w") as archive:
        for module, text in VLLM.items():
            archive.writestr(module, text)


def engines(*arguments: str) -> Ran:
    return blueprints("engines", *arguments, folder=Path.cwd())


def test_a_release_is_recorded() -> None:
    ran = engines("record", NAME)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "vllm 7.0.0: 4 flags, 3 model classes, 2 environment variables, image "
        "docker.io/vllm/vllm-openai:v7.0.0",
        "wrote engines/vllm-7.0.0.json; set `engine: {vllm: {image: {release: 7.0.0}}}` on `direct` or "
        "`llmD` in a blueprint next to `engines`",
    ]
    document = json.loads(Path("engines/vllm-7.0.0.json").read_text("utf-8"))
    assert document["model_classes"] == ["BertModel", "LlamaForCausalLM", "Other"]
    assert document["environment_names"] == ["VLLM_HOST_IP", "VLLM_PORT"]
    assert document["flags"]["--enforce-eager"] == {"takes_value": False, "negatable": True, "owner": "vllm"}
    assert document["flags"]["--reasoning-parser"]["choices"] == ["qwen3"]


def test_an_image_of_one_s_own_is_written_with_the_release() -> None:
    image = "registry.example:5000/team/vllm:mine"
    ran = engines("record", NAME, "--image", image, "--to", "other", "--output", "json")
    written = json.loads(ran.out)
    assert (ran.code, written["file"], written["engine"]["image"]) == (0, "other/vllm-7.0.0.json", image)
    assert written["engine"]["wheel"].startswith("sha256:")


@pytest.mark.parametrize("image", ["registry.example:5000/team/vllm", "vllm", "a:b@md5:7"])
def test_an_image_needs_a_tag(image: str) -> None:
    ran = engines("record", NAME, "--image", image)
    assert (ran.code, ran.out) == (1, "")
    assert f"got image {image!r}, must be one with its tag" in ran.err


def test_what_is_no_release_is_one_line() -> None:
    ran = engines("record", "vllm")
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert "must be a wheel's file or a release such as vllm==0.33.0" in ran.err


def test_a_recorded_release_is_what_a_blueprint_next_to_it_runs() -> None:
    # The wheel above has too few flags for a plan, so its name is given to a whole release.
    engines("record", NAME)
    whole = json.loads((shipped().directory / "engines/vllm/0.33.0.json").read_text("utf-8"))
    target = Path("engines/vllm-7.0.0.json")
    kept = json.loads(target.read_text("utf-8"))
    target.write_text(json.dumps({**whole, **{key: kept[key] for key in ("version", "tag", "image")}}))
    document = yaml.safe_load((root() / "blueprints" / "quickstart-g6e.yaml").read_text("utf-8"))
    document["spec"]["models"][0] |= {
        "engine": {"vllm": {"image": {"release": "7.0.0"}}},
        "stack": {"direct": {}},
    }
    Path("own.yaml").write_text(yaml.safe_dump(document))
    [worker] = build_plan(load_blueprint("own.yaml").blueprint).models[0].deployments[0].workers
    assert worker.image == "docker.io/vllm/vllm-openai:v7.0.0"


def test_releases_are_compared_flag_by_flag() -> None:
    ran = engines("compare", "vllm")
    lines = ran.out.splitlines()
    assert (ran.code, lines[0]) == (0, "vllm: 0.31.0 of Dynamo 1.6.1 and 0.33.0")
    assert "  --grpc-port" in lines
    assert "only in the older: none" in lines
    assert any(line.startswith("  --tool-call-parser (new values ") for line in lines)


def test_differences_as_json_go_both_ways() -> None:
    newer = json.loads(engines("compare", "sglang", "--output", "json").out)
    older = json.loads(engines("compare", "sglang", "0.5.23", "1.6.1", "--output", "json").out)
    assert newer["removed"] == ["--cuda-graph-tc-compiler", "--speculative-skip-dp-mlp-sync"]
    assert older["added"] == newer["removed"]
    assert older["addedClasses"] == newer["removedClasses"]
    assert newer["changed"]["--mm-enable-dp-encoder"] == "has --no- form"


def test_a_release_next_to_the_blueprint_can_be_compared() -> None:
    engines("record", NAME)
    ran = engines("compare", "vllm", "0.33.0", "7.0.0")
    assert ran.out.startswith("vllm: 0.33.0 and 7.0.0\nonly in the newer: none\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("llamaCpp",), "got 'llamaCpp', allowed are sglang and vllm"),
        (("vllm", "7", "1.6.1"), "got '7', give none or two of "),
        (("vllm", "1.6.1"), "got 1 release, give none or two of "),
    ],
    ids=["engine", "release", "count"],
)
def test_what_cannot_be_compared_is_named(arguments: tuple[str, ...], message: str) -> None:
    ran = engines("compare", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err

"""The winner is written into the file, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.measure.tuning.candidates import RoleShape, TuningCandidate, WorkerShape
from inference_blueprints.measure.tuning.tuned_blueprint import with_deployment, write_configuration
from inference_blueprints.spec.types import Deployment
from inference_contracts.errors import BlueprintError, UserError

HEAD = """\
# What this is for.
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: tuned}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:  # paid by the hour
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  models:
  - name: other
    weights: {huggingFace: Qwen/Qwen3-0.6B}
    workload: {inputTokens: 100, outputTokens: 10, peakRequestsPerSecond: 1}
    deployments:
    - {name: main, aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}}
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 2}
"""
BLOCK = """\
    # Before the list.
    deployments:  # behind the key
    - name: main  # its name
      # why aggregated
      aggregated:
        pool: l40s
        replicas: 3  # three for now
        tensorParallelSize: 1
    # Behind the list.
    routing: {roundRobin: {}}
"""
ONE = TuningCandidate(WorkerShape("vllm", (RoleShape("l40s", 1),)), (5,)).deployment("main")
TWO = TuningCandidate(WorkerShape("vllm", (RoleShape("l40s", 1), RoleShape("l40s", 1))), (2, 3)).deployment(
    "main"
)


def written(text: str, deployment: Deployment, engine: str = "vllm") -> str:
    changed = with_deployment(text, "tuned.yaml", "qwen3-8b", deployment, engine)
    model = parse_blueprint(changed, "tuned.yaml").blueprint.spec.models[1]
    assert model.deployments == [deployment]
    assert model.engine.chosen == engine
    return changed


def test_a_number_changes_in_its_place() -> None:
    assert written(HEAD + BLOCK, ONE) == (HEAD + BLOCK).replace("replicas: 3", "replicas: 5")


def test_another_topology_keeps_every_comment() -> None:
    changed = written(HEAD + BLOCK, TWO)
    for comment in (
        "# Before the list.",
        "# behind the key",
        "# its name",
        "# why aggregated",
        "# three for now",
    ):
        assert changed.count(comment) == 1, comment
    assert changed.startswith(HEAD)
    assert changed.endswith("    # Behind the list.\n    routing: {roundRobin: {}}\n")
    assert (
        "      disaggregated:\n        prefill: {pool: l40s, replicas: 2, tensorParallelSize: 1}\n" in changed
    )


def test_several_deployments_become_one_and_keep_their_comments() -> None:
    second = "    - {name: batch, aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}}  # at night\n"
    text = HEAD + BLOCK.replace("    # Behind the list.\n", f"{second}    # Behind the list.\n")
    changed = written(text, ONE)
    assert "batch" not in changed
    assert changed.count("# at night") == 1


@pytest.mark.parametrize("deployment", [ONE, TWO], ids=["aggregated", "disaggregated"])
def test_a_list_in_one_line_stays_in_one_line(deployment: Deployment) -> None:
    workers = "{pool: l40s, replicas: 3, tensorParallelSize: 1}"
    line = f"    deployments: [{{name: main, aggregated: {workers}}}]  # here\n"
    changed = written(HEAD + line, deployment)
    assert len(changed.splitlines()) == len((HEAD + line).splitlines())
    assert changed.endswith("]  # here\n")


def test_line_ends_of_another_system_stay() -> None:
    changed = written((HEAD + BLOCK).replace("\n", "\r\n"), TWO)
    assert changed.count("\n") == changed.count("\r\n")


def test_another_engine_is_written_where_none_was_named() -> None:
    changed = written(HEAD + BLOCK, ONE, engine="sglang")
    assert "    engine: {sglang: {}}\n    deployments:  # behind the key\n" in changed


def test_another_engine_takes_the_place_of_the_one_that_was_named() -> None:
    text = HEAD + "    engine: {vllm: {}}  # tried first\n" + BLOCK
    assert "    engine: {sglang: {}}  # tried first\n" in written(text, ONE, engine="sglang")


def test_an_alias_is_left_to_its_writer() -> None:
    workers = "{pool: l40s, replicas: 1, tensorParallelSize: 1}"
    lines = "\n        pool: l40s\n        replicas: 3  # three for now\n        tensorParallelSize: 1\n"
    text = (HEAD + BLOCK).replace(workers, f"&one {workers}").replace(lines, " *one\n")
    message = r"set `deployments: \[\{name: main, aggregated: .*\}\]` for model 'qwen3-8b'"
    with pytest.raises(UserError, match=message):
        with_deployment(text, "tuned.yaml", "qwen3-8b", ONE, "vllm")


def test_a_name_that_yaml_reads_as_something_else_is_quoted() -> None:
    named = TuningCandidate(
        WorkerShape("vllm", (RoleShape("l40s", 1), RoleShape("l40s", 1))), (2, 3)
    ).deployment("on")
    assert '- name: "on"' in written(HEAD + BLOCK, named)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.yaml"
    path.write_bytes((HEAD + BLOCK).encode())
    path.chmod(0o640)
    return path


def test_the_file_is_replaced_with_its_rights(file: Path) -> None:
    tuned = load_blueprint(str(file)).written
    assert write_configuration(file, tuned, "qwen3-8b", ONE, "vllm") is True
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    again = load_blueprint(str(file)).written
    assert write_configuration(file, again, "qwen3-8b", ONE, "vllm") is False


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path) -> None:
    tuned = load_blueprint(str(file)).written
    text = (HEAD + BLOCK).replace("max: 8", "max: 9")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="the file changed during the search"):
        write_configuration(file, tuned, "qwen3-8b", ONE, "vllm")
    assert file.read_text(encoding="utf-8") == text


def test_what_would_not_be_valid_is_not_written(file: Path) -> None:
    tuned = load_blueprint(str(file)).written
    too_many = TuningCandidate(WorkerShape("vllm", (RoleShape("l40s", 1),)), (50,)).deployment("main")
    with pytest.raises(BlueprintError, match="its deployments need 51 nodes"):
        write_configuration(file, tuned, "qwen3-8b", too_many, "vllm")
    assert file.read_text(encoding="utf-8") == HEAD + BLOCK

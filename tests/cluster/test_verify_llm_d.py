"""`blueprints verify` on a real API server, of a model on llm-d: workers, pool, and what can be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult, run_checks
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.operate.verify import inference_pool_checks
from inference_blueprints.operate.verify.kv_transfer_checks import kv_transfer, read_transfers
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease, SynthesisedPlatform
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from inference_blueprints.operate.verify.worker_checks import workers
from inference_blueprints.serving.plan import build_plan
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster.helm import helm
from tests.cluster.nodes import node, nodes_of
from tests.cluster.objects import manifests, releases
from tests.cluster.state import pods, ready_names, ready_pods
from tests.cluster.test_verify import NOW
from tests.templates.support import Templates

NAME, NAMESPACE, RELEASE, POOL = "llm-d-disaggregated", "inference", "qwen3-32b-llm-d", "h200"
PODS = 2 + 12 + 1


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    synthesise: Callable[[str], Templates],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningPlatform]:
    """The shipped platform on llm-d: nodes, and the chart as helm installs it."""
    templates, kubectl = synthesise(NAME), control_plane.kubectl
    found = {(each["kind"], each["metadata"]["name"]): each for each in manifests(templates)}
    pool = found["NodePool", POOL]
    system = [
        node(f"llm-d-system-{number}", catalog.instance_type("m7i.2xlarge"), labels={}, taints=[])
        for number in range(2)
    ]
    nodes = [*system, *nodes_of(pool, 2, prefix="llm-d-", zones=("us-west-2b",))]
    names = [each["metadata"]["name"] for each in nodes]
    kubectl.apply(nodes)
    kubectl.wait_until(lambda: ready_names(kubectl, "nodes") >= set(names), "nodes are ready")
    folder = tmp_path_factory.mktemp("helm")
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(releases(templates)[RELEASE]["Values"]))
    chart = str(stage_chart(charts_directory() / "llm-d-model", folder))
    helm(control_plane, NAMESPACE, "install", RELEASE, chart, "--values", str(values))
    kubectl.wait_until(lambda: ready_pods(kubectl, NAMESPACE) == PODS, "routers and workers run")
    blueprint = load_blueprint(NAME).blueprint
    assembly = SynthesisedPlatform({}, {RELEASE: ExpectedRelease(RELEASE, NAMESPACE, "0.1.0")})
    platform = VerifiedPlatform(Account("us-west-2"), blueprint, build_plan(blueprint), assembly, NAME, NOW)
    yield RunningPlatform(platform, kubectl)
    helm(control_plane, NAMESPACE, "uninstall", RELEASE)
    kubectl.run("delete", "nodes", *names, "--ignore-not-found", "--wait=false")


def test_workers_and_their_pool_are_well(running: RunningPlatform) -> None:
    assert {each.severity for each in workers(running)} == {"ok"}
    (found,) = inference_pool_checks.members(running)
    assert (found.severity, found.message) == ("ok", f"{RELEASE}: 13 workers are in its pool")


def test_what_nobody_counts_is_not_taken_for_well(running: RunningPlatform) -> None:
    """Nothing runs in the pods of nodes without kubelets, so no metrics can be read."""
    (picked,) = inference_pool_checks.picks(running)
    assert picked.severity == "unknown"
    assert "no metrics from" in picked.message
    assert read_transfers(running) == {}
    moved = list(run_checks({"KV transfer": kv_transfer}, running))
    assert {each.severity for each in moved} == {"unknown"}


def test_a_worker_with_another_role_and_one_outside_of_the_pool_are_named(running: RunningPlatform) -> None:
    kubectl = _administrator(running)
    (decode,) = [each for each in pods(kubectl, NAMESPACE) if "vllm-decode" in each["metadata"]["name"]]
    name = decode["metadata"]["name"]
    for key, other, words in (
        ("llm-d.ai/role", "prefill", f"{name}: label llm-d.ai/role is 'prefill', not 'decode'"),
        ("llm-d.ai/inference-pool", "another", "its pool has no ready decode"),
    ):
        before = decode["metadata"]["labels"][key]
        kubectl.run("label", "pod", name, "--namespace", NAMESPACE, "--overwrite", f"{key}={other}")
        assert words in _only(inference_pool_checks.members(running)).message
        kubectl.run("label", "pod", name, "--namespace", NAMESPACE, "--overwrite", f"{key}={before}")
    assert {each.severity for each in inference_pool_checks.members(running)} == {"ok"}


def test_a_pool_that_is_deleted_is_missed(running: RunningPlatform) -> None:
    _administrator(running).run("delete", "inferencepools", RELEASE, "--namespace", NAMESPACE)
    assert "there is no InferencePool" in _only(inference_pool_checks.members(running)).message


def _only(observations: Iterator[CheckResult]) -> CheckResult:
    (found,) = [each for each in observations if each.severity != "ok"]
    return found


def _administrator(running: RunningPlatform) -> Kubectl:
    assert isinstance(running.kubectl, Kubectl)
    return running.kubectl

"""Every check of `verify` finds its fact wrong: a healthy platform, and then the same with one other fact.

A new check without an entry in `WRONG` turns this red. The details of each check have tests of their own.
What needs EFA is recorded output: no GPU and no EFA interface exist where these tests run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_blueprints.operate.verify import kv_transfer_checks
from inference_blueprints.operate.verify.account_checks import ACCOUNT_CHECKS
from inference_blueprints.operate.verify.serving_access import Transferred
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease
from inference_blueprints.operate.verify.verification import CLUSTER_CHECKS
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from inference_blueprints.resources import root
from tests.unit.operate.verify import recorded
from tests.unit.operate.verify.recorded import EFA, LOG, METRICS, RELEASE, RecordedCluster, conditions

MakePlatform = Callable[..., VerifiedPlatform]
Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class WrongFact:
    """A fact of a platform that differs from its plan."""

    change: Callable[[RecordedCluster], object]
    """Makes it wrong in the healthy cluster."""
    words: str
    """Part of the line that names it."""
    severity: Severity = "error"
    spec: Change = field(default=lambda _spec: None)
    """Change of the blueprint that makes the fact matter."""


def streaming(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"] = {"s3": "s3://models-of-acme/qwen3-32b/", "catalog": "Qwen/Qwen3-32B"}


def observed(spec: dict[str, Any]) -> None:
    spec["observability"] = {}


def mirrored(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"].update(revision="9216db5781bf21249d130ec9da846c4624c16137", mirror={})


def metrics(cluster: RecordedCluster, *, gigabytes: float, seconds: float, transfers: int) -> None:
    """Let every worker report transfers as vLLM 0.31 does, and the decode worker alone have any."""
    page = (
        f"vllm:nixl_bytes_transferred_sum {gigabytes * 1e9}\nvllm:nixl_num_failed_transfers_total 0\n"
        f"vllm:nixl_xfer_time_seconds_sum {seconds}\nvllm:nixl_xfer_time_seconds_count {transfers}\n"
    )
    cluster.metrics = dict.fromkeys(worker_names(cluster), "") | {"decode-0": page}


def worker_names(cluster: RecordedCluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.objects["pods"]]


def idle(cluster: RecordedCluster, process: str) -> None:
    """Let the workers of a process receive nothing but requests of another kind."""
    page = METRICS.replace('endpoint="generate"} 3', 'endpoint="generate"} 0')
    cluster.metrics |= {name: page for name in worker_names(cluster) if name.startswith(process)}


#: https://github.com/ai-dynamo/nixl/issues/1609, of a p6e-gb200.36xlarge.
REFUSED = (
    "libfabric:...:efa:mr:efa_mr_reg_impl():893<warn> Unable to register MR of 1048576 bytes: Bad address, "
    "flags 0, ibv pd: 0x375ad3f0, total mr reg size 52232192, mr reg count 2\n"
    "E... libfabric_rail.cpp:1362] fi_mr_reg failed on rail 2: Bad address (buffer=0xe15fbdc00000, "
    "length=1048576, requested_key=0)\n"
)
#: The streamer's line in a log of https://github.com/kaito-project/kaito, with vLLM.
STREAMED = "[RunAI Streamer] Overall time to stream 27.3 GiB of all files to cpu: 4.73s, 5.8 GiB/s\n"


def crashed(cluster: RecordedCluster) -> None:
    """A worker that ended on the memory that EFA refused, and was started again."""
    pod = next(each for each in cluster.objects["pods"] if each["metadata"]["name"] == "prefill-3")
    pod["status"]["containerStatuses"] = [{"name": "main", "restartCount": 1}]
    cluster.previous["prefill-3"] = REFUSED


def system(name: str, kubelet: str) -> Callable[[RecordedCluster], object]:
    """Return the change that gives a node another system."""
    info = {"osImage": name, "kubeletVersion": kubelet}
    return lambda cluster: cluster.objects["nodes"][2]["status"].update(nodeInfo=info)


#: Wrong facts by the name of the check that finds them.
WRONG: Mapping[str, tuple[WrongFact, ...]] = {
    "nodes": (
        WrongFact(
            lambda cluster: cluster.objects["nodes"][3]["status"]["allocatable"].update({EFA: "0"}),
            "0 of 16 vpc.amazonaws.com/efa can be allocated",
        ),
        WrongFact(
            lambda cluster: cluster.objects["nodes"][2]["status"]["allocatable"].update(
                {"nvidia.com/gpu": "7"}
            ),
            "7 of 8 nvidia.com/gpu can be allocated",
        ),
    ),
    "node images": (
        WrongFact(
            system("Bottlerocket OS 1.66.0 (aws-k8s-1.35-nvidia)", "v1.35.2-eks-0a1b2c3"),
            "h200-0 boots Bottlerocket OS 1.66.0",
            "warning",
        ),
        WrongFact(
            system("Amazon Linux 2023.9.20261110", "v1.34.9-eks-0a1b2c3"), "and kubelet v1.34.9", "warning"
        ),
        WrongFact(system("", ""), "do not name their system", "unknown"),
    ),
    "pools": (
        WrongFact(lambda cluster: cluster.objects["nodepools.karpenter.sh"].clear(), "has no NodePool"),
    ),
    "device plug-ins": (
        WrongFact(lambda cluster: cluster.objects["daemonsets"].pop(), "so its devices cannot be allocated"),
    ),
    "charts": (
        WrongFact(
            lambda cluster: cluster.objects["secrets"].pop(0), "karpenter in kube-system: not installed"
        ),
    ),
    "weights": (
        WrongFact(lambda cluster: cluster.objects["jobs"].clear(), "no Job copies it", spec=mirrored),
    ),
    "workers": (WrongFact(lambda cluster: cluster.objects["pods"].pop(), "0 of 1 are ready"),),
    "metrics": (
        WrongFact(
            lambda cluster: setattr(
                cluster, "targets", recorded.scrape_targets(cluster.objects["pods"][:-1])
            ),
            "is no target",
            spec=observed,
        ),
        WrongFact(
            lambda cluster: setattr(
                cluster,
                "targets",
                recorded.scrape_targets(cluster.objects["pods"], decode_0="connection refused"),
            ),
            "decode-0: connection refused",
            spec=observed,
        ),
        WrongFact(
            lambda cluster: setattr(cluster, "targets", "no JSON"), "cannot be read", "unknown", spec=observed
        ),
    ),
    "streamed weights": (
        WrongFact(
            lambda cluster: cluster.logs.update({"decode-0": LOG}),
            "the log of decode-0 does not tell",
            "unknown",
            spec=streaming,
        ),
    ),
    "KV transfer": (
        WrongFact(
            lambda cluster: cluster.logs.update({"decode-0": LOG.replace("LIBFABRIC", "UCX")}),
            "falls back to TCP",
        ),
        WrongFact(
            lambda cluster: metrics(cluster, gigabytes=0, seconds=0, transfers=0),
            "no KV cache was transferred",
        ),
    ),
    "requests": (
        WrongFact(
            lambda cluster: idle(cluster, "prefill"),
            "prefill: received no request during the check; decode workers compute prompts themselves",
        ),
        WrongFact(lambda cluster: idle(cluster, "decode"), "decode: received no request during the check"),
        WrongFact(
            lambda cluster: setattr(cluster, "metrics", dict.fromkeys(worker_names(cluster), "")),
            "its workers do not tell how many requests they received",
            "unknown",
        ),
    ),
    "EFA memory": (
        WrongFact(
            lambda cluster: cluster.logs.update({"prefill-0": LOG + REFUSED}),
            "prefill-0: Unable to register MR of 1048576 bytes: Bad address",
        ),
        WrongFact(
            lambda cluster: cluster.logs.update({"prefill-0": REFUSED.splitlines()[1]}),
            "prefill-0: fi_mr_reg failed on rail 2: Bad address",
        ),
        WrongFact(crashed, "EFA refused memory of 1 workers: prefill-3"),
    ),
    "EFA bandwidth": (
        # Half a gigabyte per second of one accelerator, which one TCP connection would reach, too.
        WrongFact(
            lambda cluster: metrics(cluster, gigabytes=2, seconds=4, transfers=20),
            "4.0 Gbit/s per accelerator, EFA has up to 400 (20 transfers of 95 MiB), no faster than one TCP",
        ),
        WrongFact(
            lambda cluster: metrics(cluster, gigabytes=0.02, seconds=0.2, transfers=20),
            "the prompts are too short to measure a bandwidth",
            "unknown",
        ),
        WrongFact(
            lambda cluster: setattr(cluster, "metrics", dict.fromkeys(worker_names(cluster), "")),
            "no time of transfers is reported",
            "unknown",
        ),
    ),
}
#: Checks whose facts need requests to a frontend, an account or llm-d, and the file with their tests.
ELSEWHERE = {
    "stacks": "tests/unit/operate/verify/test_account_checks.py",
    "caller certificates": "tests/unit/operate/verify/test_caller_checks.py",
    "known callers": "tests/unit/operate/verify/test_caller_checks.py",
    "control plane": "tests/unit/operate/verify/test_account_checks.py",
    "add-ons": "tests/unit/operate/verify/test_account_checks.py",
    "control plane logs": "tests/unit/operate/verify/test_account_checks.py",
    "controllers": "tests/unit/operate/verify/test_operations_checks.py",
    "streaming": "tests/unit/operate/verify/test_stream_checks.py",
    "inference pools": "tests/unit/operate/verify/test_inference_pools.py",
    "picks": "tests/unit/operate/verify/test_inference_pools.py",
    "routes": "tests/unit/operate/verify/test_verification.py",
    "tokens": "tests/local/serving/test_verify.py",
}
CASES = [(check, fact) for check, facts in WRONG.items() for fact in facts]
each_fact = pytest.mark.parametrize(
    ("check", "fact"), CASES, ids=[f"{check}: {fact.words}" for check, fact in CASES]
)


@pytest.fixture
def healthy(cluster: RecordedCluster) -> RecordedCluster:
    """The healthy cluster, whose workers streamed their weights and whose mirror is complete."""
    for name in worker_names(cluster):
        cluster.logs[name] = STREAMED + LOG
    job = recorded.helm_secret(ExpectedRelease("qwen3-32b.weights", "inference", "0.1.0"))
    labels = {"app.kubernetes.io/instance": "qwen3-32b.weights"}
    metadata = {**job["metadata"], "labels": labels}
    cluster.objects["jobs"].append(
        {"metadata": metadata, "status": {"conditions": conditions(Complete=True)}}
    )
    return cluster


def seen(platform: VerifiedPlatform, cluster: RecordedCluster, check: str) -> list[CheckResult]:
    """Return what one check finds in a cluster."""
    return list(CLUSTER_CHECKS[check](RunningPlatform(platform, cluster)))


def test_every_check_has_a_fact_that_turns_it() -> None:
    assert {*WRONG, *ELSEWHERE} == {*CLUSTER_CHECKS, *ACCOUNT_CHECKS}
    assert not WRONG.keys() & ELSEWHERE.keys()
    for check, path in ELSEWHERE.items():
        function = ACCOUNT_CHECKS.get(check) or CLUSTER_CHECKS[check]
        text = (root() / path).read_text(encoding="utf-8")
        assert re.search(rf"\b({function.__name__}|{check})\b", text), f"{path} does not test {check}"


@each_fact
def test_a_healthy_platform_has_lines_and_no_other(
    platform: MakePlatform, healthy: RecordedCluster, check: str, fact: WrongFact
) -> None:
    assert {each.severity for each in seen(platform(fact.spec), healthy, check)} == {"ok"}


@each_fact
def test_a_wrong_fact_has_its_line_with_a_remedy(
    platform: MakePlatform, healthy: RecordedCluster, check: str, fact: WrongFact
) -> None:
    fact.change(healthy)
    found = [each for each in seen(platform(fact.spec), healthy, check) if each.severity != "ok"]
    assert {(each.check, each.severity) for each in found} == {(check, fact.severity)}
    assert any(fact.words in each.message for each in found)
    assert all(
        each.command or "; " in each.message for each in found if each.severity in ("error", "warning")
    )


def test_the_speed_that_a_user_of_vllm_reports_is_well(
    platform: MakePlatform, healthy: RecordedCluster
) -> None:
    # 2018 transfers of 167 MiB in 38.7 ms: https://github.com/vllm-project/vllm/issues/50913.
    metrics(healthy, gigabytes=2018 * 167 * 2**20 / 1e9, seconds=2018 * 0.0387, transfers=2018)
    (found,) = kv_transfer_checks.bandwidth(RunningPlatform(platform(), healthy))
    assert (found.severity, found.message) == (
        "ok",
        f"{RELEASE}: 36.2 Gbit/s per accelerator, EFA has up to 400 (2018 transfers of 167 MiB)",
    )


def test_transfers_of_before_are_not_measured(platform: MakePlatform, healthy: RecordedCluster) -> None:
    metrics(healthy, gigabytes=102, seconds=8, transfers=120)
    running = RunningPlatform(platform(), healthy)
    earlier = {RELEASE: Transferred(100e9, 0.0, seconds=4.0, transfers=100)}
    (found,) = kv_transfer_checks.bandwidth(replace(running, transferred=earlier))
    assert found.message.startswith(f"{RELEASE}: 4.0 Gbit/s per accelerator")


def test_without_efa_nothing_is_compared_with_it(platform: MakePlatform, healthy: RecordedCluster) -> None:
    def over_tcp(spec: dict[str, Any]) -> None:
        spec["pools"][0]["efa"] = False

    running = RunningPlatform(platform(over_tcp), healthy)
    assert [*kv_transfer_checks.bandwidth(running), *kv_transfer_checks.memory_registration(running)] == []


def test_the_metrics_of_a_healthy_worker_are_timed() -> None:
    assert "vllm:nixl_xfer_time_seconds_sum" in METRICS

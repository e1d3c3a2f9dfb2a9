"""What workers of each engine say of their KV transfer, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.kv_transfer_checks import judge, kv_transfer, read_transfers
from inference_blueprints.operate.verify.serving_access import Transferred, sample_sum
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from tests.unit.operate.verify.recorded import METRICS, RELEASE, RecordedCluster

MakePlatform = Callable[..., VerifiedPlatform]

# Of two agents of NIXL 1.5.0 on one machine, one of which had written a mebibyte to the other.
NIXL_PAGE = """# HELP agent_tx_bytes_total Number of bytes sent by the agent
# TYPE agent_tx_bytes_total counter
agent_tx_bytes_total{agent_name="decode",hostname="vm"} 0
agent_tx_bytes_total{agent_name="prefill",hostname="vm"} 1048576
# HELP agent_rx_bytes_total Number of bytes received by the agent
# TYPE agent_rx_bytes_total counter
agent_rx_bytes_total{agent_name="decode",hostname="vm"} 0
agent_rx_bytes_total{agent_name="prefill",hostname="vm"} 0
# HELP agent_errors_total Cumulative error count by status
# TYPE agent_errors_total counter
agent_errors_total{agent_name="decode",hostname="vm",status="backend"} 0
agent_errors_total{agent_name="prefill",hostname="vm",status="backend"} 0
# TYPE agent_tx_last_bytes gauge
agent_tx_last_bytes{agent_name="prefill",hostname="vm"} 1048576
"""
TRTLLM_PAGE = (
    "# TYPE trtllm_kv_transfer_bytes histogram\n"
    'trtllm_kv_transfer_bytes_bucket{engine_type="trtllm",le="+Inf"} 2.0\n'
    'trtllm_kv_transfer_bytes_sum{engine_type="trtllm"} 4096.0\n'
)
WORDS = {
    "vllm": "2026-11-21 15:12:47 NIXL INFO    _api.py:407 Backend {} was instantiated",
    "sglang": "[2026-11-21 15:12:47 TP0] NIXL KVManager initialized with backend: {}",
    "tensorrtLlm": "[TensorRT-LLM][INFO] NixlTransferAgent::NixlTransferAgent using NIXL backend: {}",
}


def problems(observations: Iterable[CheckResult]) -> list[CheckResult]:
    return [each for each in observations if each.severity != "ok"]


def only(observations: Iterable[CheckResult]) -> CheckResult:
    """The one thing that is not well."""
    (found,) = problems(observations)
    return found


def pods_of(cluster: RecordedCluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.objects["pods"]]


def with_engine(engine: str) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        spec["models"][0]["engine"] = {engine: {}}

    return change


@pytest.fixture
def on_engine(platform: MakePlatform, cluster: RecordedCluster) -> Callable[[str], RunningPlatform]:
    """A platform whose workers say and count what those of an engine do."""
    pages = {
        "vllm": {"9090": METRICS},
        "sglang": {"9090": "sglang:num_transfer_failed_reqs_total 0.0\n", "19090": NIXL_PAGE},
        "tensorrtLlm": {"9090": TRTLLM_PAGE},
    }

    def make(engine: str) -> RunningPlatform:
        for pod in pods_of(cluster):
            cluster.logs[pod] = WORDS[engine].format("LIBFABRIC")
            cluster.metrics |= {f"{pod}:{port}": page for port, page in pages[engine].items()}
            cluster.metrics[pod] = ""
        return RunningPlatform(platform(with_engine(engine)), cluster)

    return make


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        *((words.format("LIBFABRIC"), "as planned") for words in WORDS.values()),
        *((words.format("UCX"), "another") for words in WORDS.values()),
        ("Backend LIBFABRIC was instantiated\nBackend UCX was instantiated", "another"),
        ("Unsupported NIXL backend: EFA, fallback to UCX\nusing NIXL backend: UCX", "another"),
        ("rotated away", "not told"),
    ],
)
def test_the_log_says_what_moves_the_kv_cache(log: str, verdict: str) -> None:
    assert judge(f"first line\n{log}\nlast line", "LIBFABRIC") == verdict


@pytest.mark.parametrize(
    ("engine", "moved", "timed"),
    [("vllm", 13 * 1.5e6, 13), ("sglang", 13 * 1048576, 0), ("tensorrtLlm", 13 * 4096, 0)],
)
def test_each_engine_s_bytes_are_counted_where_it_counts_them(
    engine: str, moved: float, timed: int, on_engine: Callable[[str], RunningPlatform]
) -> None:
    running = on_engine(engine)
    (found,) = read_transfers(running).values()
    assert found == Transferred(moved, 0.0, cast("float", pytest.approx(timed * 0.0003)), timed)
    observations = list(kv_transfer(running))
    assert problems(observations) == []
    assert observations[-1].message.startswith(f"{RELEASE}: {moved:,.0f} bytes were transferred")


@pytest.mark.parametrize("engine", sorted(WORDS))
def test_a_silent_fall_back_to_tcp_is_an_error_though_bytes_are_moved(
    engine: str, on_engine: Callable[[str], RunningPlatform], cluster: RecordedCluster
) -> None:
    running = on_engine(engine)
    cluster.logs["prefill-7"] = WORDS[engine].format("UCX")
    found = only(kv_transfer(running))
    assert (found.check, found.severity) == ("KV transfer", "error")
    assert "qwen3-32b-main/prefill: does not use LIBFABRIC" in found.message
    assert "prefill-7; check that the pool's nodes can allocate EFA interfaces" in found.message
    assert "grep -i -e nixl" in (found.command or "")


def test_another_back_end_than_ucx_is_an_error_without_talk_of_efa(
    platform: MakePlatform, cluster: RecordedCluster
) -> None:
    def over_tcp(spec: dict[str, Any]) -> None:
        spec["pools"][0]["efa"] = False

    running = RunningPlatform(platform(over_tcp), cluster)
    found = [each for each in kv_transfer(running) if each.severity == "error"]
    assert len(found) == 2, "workers of both roles name LIBFABRIC"
    assert "does not use UCX, so prefill and decode workers may not reach each other" in found[0].message
    assert not [each for each in found if "EFA" in each.message or "slower" in each.message]


@pytest.mark.parametrize("engine", sorted(WORDS))
def test_bytes_of_before_are_no_proof(engine: str, on_engine: Callable[[str], RunningPlatform]) -> None:
    """What others moved earlier says nothing of the requests that were just sent."""
    running = on_engine(engine)
    found = only(kv_transfer(replace(running, transferred=read_transfers(running))))
    assert found.severity == "error"
    assert "no KV cache was transferred during the check" in found.message


@pytest.mark.parametrize(
    ("engine", "port", "line"),
    [
        ("vllm", "9090", METRICS + "vllm:nixl_num_failed_transfers_total 2\n"),
        ("sglang", "19090", NIXL_PAGE + 'agent_errors_total{status="remote_disconnect"} 2\n'),
        ("sglang", "9090", "sglang:num_transfer_failed_reqs_total 2.0\n"),
    ],
)
def test_a_transfer_that_fails_is_an_error_and_one_of_before_a_warning(
    engine: str,
    port: str,
    line: str,
    on_engine: Callable[[str], RunningPlatform],
    cluster: RecordedCluster,
) -> None:
    running = on_engine(engine)
    cluster.metrics[f"decode-0:{port}"] = line
    failed = only(kv_transfer(running))
    assert failed.severity == "error"
    assert "2 transfers failed during the check" in failed.message
    before = only(kv_transfer(replace(running, transferred={RELEASE: Transferred(1.0, 2.0)})))
    assert before.severity == "warning"
    assert "2 transfers failed before" in before.message


@pytest.mark.parametrize("engine", sorted(WORDS))
def test_workers_that_count_nothing_are_not_taken_for_proof(
    engine: str, on_engine: Callable[[str], RunningPlatform], cluster: RecordedCluster
) -> None:
    running = on_engine(engine)
    cluster.metrics = dict.fromkeys(pods_of(cluster), "other 1\n")
    assert read_transfers(running) == {}
    found = only(kv_transfer(running))
    assert found.severity == "unknown"
    assert "have no transfer metrics" in found.message


def test_a_log_that_was_rotated_is_not_taken_for_proof(
    running: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.logs["decode-0"] = "a million lines later"
    assert only(kv_transfer(running)).severity == "unknown"


def test_what_cannot_be_read_before_is_left_out(running: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.refusal = "pods is forbidden"
    assert read_transfers(running) == {}


def test_samples_are_added_up_over_their_labels() -> None:
    text = '# TYPE a counter\na{x="1"} 2\na{x="2"} 3.5\na_total 7\nab 9\n'
    assert sample_sum(text, "a") == 5.5
    assert sample_sum(text, "a", 'x="2"') == 3.5
    assert sample_sum(text, "a", 'x="3"') is None
    assert sample_sum(text, "b") is None


def test_nothing_is_moved_where_one_worker_does_both(
    platform: MakePlatform, cluster: RecordedCluster
) -> None:
    def together(spec: dict[str, Any]) -> None:
        aggregated = {"pool": "h200", "replicas": 4, "tensorParallelSize": 4}
        spec["models"][0]["deployments"] = [{"name": "main", "aggregated": aggregated}]

    running = RunningPlatform(platform(together), cluster)
    assert list(kv_transfer(running)) == []
    assert read_transfers(running) == {}

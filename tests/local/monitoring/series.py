"""Written series of a platform that is well, in the notation of Prometheus' unit tests, a value per minute.

Their values are written. Names and labels of GPU and KEDA series are those of recorded output, which
`test_recorded_exporters` evaluates itself; those of EFA are documented. The others have the names and
labels that `test_live_queries` reads from real frontends and engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_blueprints.render.monitoring.recording_rules import BUCKETS

PLATFORM: Final = 'platform="quickstart"'
SERVING: Final = f'{PLATFORM},model="qwen3-8b",release="qwen3-8b-main"'
WORKER: Final = f'{SERVING},role="worker",pool="l40s"'
FRONTEND: Final = f'{SERVING},role="frontend",pool="system",pod="frontend-1",exported_model="qwen3-8b"'
POOL: Final = f'{PLATFORM},pool="l40s"'
#: Labels of a node, which Prometheus adds to its exporters.
NODE: Final = 'instance_type="g6e.2xlarge",purchase="on-demand"'
_GPU = 'UUID="uuid",device="nvidia0",modelName="NVIDIA L40S",Hostname="hostname",container="main"'
_EFA_NODE = '"@resource.k8s.cluster.name"="quickstart","@resource.k8s.node.name"="node-1"'
#: Labels of an autoscaler of kube-state-metrics, as Prometheus relabels them.
AUTOSCALER: Final = f'{PLATFORM},release="qwen3-8b-main",role="worker"'
SCALED: Final = 'scaledObject="qwen3-8b",type="scaledobject"'
TTFT: Final = "dynamo_frontend_time_to_first_token_seconds"
ITL: Final = "dynamo_frontend_inter_token_latency_seconds"

#: Replicas of the front door, and a histogram of what they add: all within a millisecond.
DOOR: Final = f'{PLATFORM},role="door"'
_DOOR_BOUNDS = {"0.0005": 0} | dict.fromkeys(("0.001", "0.05", "0.1", "0.25", "+Inf"), 58)

Series = dict[str, str]


def histogram(name: str, labels: str, *, seconds: float, per_minute: float, minutes: int) -> Series:
    """Return a histogram all of whose observations are in the bucket of one duration."""
    bounds = [*(repr(bound) for bound in BUCKETS[name]), "+Inf"]
    rising, flat = f"0+{per_minute:g}x{minutes}", f"0x{minutes}"
    series = {
        f'{name}_bucket{{{labels},le="{bound}"}}': rising if float(bound) >= seconds else flat
        for bound in bounds
    }
    return {**series, f"{name}_count{{{labels}}}": rising}


def requests(status: str, error_type: str, per_minute: float, minutes: int) -> Series:
    labels = f'{FRONTEND},endpoint="chat_completions",request_type="stream"'
    name = f'dynamo_frontend_requests_total{{{labels},status="{status}",error_type="{error_type}"}}'
    return {name: f"0+{per_minute:g}x{minutes}"}


def gpu(name: str, number: int, values: str) -> Series:
    return {f'DCGM_FI_DEV_{name}{{{POOL},{NODE},node="node-{number}",gpu="0",{_GPU}}}': values}


def well(minutes: int) -> Series:
    """Return series of a platform without faults: two workers on two nodes, one of two GPUs each in use."""
    series: Series = {}
    series |= requests("success", "", 60, minutes)
    series |= requests("error", "validation", 6, minutes)  # a caller's fault is none of ours
    series |= histogram(TTFT, FRONTEND, seconds=0.2, per_minute=60, minutes=minutes)
    series |= histogram(ITL, FRONTEND, seconds=0.02, per_minute=6000, minutes=minutes)
    series |= {
        f"dynamo_frontend_inflight_requests{{{FRONTEND}}}": f"8x{minutes}",
        f"dynamo_frontend_output_tokens_total{{{FRONTEND}}}": f"0+6000x{minutes}",
        f"dynamo_frontend_input_sequence_tokens_sum{{{FRONTEND}}}": f"0+60000x{minutes}",
        f'up{{{SERVING},role="frontend",pool="system",pod="frontend-1",node="system-1"}}': f"1x{minutes}",
        f"keda_scaler_detail_errors_total{{{PLATFORM},{SCALED}}}": f"0x{minutes}",
        **{
            f'up{{{PLATFORM},job="keda",app="{app}",instance="{number}"}}': f"1x{minutes}"
            for app in ("keda-operator", "keda-operator-metrics-apiserver")
            for number in (1, 2)
        },
        f'{{"efa_rx_dropped",{_EFA_NODE},"aws.efa.device"="rdmap16s27"}}': f"0x{minutes}",
    }
    series |= {f"kube_horizontalpodautoscaler_status_desired_replicas{{{AUTOSCALER}}}": f"2x{minutes}"}
    for number in (1, 2):
        series |= {
            f'kube_pod_status_ready{{{PLATFORM},pod="worker-{number}",condition="true"}}': f"1x{minutes}"
        }
        engine = f'{WORKER},pod="worker-{number}",engine="0",model_name="qwen3-8b"'
        series |= {
            f'up{{{WORKER},pod="worker-{number}",node="node-{number}"}}': f"1x{minutes}",
            f"vllm:num_requests_waiting{{{engine}}}": f"0x{minutes}",
            f"vllm:kv_cache_usage_perc{{{engine}}}": f"0.4x{minutes}",
        }
        series |= gpu("GPU_UTIL", number, f"80x{minutes}")
        series |= gpu("FB_USED", number, f"40000x{minutes}")
        series |= gpu("FB_FREE", number, f"5000x{minutes}")
        series |= gpu("XID_ERRORS", number, f"0x{minutes}")
    return series | door(minutes)


def door(minutes: int) -> Series:
    """Return series of a front door without faults: two replicas, and a budget of which half is spent."""
    series: Series = {}
    for number in (1, 2):
        own = f'{DOOR},pod="door-{number}"'
        series |= {
            f"up{{{own}}}": f"1x{minutes}",
            f"door_requests_total{{{own}}}": f"0+60x{minutes}",
            f'door_answers_total{{{own},class="2xx"}}': f"0+58x{minutes}",
            f'door_answers_total{{{own},class="4xx"}}': f"0+2x{minutes}",
            f'door_answers_total{{{own},class="5xx"}}': f"0x{minutes}",
            f'door_budget_spent_ratio{{{own},scope="team",name="ads",window="day"}}': f"0.5x{minutes}",
            f"door_store_lost_seconds{{{own}}}": f"0x{minutes}",
            f"door_key_snapshot_age_seconds{{{own}}}": f"1.5x{minutes}",
            f"door_platform_keys_late{{{own}}}": f"0x{minutes}",
            f"door_settlement_lag_seconds{{{own}}}": f"0.2x{minutes}",
            f"door_records_waiting{{{own}}}": f"40x{minutes}",
            f"door_records_lost_total{{{own}}}": f"0x{minutes}",
            **{
                f'door_added_seconds_bucket{{{own},le="{bound}"}}': f"0+{rise}x{minutes}"
                for bound, rise in _DOOR_BOUNDS.items()
            },
        }
    return series


def lines(series: Mapping[str, str]) -> list[str]:
    return [f"{name} {values}" for name, values in series.items()]

"""The arithmetic of five blueprints, redone by hand: every expected figure is written out with its sum.

Prices are read from the catalogue, so that a new price changes no expectation. Speeds, sizes and vCPUs are
written out as the catalogue has them.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.plan.plan_tables import plan_notes
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.cold_starts import COLD_STARTS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.objectives import OBJECTIVES, ObjectiveCheck
from inference_blueprints.report.plan.sections.pools import POOLS, TOTALS
from inference_blueprints.report.plan.sections.quotas import QUOTAS
from inference_blueprints.report.plan.sections.tokens import (
    BEYOND_PROFILE,
    TOKEN_PRICES,
    WITHOUT_PROFILE,
    BeyondProfile,
)
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.report.pricing.rates import CustomRates
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.performance import min_answer_ms, role_capacity, time_to_first_token_ms
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.way_capacity import deployment_capacity

#: System nodes: 2 m7i.xlarge of 4 vCPUs run; at the most 3 * 4 + 20 m7i.4xlarge * 16 = 332.
_SYSTEM_QUOTA = ("L-1216C47A", 8, 332)
#: 3 + 20 system nodes, each 1 + 2 * 16 = 33 addresses.
_SYSTEM_ADDRESSES = 759


def _usd(instance_type: str) -> float:
    """Return the price of an hour on demand."""
    return catalog.prices().usd_per_hour[instance_type]


def _service(name: str) -> float:
    """Return the price of a service, in its unit."""
    return catalog.service_prices().usd(name)


def _plan(document: dict[str, Any], changes: dict[str, Any], rates: CustomRates | None = None) -> PlanSummary:
    document = copy.deepcopy(document)
    model = document["spec"]["models"][0]
    model.update(changes.pop("model", {}))
    model["deployments"][0]["aggregated"].update(changes.pop("workers", {}))
    document["spec"].update(changes)
    blueprint = parse_blueprint(yaml.safe_dump(document), "by-hand.yaml").blueprint
    return summarise(blueprint, build_plan(blueprint), rates)


def _quotas(summary: PlanSummary) -> list[tuple[str, int, int]]:
    return [(need.code, need.vcpu_used, need.vcpu_max) for need in summary[QUOTAS]]


def _pool(name: str, instance_types: list[str], maximum: int, **keys: Any) -> dict[str, Any]:
    return {"name": name, "instanceTypes": instance_types, "nodes": {"max": maximum}, **keys}


def test_quickstart(quickstart_document: dict[str, Any]) -> None:
    summary = _plan(quickstart_document, {})
    two_nodes = 2 * _usd("g6e.2xlarge")
    assert summary[TOTALS].usd_per_hour_used == pytest.approx(two_nodes)
    (price,) = summary[TOKEN_PRICES]
    # 2 requests/s * (3,000 + 200) = 6,400 tokens/s = 23.04 million an hour.
    assert price.usd_per_million_tokens == pytest.approx(two_nodes / 23.04)
    # 2 requests/s * 200 = 400 tokens/s = 1.44 million an hour.
    assert price.usd_per_million_output_tokens == pytest.approx(two_nodes / 1.44)
    # 2 nodes of 8 vCPUs.
    assert _quotas(summary) == [_SYSTEM_QUOTA, ("L-DB2E81BA", 16, 16)]
    (start,) = summary[COLD_STARTS]
    # 5,000 Mbit/s = 625 MB/s: 16.381452288 GB take 26.2103 s, and 1 GB 1.6 s.
    assert start.weights_seconds == pytest.approx(26.2103, abs=1e-4)
    assert start.image_seconds_per_gb == 1.6
    # 759 + 2 * 33 = 825 of 3 * 16,345.
    assert (summary[ADDRESSES].needed, summary[ADDRESSES].available) == (_SYSTEM_ADDRESSES + 66, 49_035)


def test_two_workers_a_node_share_its_network(quickstart_document: dict[str, Any]) -> None:
    summary = _plan(
        quickstart_document,
        {
            "pools": [_pool("h200", ["p5en.48xlarge"], 3)],
            "model": {
                "weights": {"huggingFace": "Qwen/Qwen3-235B-A22B-FP8"},
                "workload": {"inputTokens": 4000, "outputTokens": 1000, "peakRequestsPerSecond": 4},
            },
            "workers": {"pool": "h200", "replicas": 4, "tensorParallelSize": 4},
        },
    )
    # 4 * 4 = 16 devices at 8 a node: 2 nodes, at most 3.
    totals = summary[TOTALS]
    assert (totals.nodes_used, totals.accelerators_used) == (2, 16)
    assert totals.usd_per_hour_used == pytest.approx(2 * _usd("p5en.48xlarge"))
    assert totals.usd_per_hour_max == pytest.approx(3 * _usd("p5en.48xlarge"))
    # 4 * 5,000 = 20,000 tokens/s = 72 million an hour.
    (price,) = summary[TOKEN_PRICES]
    assert price.usd_per_million_tokens == pytest.approx(2 * _usd("p5en.48xlarge") / 72)
    # Contexts of 4,500 tokens were measured to 128 requests at once at 4,096; the workers hold more.
    assert price.usd_per_million_tokens_full is None
    # 2 * 192 = 384, 3 * 192 = 576.
    assert _quotas(summary) == [_SYSTEM_QUOTA, ("L-417A185B", 384, 576)]
    (start,) = summary[COLD_STARTS]
    # 2 workers * 236.445407232 GB = 472.890814464 GB. One of 16 cards of 3,200 Gbit/s has 25 GB/s, and one
    # NAT gateway 100 Gbit/s = 12.5 GB/s: 37.8313 s.
    assert (start.workers_on_the_node, start.weights_bytes) == (2, 472_890_814_464)
    assert start.weights_seconds == pytest.approx(37.8313, abs=1e-4)
    assert start.weights_from == "from the Hub by NAT gateway"
    # 8 devices and 8 daemons: 16 pods, 1 + 2 * 16 = 33; 759 + 3 * 33 = 858.
    assert summary[ADDRESSES].needed == 858


def test_spot_with_own_rates_and_a_fall_back(quickstart_document: dict[str, Any]) -> None:
    changes = {
        "pools": [
            _pool("quad", ["g6e.12xlarge", "g6e.24xlarge"], 4, purchase={"spot": {"onDemandFallback": True}})
        ],
        "model": {
            "weights": {"huggingFace": "Qwen/Qwen3-32B"},
            "workload": {"inputTokens": 2000, "outputTokens": 500, "peakRequestsPerSecond": 1},
        },
        "workers": {"pool": "quad", "replicas": 2, "tensorParallelSize": 4},
    }
    unknown = _plan(quickstart_document, copy.deepcopy(changes))
    assert [pool.usd_per_hour_used for pool in unknown[POOLS]] == [None]
    # At most on demand: 2 nodes of the type that is used now, 4 of the one that costs most.
    four_nodes = 4 * _usd("g6e.24xlarge")
    assert unknown[TOTALS].usd_per_hour_used_at_most == pytest.approx(2 * _usd("g6e.12xlarge"))
    assert unknown[TOTALS].usd_per_hour_max == pytest.approx(four_nodes)
    assert unknown[TOKEN_PRICES][0].usd_per_million_tokens is None
    rates = CustomRates(
        "us-west-2", "2026-11", "a test", {("g6e.12xlarge", "spot"): 4.5, ("g6e.24xlarge", "spot"): 6.5}
    )
    summary = _plan(quickstart_document, changes, rates)
    # 2 * 4.5 = 9 USD/h; at most 4 nodes on demand. 1 * 2,500 tokens/s = 9 million an hour: 1 USD a million.
    assert summary[TOTALS].usd_per_hour_used == 9.0
    assert summary[TOTALS].usd_per_hour_max == pytest.approx(four_nodes)
    assert summary[TOKEN_PRICES][0].usd_per_million_tokens == pytest.approx(1.0)
    # Spot: 2 * 48 = 96, 4 * 96 = 384; on demand stands in for as many, and for none now.
    assert _quotas(summary) == [_SYSTEM_QUOTA, ("L-3819A6DF", 96, 384), ("L-DB2E81BA", 0, 384)]
    # 100,000 Mbit/s = 12.5 GB/s: 65.52421376 GB take 5.2419 s.
    assert summary[COLD_STARTS][0].weights_seconds == pytest.approx(5.2419, abs=1e-4)


def test_images_on_a_snapshot_leave_nvme_unused(quickstart_document: dict[str, Any]) -> None:
    snapshot = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
    pool = _pool("l40s", ["g6e.12xlarge"], 2, imageAcceleration=snapshot)
    summary = _plan(
        quickstart_document,
        {"pools": [pool], "workers": {"pool": "l40s", "replicas": 4, "tensorParallelSize": 1}},
    )
    (start,) = summary[COLD_STARTS]
    # 300 MiB/s = 314.5728 MB/s: 1 GB takes 3.17891 s. EBS: 20,000 Mbit/s, a gp3 volume of 1,000 MiB/s =
    # 1,048.576 MB/s; network 100,000 Mbit/s. 4 workers * 16.381452288 GB = 65.525809152 GB: 62.4903 s.
    assert start.image_from == "snapshot"
    assert start.image_seconds_per_gb == pytest.approx(3.17891, abs=1e-5)
    assert start.weights_seconds == pytest.approx(62.4903, abs=1e-4)
    assert start.weights_from == "from the Hub by EBS"
    # 62.4903 / 3.17891 = 19.66.
    assert start.dominated_by == "weights, unless the image is larger than 19.7 GB unpacked"


def test_an_image_s_size_decides_what_takes_longest(
    quickstart_document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1"
    sizes = {name: catalog.Image(name, compressed_bytes=8_000_000_000, unpacked_bytes=20_000_000_000)}
    monkeypatch.setattr(catalog, "images", lambda: sizes)
    (pulled,) = _plan(quickstart_document, {})[COLD_STARTS]
    # 5,000 Mbit/s = 625 MB/s: 8 GB take 12.8 s, less than the weights' 26.2 s.
    assert (pulled.image_seconds, pulled.dominated_by) == (12.8, "weights")
    snapshot = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
    (baked,) = _plan(
        quickstart_document, {"pools": [_pool("l40s", ["g6e.2xlarge"], 2, imageAcceleration=snapshot)]}
    )[COLD_STARTS]
    # 20 GB / 314.5728 MB/s = 63.578 s.
    assert baked.image_seconds == pytest.approx(63.578, abs=1e-3)
    assert baked.dominated_by == "image"


def test_beyond_the_latency_profile_figures_are_unknown(quickstart_document: dict[str, Any]) -> None:
    """Bug: a mean prompt of 20,000 tokens had a time, a price and kept objectives, from a line drawn on."""
    model = {
        "workload": {"inputTokens": 20_000, "outputTokens": 100, "peakRequestsPerSecond": 0.1},
        "objectives": {"timeToFirstTokenP90Ms": 60_000},
    }
    summary = _plan(quickstart_document, {"model": model})
    reason = "the latency profile ends at 16,384 tokens of a prompt, and a mean prompt has 20,000"
    assert summary[WITHOUT_PROFILE] == ("qwen3-8b/main",)
    assert summary[BEYOND_PROFILE] == (BeyondProfile("qwen3-8b/main", reason),)
    assert (summary[TOKEN_PRICES], [check.planned_ms for check in summary[OBJECTIVES]]) == ((), [None])
    assert f"No token price for qwen3-8b/main: {reason}." in plan_notes(summary)
    assert as_dict(summary)["beyondProfile"] == [{"deployment": "qwen3-8b/main", "reason": reason}]


def test_images_and_weights_on_ebs(quickstart_document: dict[str, Any]) -> None:
    summary = _plan(
        quickstart_document,
        {
            "pools": [_pool("t4g", ["g5g.4xlarge"], 3)],
            "model": {
                "engine": {"vllm": {"args": {"dtype": "half"}}},
                "weights": {"huggingFace": "Qwen/Qwen3-0.6B"},
                "workload": {"inputTokens": 500, "outputTokens": 100, "peakRequestsPerSecond": 1},
            },
            "workers": {"pool": "t4g", "replicas": 2, "tensorParallelSize": 1},
        },
    )
    assert summary[TOTALS].usd_per_hour_used == pytest.approx(2 * _usd("g5g.4xlarge"))
    # No latency profile of a T4G: no price of tokens.
    assert (summary[TOKEN_PRICES], summary[WITHOUT_PROFILE]) == ((), ("qwen3-8b/main",))
    assert summary[BEYOND_PROFILE] == ()
    # EBS: 4,750 Mbit/s = 593.75 MB/s = 566 MiB/s, which the volume is made for: 593,494,016 bytes/s; the
    # network's 5,000 Mbit/s = 625 MB/s are faster. 1,192,085,504 bytes take 2.0086 s, 1 GB 1.6849 s.
    (start,) = summary[COLD_STARTS]
    assert start.weights_seconds == pytest.approx(2.0086, abs=1e-4)
    assert start.image_seconds_per_gb == pytest.approx(1.6849, abs=1e-4)
    assert start.weights_from == "from the Hub by EBS"
    # 2 * 16 = 32, 3 * 16 = 48.
    assert _quotas(summary) == [_SYSTEM_QUOTA, ("L-DB2E81BA", 32, 48)]


def test_streamed_weights_touch_no_disk(quickstart_document: dict[str, Any]) -> None:
    """Limited by EBS, they would take 2.0 s: the volume is slower than the network."""
    summary = _plan(
        quickstart_document,
        {
            "pools": [_pool("t4g", ["g5g.4xlarge"], 3)],
            "model": {
                "engine": {"vllm": {"args": {"dtype": "half"}}},
                "weights": {"s3": "s3://acme-models/qwen3/", "catalog": "Qwen/Qwen3-0.6B"},
                "workload": {"inputTokens": 500, "outputTokens": 100, "peakRequestsPerSecond": 1},
            },
            "workers": {"pool": "t4g", "replicas": 2, "tensorParallelSize": 1},
        },
    )
    (start,) = summary[COLD_STARTS]
    # 1,192,085,504 bytes over the network's 5,000 Mbit/s = 625 MB/s.
    assert start.weights_seconds == pytest.approx(1.9073, abs=1e-4)


def test_a_small_network_and_streamed_weights(quickstart_document: dict[str, Any]) -> None:
    summary = _plan(
        quickstart_document,
        {
            "network": {"cidr": "10.0.0.0/20"},
            "pools": [_pool("l40s", ["g6e.48xlarge"], 10)],
            "model": {
                "weights": {"s3": "s3://acme-models/qwen3-8b/", "catalog": "Qwen/Qwen3-8B"},
                "workload": {"inputTokens": 1000, "outputTokens": 100, "peakRequestsPerSecond": 40},
            },
            "workers": {"pool": "l40s", "replicas": 16, "tensorParallelSize": 2},
        },
    )
    # 16 * 2 = 32 devices at 8 a node.
    four_nodes = 4 * _usd("g6e.48xlarge")
    assert summary[TOTALS].usd_per_hour_used == pytest.approx(four_nodes)
    # 40 * 1,100 = 44,000 tokens/s = 158.4 million an hour.
    assert summary[TOKEN_PRICES][0].usd_per_million_tokens == pytest.approx(four_nodes / 158.4)
    # 4 * 192 = 768, 10 * 192 = 1,920.
    assert _quotas(summary) == [_SYSTEM_QUOTA, ("L-DB2E81BA", 768, 1920)]
    # 4 workers * 16.381452288 GB = 65.525809152 GB over one of 4 cards of 400 Gbit/s: 12.5 GB/s: 5.2421 s.
    assert summary[COLD_STARTS][0].weights_seconds == pytest.approx(5.2421, abs=1e-4)
    # /22 a zone: 1,024 - 39 = 985, 3 * 985 = 2,955; 759 + 10 * 33 = 1,089; 985 / 33 = 29 nodes a subnet.
    use = summary[ADDRESSES]
    assert (use.needed, use.available, use.pools[1].nodes_in_a_subnet) == (1_089, 2_955, 29)


def test_efa_interfaces_that_karpenter_attaches_have_addresses(quickstart_document: dict[str, Any]) -> None:
    def addresses(instance_types: list[str]) -> int:
        pools = [_pool("h200", instance_types, 3, efa=True, availabilityZone="us-west-2a")]
        workers = {"pool": "h200", "replicas": 2, "tensorParallelSize": 4}
        summary = _plan(quickstart_document, {"pools": pools, "workers": workers})
        assert summary[ADDRESSES] is not None
        return summary[ADDRESSES].needed

    # 8 devices and 8 daemons, 2 /28. Where cards differ, 32 interfaces of a p5e: 759 + 3 * (32 + 32) = 951.
    assert addresses(["p5e.48xlarge", "p5en.48xlarge"]) == 951
    # Of one type they are efa-only: 759 + 3 * (1 + 32) = 858.
    assert addresses(["p5en.48xlarge"]) == 858


def _month(summary: PlanSummary) -> dict[str, float | None]:
    return {item.name: item.usd_per_month for item in summary[PLATFORM_COST].items}


def test_a_month_of_quickstart(quickstart_document: dict[str, Any]) -> None:
    summary = _plan(quickstart_document, {})
    storage = _service("gp3_storage")
    expected = {
        "pool l40s": 730 * 2 * _usd("g6e.2xlarge"),
        # NVMe holds the images, so the volume is as slow as is free.
        "EBS volumes of pool l40s": 2 * (6 + 200) * storage,
        "EKS control plane": 730 * _service("eks_cluster"),
        "system nodes": 730 * 2 * _usd("m7i.xlarge"),
        "EBS volumes of system nodes": 2 * (6 + 80) * storage,
        # One per zone, each with an address.
        "NAT gateways": 730 * 3 * (_service("nat_gateway") + _service("public_ipv4")),
        # The weights of 2 workers, in GB.
        "NAT gateway data": 2 * 16.381452288 * _service("nat_gateway_data"),
        # 10 endpoints in 3 zones.
        "interface endpoints": 730 * 10 * 3 * _service("interface_endpoint"),
        "load balancer": 730 * _service("application_load_balancer"),
        # 3,200 tokens * 4 bytes + 1,500 = 14,300 bytes; 2 a second are 0.10296 GB an hour. 1 GB is a unit.
        "load balancer capacity": 730 * 0.10296 * _service("load_balancer_capacity_unit"),
        # Two thirds of it come from another of 3 zones, billed in both directions.
        "traffic between zones": 730 * 0.10296 * 2 / 3 * 2 * _service("cross_zone_data"),
        "private DNS zone": _service("hosted_zone"),
        "KMS key": _service("kms_key"),
    }
    unknown = ("logs", "data transfer")
    cent = 0.01
    assert _month(summary) == pytest.approx({**expected, **dict.fromkeys(unknown)}, abs=cent)
    cost = summary[PLATFORM_COST]
    assert cost.usd_per_month == pytest.approx(sum(expected.values()), abs=len(expected) * cent)
    assert cost.not_priced == unknown
    assert cost.usd_per_month_least == cost.usd_per_month


def test_a_month_of_elastic_workers_is_a_range(quickstart_document: dict[str, Any]) -> None:
    workers = {"replicas": {"min": 1, "max": 4}, "scaledBy": {"load": {}}}
    pool = _pool("l40s", ["g6e.2xlarge"], 4)
    summary = _plan(quickstart_document, {"pools": [pool], "workers": workers, "observability": {}})
    cost, items = summary[PLATFORM_COST], {item.name: item for item in summary[PLATFORM_COST].items}
    node = 730 * _usd("g6e.2xlarge")
    assert items["pool l40s"].usd_per_month == pytest.approx(4 * node, abs=0.01)
    assert items["pool l40s"].least == pytest.approx(node, abs=0.01)
    volume = items["EBS volumes of pool l40s"]
    assert volume.least == pytest.approx((volume.usd_per_month or 0.0) / 4, abs=0.01)
    assert cost.usd_per_month - cost.usd_per_month_least == pytest.approx(
        sum((item.usd_per_month or 0.0) - item.least for item in cost.items), abs=0.01
    )
    # `nodes.min` keeps more nodes than the workers need.
    pool["nodes"]["min"] = 3
    summary = _plan(quickstart_document, {"pools": [pool], "workers": workers, "observability": {}})
    items = {item.name: item for item in summary[PLATFORM_COST].items}
    assert items["pool l40s"].least == pytest.approx(3 * node, abs=0.01)


def test_a_capacity_block_is_paid_for_its_days(quickstart_document: dict[str, Any]) -> None:
    """Two weeks were counted as a month: 730 hours."""
    rates = CustomRates("us-west-2", "2026-11", "a test", {("p5.48xlarge", "capacityBlock"): 31.0})

    def cost(**dates: str) -> tuple[dict[str, float | None], tuple[str, ...]]:
        block = {"id": "cr-0a1b2c3d4e5f60718", **dates}
        pool = _pool("l40s", ["p5.48xlarge"], 1, purchase={"capacityBlock": block})
        summary = _plan(quickstart_document, {"pools": [pool]}, rates)
        return _month(summary), summary[PLATFORM_COST].not_priced

    two_weeks, _ = cost(starts="2026-12-01T11:30:00Z", ends="2026-12-15T11:30:00Z")
    assert two_weeks["pool l40s"] == pytest.approx(14 * 24 * 31.0)
    half_a_year, _ = cost(starts="2026-12-01T11:30:00Z", ends="2027-06-01T11:30:00Z")
    assert half_a_year["pool l40s"] == pytest.approx(730 * 31.0)
    unknown, not_priced = cost()
    assert unknown["pool l40s"] is None
    assert "pool l40s" in not_priced


def test_frontends_beyond_the_system_nodes_are_in_the_month(quickstart_document: dict[str, Any]) -> None:
    """A large peak needs nodes for its frontends, which the month left out."""
    frontend = {"replicas": 10, "cpu": 8, "memoryGib": 8}
    month = _month(_plan(quickstart_document, {"model": {"frontend": frontend}}))
    # 80 vCPUs, of which two m7i.xlarge have 8; what an m7i costs grows with its vCPUs.
    assert month["nodes that Karpenter adds to them"] == pytest.approx(
        730 * 72 / 4 * _usd("m7i.xlarge"), abs=0.01
    )


def test_a_faster_volume_costs_throughput_and_operations(quickstart_document: dict[str, Any]) -> None:
    """Leaving out the operations turns this red: 4 of them are needed for each MiB/s."""
    snapshot = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
    pool = _pool("l40s", ["g6e.12xlarge"], 2, imageAcceleration=snapshot)
    workers = {"pool": "l40s", "replicas": 4, "tensorParallelSize": 1}
    month = _month(_plan(quickstart_document, {"pools": [pool], "workers": workers}))
    # 20,000 Mbit/s allow 2,384 MiB/s, a volume has at most 1,000, and 125 of them and 3,000 IOPS are free.
    speed = 875 * _service("gp3_throughput") + 1_000 * _service("gp3_operations")
    assert month["EBS volumes of pool l40s"] == pytest.approx((6 + 200) * _service("gp3_storage") + speed)


@pytest.mark.parametrize("peak", [1, 60])
def test_the_slower_role_decides_the_price_of_tokens(peak: int) -> None:
    """Taking the faster of prefill and decode turns this red."""
    text = (blueprints_directory() / "p5en-disaggregated.yaml").read_text(encoding="utf-8")
    text = text.replace("peakRequestsPerSecond: 30", f"peakRequestsPerSecond: {peak}")
    blueprint = parse_blueprint(text, "by-hand.yaml").blueprint
    roles = [role_capacity(resolved) for resolved in resolve(blueprint, 0, 0)]
    full = [each.full_requests_per_second for each in roles if each]
    assert len(full) == 2
    assert full[0] != pytest.approx(full[1])
    (price,) = summarise(blueprint, build_plan(blueprint))[TOKEN_PRICES]
    assert price.requests_per_second == pytest.approx(min(peak, *full))
    assert price.usd_per_million_tokens is not None
    assert price.usd_per_million_tokens_full is not None
    usd = price.usd_per_million_tokens * price.requests_per_second
    assert price.usd_per_million_tokens_full == pytest.approx(usd / min(full))


def test_a_month_says_from_when_extended_support_costs_more(quickstart_document: dict[str, Any]) -> None:
    quickstart_document["spec"]["cluster"]["eks"] = {"version": "1.34", "extendedSupport": True}
    [item] = [
        each
        for each in _plan(quickstart_document, {})[PLATFORM_COST].items
        if each.name == "EKS control plane"
    ]
    standard = _service("eks_cluster")
    assert item.usd_per_month == pytest.approx(730 * standard)
    # From the end of standard support of 1.34.
    extended = 730 * (standard + _service("eks_extended_support"))
    assert item.assumption == (
        f"1 cluster of 1.34 in standard support; {extended:,.2f} in extended support, from 2026-12-02"
    )


def test_a_month_in_a_vpc_that_exists_with_mirrored_weights(quickstart_document: dict[str, Any]) -> None:
    existing = {
        "vpcId": "vpc-0a1b2c3d",
        "vpcCidr": "10.0.0.0/16",
        "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"],
    }
    revision = "b968826d9c46dd6066d109eabc6255188de91218"
    changes = {
        "network": {"existing": existing},
        "environment": {"region": "us-west-2", "availabilityZones": ["us-west-2a", "us-west-2b"]},
        "pools": [_pool("l40s", ["p5.48xlarge"], 3, purchase={"capacityBlock": {"tags": {"a": "b"}}})],
        "model": {"weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": revision, "mirror": {}}},
    }
    month = _month(_plan(quickstart_document, changes))
    assert not {"NAT gateways", "NAT gateway data", "interface endpoints"} & month.keys()
    assert month["mirrored weights in S3"] == pytest.approx(16.381452288 * _service("s3_standard"), abs=0.01)
    # A Capacity Block has no list price.
    assert month["pool l40s"] is None


def test_kept_nodes_without_workers_are_stranded(quickstart_document: dict[str, Any]) -> None:
    pool = _pool("l40s", ["g6e.12xlarge"], 5)
    pool["nodes"]["min"] = 4
    (summary,) = _plan(quickstart_document, {"pools": [pool]})[POOLS]
    # 2 workers fill 2 of the 4 devices of one node: 3 nodes and 4 * 4 - 2 = 14 devices hold none.
    assert (summary.nodes_idle, summary.accelerators_idle) == (3, 14)


def test_the_start_of_a_large_model_follows_its_own_size(quickstart_document: dict[str, Any]) -> None:
    """DeepSeek-V3.2 had the 87 s of an engine with Qwen3-8B."""
    changes: dict[str, Any] = {
        "pools": [_pool("h200", ["p5en.48xlarge"], 2)],
        "model": {
            "weights": {"huggingFace": "deepseek-ai/DeepSeek-V3.2"},
            "workload": {"inputTokens": 2000, "outputTokens": 200, "peakRequestsPerSecond": 1},
        },
        "workers": {"pool": "h200", "replicas": 2, "tensorParallelSize": 8},
    }
    measured = {**changes, "workers": {**changes["workers"], "measuredStart": {"engineSeconds": 600}}}
    (start,) = _plan(quickstart_document, changes)[COLD_STARTS]
    # Beyond the 16.381452288 GB of Qwen3-8B, its bytes load at 682.128 GB in 72 s.
    further = (start.weights_bytes - 16_381_452_288) * 72 / 682_128_000_000
    assert further > 60
    assert start.engine_seconds == pytest.approx(87 + further)
    assert start.engine_basis == "at least"
    (own,) = _plan(quickstart_document, measured)[COLD_STARTS]
    assert (own.engine_seconds, own.engine_basis) == (600.0, "measured")
    (small,) = _plan(quickstart_document, {})[COLD_STARTS]
    assert (small.engine_seconds, small.engine_basis) == (87, "published")


def test_objectives_are_compared_with_the_plan_s_figures(quickstart_document: dict[str, Any]) -> None:
    """142 ms of a prompt that waits for no other were "not missed" where `tune` replays 785.8 of 300."""
    objectives = {"timePerOutputTokenP90Ms": 0.1, "timeToFirstTokenP90Ms": 5000}
    summary = _plan(quickstart_document, {"model": {"objectives": objectives}})
    checks = {check.objective: check for check in summary[OBJECTIVES]}
    each, first = checks["timePerOutputTokenP90Ms"], checks["timeToFirstTokenP90Ms"]
    assert (each.is_missed, first.is_missed) == (True, None)
    assert each.planned_ms == summary[TOKEN_PRICES][0].time_per_output_token_ms


def test_the_first_token_waits_where_the_peak_is_not_served(quickstart_document: dict[str, Any]) -> None:
    workload = {"inputTokens": 3000, "outputTokens": 10, "peakRequestsPerSecond": 8}
    objectives = {"timeToFirstTokenP90Ms": 5000}
    summary = _plan(quickstart_document, {"model": {"workload": workload, "objectives": objectives}})
    [price], [check] = summary[TOKEN_PRICES], summary[OBJECTIVES]
    assert price.requests_per_second < 8
    # 54 s after the busiest minute began, 54 * 8 requests have come and 54 * served were answered.
    behind = 54 * 8 - 54 * price.requests_per_second
    assert check.queued_ms == pytest.approx(1000 * behind / price.requests_per_second)
    assert check.is_missed is True


def test_the_deadline_of_real_time_is_held_against_a_whole_answer_at_the_peak(
    quickstart_document: dict[str, Any],
) -> None:
    """A deadline that one request alone keeps was silent where an answer at the peak took longer."""

    def check(deadline_ms: float) -> ObjectiveCheck:
        model = {"realTime": {"deadlineMillis": deadline_ms}}
        [found] = _plan(quickstart_document, {"model": model})[OBJECTIVES]
        return found

    price = _plan(quickstart_document, {})[TOKEN_PRICES][0]
    answer = check(60_000).planned_ms
    assert answer is not None
    roles = resolve(parse_blueprint(yaml.safe_dump(quickstart_document), "by-hand.yaml").blueprint, 0, 0)
    first = time_to_first_token_ms(roles)
    assert first is not None
    # The first of 200 tokens comes with the time to the first token.
    assert answer == pytest.approx(first + 199 * price.time_per_output_token_ms)
    assert (check(answer / 1.2).is_missed, check(answer * 1.2).is_missed) == (True, None)


def test_each_objective_has_a_bound_and_waits_at_its_percentile(
    quickstart_document: dict[str, Any],
) -> None:
    """Only 90th percentiles of tokens could be stated; the bound of a whole request counted a token twice."""
    workload = {"inputTokens": 3000, "outputTokens": 10, "peakRequestsPerSecond": 8}
    objectives = {"timeToFirstTokenMs": {"p50": 5000, "p99": 9000}, "requestMs": {"p95": 9000}}
    document = copy.deepcopy(quickstart_document)
    document["spec"]["models"][0] |= {"workload": workload, "objectives": objectives}
    document["spec"]["models"][0]["realTime"] = {"deadlineMillis": 9000, "fallbackPercent": 20}
    half, tail, whole, deadline = _plan(document, {})[OBJECTIVES]
    roles = resolve(parse_blueprint(yaml.safe_dump(document), "by-hand.yaml").blueprint, 0, 0)
    assert [half.bound_ms, tail.bound_ms] == [time_to_first_token_ms(roles)] * 2
    assert whole.bound_ms == min_answer_ms(roles)
    assert [each.name for each in (half, whole)] == ["time to first token p50", "whole request p95"]
    assert (deadline.name, deadline.objective) == ("deadline of real time p80", "deadlineMillis")
    waits = [each.queued_ms / each.percentile for each in (half, tail, whole, deadline)]
    assert waits == pytest.approx([tail.queued_ms / 99] * 4)


def test_an_answer_of_one_token_takes_the_time_to_the_first(quickstart_document: dict[str, Any]) -> None:
    """The sections of the plan and of batch counted a time per output token for the first token too."""
    workload = {"inputTokens": 3000, "outputTokens": 1, "peakRequestsPerSecond": 2}
    document = copy.deepcopy(quickstart_document)
    document["spec"]["models"][0] |= {"workload": workload, "realTime": {"deadlineMillis": 500}}
    [deadline] = _plan(document, {})[OBJECTIVES]
    roles = resolve(parse_blueprint(yaml.safe_dump(document), "by-hand.yaml").blueprint, 0, 0)
    first = time_to_first_token_ms(roles)
    assert (deadline.planned_ms, min_answer_ms(roles)) == (first, first)
    assert deployment_capacity(roles).fastest_request_seconds == pytest.approx((first or 0.0) / 1000)


def test_a_time_per_token_near_its_objective_is_left_to_a_replay(quickstart_document: dict[str, Any]) -> None:
    """The mean of the plan was up to 5 % above the 90th percentile of a replay, which met the objective."""

    def missed(objective_ms: float) -> bool | None:
        model = {"objectives": {"timePerOutputTokenP90Ms": objective_ms}}
        [check] = _plan(quickstart_document, {"model": model})[OBJECTIVES]
        return check.is_missed

    planned = _plan(quickstart_document, {})[TOKEN_PRICES][0].time_per_output_token_ms
    assert (missed(planned / 1.2), missed(planned / 1.05), missed(planned)) == (True, None, None)


def test_without_a_profile_nothing_is_said_of_objectives(quickstart_document: dict[str, Any]) -> None:
    changes = {
        "pools": [_pool("t4g", ["g5g.4xlarge"], 3)],
        "model": {
            "engine": {"vllm": {"args": {"dtype": "half"}}},
            "weights": {"huggingFace": "Qwen/Qwen3-0.6B"},
            "workload": {"inputTokens": 500, "outputTokens": 100, "peakRequestsPerSecond": 1},
            "objectives": {"timePerOutputTokenP90Ms": 20},
        },
        "workers": {"pool": "t4g", "replicas": 2, "tensorParallelSize": 1},
    }
    (check,) = _plan(quickstart_document, changes)[OBJECTIVES]
    assert (check.planned_ms, check.is_missed) == (None, None)

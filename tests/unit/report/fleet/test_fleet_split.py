"""A fleet's cells and accounts, each limit counted by hand for nodes of one type: p5en.48xlarge."""

from __future__ import annotations

import dataclasses
import json

import pytest

import inference_catalog as catalog
from inference_blueprints.cli.main import main
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.fleet.fleet_cost import fleet_cost, fleet_tables
from inference_blueprints.report.fleet.fleet_split import FleetSplit, fleet_split
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan

BLUEPRINT = load_blueprint("p5en-cluster").blueprint
SUMMARY = summarise(BLUEPRINT, build_plan(BLUEPRINT), None)
#: 3 nodes of the node group, 20 of Karpenter's pool for routers (docs/infrastructure.md).
SYSTEM_NODES = 23
#: Per p5en.48xlarge: 8 workers and 8 pods of daemon sets with an address.
PODS = 16
#: 16 EFA interfaces, and the primary one.
INTERFACES = 17
#: 16 addresses of pods fill a /28, and one prefix is kept ready.
PREFIXES = 2


def split(gpus: int) -> FleetSplit:
    return fleet_split(BLUEPRINT.spec, SUMMARY, gpus)


def cell_nodes(name: str) -> int:
    return {each.name: each.nodes for each in split(10_000).cell_limits}[name]


def used(name: str, gpus: int) -> float:
    return {each.name: each.used for each in split(gpus).account_limits}[name]


def test_nodes_of_a_cluster() -> None:
    assert cell_nodes("eks.nodes") == 1000 - SYSTEM_NODES


def test_pods_of_a_cluster() -> None:
    assert cell_nodes("eks.pods") == (50_000 - SYSTEM_NODES * 16) // PODS


def test_network_address_usage() -> None:
    system = SYSTEM_NODES * (16 + 2 + 1)
    assert cell_nodes("vpc.networkAddressUsage") == (256_000 - system) // (PODS + PREFIXES + INTERFACES)


def test_addresses_of_the_range() -> None:
    # The private subnets' addresses hold whole prefixes and one address of the node: EFA has none of its own.
    available = SUMMARY[ADDRESSES].zones * SUMMARY[ADDRESSES].addresses_in_a_zone
    each = PREFIXES * 16 + 1
    assert cell_nodes("addresses") == (available - SYSTEM_NODES * each) // each


def test_series_of_the_cells_prometheus() -> None:
    """Red if a cell is sold that is larger than its Prometheus: scaling and health go blind."""
    series = 0
    for deployment in {(each.model, each.deployment) for each in SUMMARY[PROCESSES]}:
        own = [each for each in SUMMARY[PROCESSES] if (each.model, each.deployment) == deployment]
        workers = sum(each.replicas for each in own if each.pool)
        frontends = sum(each.replicas for each in own if each.pool is None)
        gpus = sum(each.replicas * each.accelerators for each in own)
        series += workers * 243 + gpus * 23 + frontends * (251 + 2 * workers)
    nodes = sum(each.nodes_max for each in SUMMARY[POOLS])
    assert cell_nodes("prometheus.series") == 3_000_000 * nodes // series
    assert split(100_000).nodes_per_cell <= cell_nodes("prometheus.series")


def test_instances_that_start_within_ten_minutes() -> None:
    assert cell_nodes("ec2.instanceStarts") == 1000 + 2 * 600 - SYSTEM_NODES


def test_targets_of_the_load_balancer() -> None:
    frontends = sum(each.replicas for each in SUMMARY[PROCESSES] if each.pool is None)
    nodes = sum(pool.nodes_max for pool in SUMMARY[POOLS])
    assert cell_nodes("elb.targets") == 1000 * nodes // frontends


def test_the_narrowest_limit_decides_and_every_gpu_has_a_place() -> None:
    for gpus in (1, 7_816, 7_817, 10_000, 100_000):
        found = split(gpus)
        assert found.nodes == -(-gpus // 8)
        assert found.decides_cell == "eks.nodes"
        assert found.nodes_per_cell <= 977
        assert found.cells == -(-found.nodes // 977)
        assert found.cells * found.nodes_per_cell >= found.nodes
    assert (split(10_000).cells, split(100_000).cells) == (2, 13)


def test_another_limit_decides_if_it_is_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = dict(catalog.fleet_limits())
    limits["eks.pods"] = dataclasses.replace(limits["eks.pods"], value=5000, most=5000)
    monkeypatch.setattr(catalog, "fleet_limits", lambda: limits)
    found = split(10_000)
    assert found.decides_cell == "eks.pods"
    assert found.cells == -(-1250 // ((5000 - SYSTEM_NODES * 16) // PODS))


def test_queries_at_once_decide_how_many_cells_share_an_account() -> None:
    # A function sends 8 queries at once, and an account may run 30.
    assert split(10_000).accounts == 1
    assert split(10_000).decides_account == ""
    large = split(100_000)
    assert (large.accounts, large.cells_per_account) == (5, 3)
    assert large.decides_account == "cloudwatch.queriesAtOnce"
    assert used("cloudwatch.queriesAtOnce", 100_000) == 3 * 8


def test_use_of_an_account() -> None:
    # Both cells of 625 nodes are in one account.
    assert used("vpc.networkInterfaces", 10_000) == 2 * (625 * INTERFACES + SYSTEM_NODES)
    assert used("ec2.elasticAddresses", 10_000) == 2 * 3
    assert used("eks.clusters", 10_000) == used("vpc.vpcs", 10_000) == 2
    assert used("ec2.L-417A185B", 10_000) == 1250 * 192
    workers = sum(each.replicas for each in SUMMARY[PROCESSES] if each.pool)
    per_node = workers / sum(pool.nodes_max for pool in SUMMARY[POOLS])
    assert used("cloudwatch.queries", 10_000) == pytest.approx(
        (1250 * per_node * 6 + 1250 + 2 * SYSTEM_NODES) / 120 / 60
    )
    disk = SUMMARY[POOLS][0].root_volume_gib + BLUEPRINT.spec.pools[0].disk.size_gib
    system = SYSTEM_NODES * (80 + catalog.catalogue.shipped().bottlerocket.root_volume_gib)
    assert used("ebs.gp3", 10_000) == pytest.approx((1250 * disk + 2 * system) / 1024)


def test_an_exceeded_default_is_asked_for() -> None:
    rows = {row[0]: row for row in fleet_tables(split(10_000), ())[1].rows}
    assert rows["Network interfaces per Region"][-1] == "ask for 21,296"
    assert rows["Clusters"][-1] == "fits"
    assert rows["vCPUs: Running On-Demand P instances"][-2:] == ("", "ask for 240,000")


def test_the_cost_grows_by_node_and_by_cell_and_unknown_prices_stay_unknown() -> None:
    items = {item.name: item.usd_per_month for item in fleet_cost(split(10_000), SUMMARY)}
    pool = SUMMARY[POOLS][0]
    assert pool.usd_per_hour_max is not None
    assert items["nodes of pool h200"] == pytest.approx(1250 * 730 * pool.usd_per_hour_max / pool.nodes_max)
    assert items["EKS control plane"] == pytest.approx(2 * 730 * catalog.service_prices().usd("eks_cluster"))
    assert items["series of workers for GPU health"] is None
    assert items["queries of GPU health"] is None
    known = sum(value for value in items.values() if value is not None)
    table = fleet_tables(split(10_000), fleet_cost(split(10_000), SUMMARY))[2]
    assert table.rows[-1][-1] == f"{known:,.0f}"


def test_the_command_prints_the_split(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["blueprints", "plan", "p5en-cluster", "--fleet", "100000", "--output", "json"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    document = json.loads(capsys.readouterr().out)
    assert document["fleet"]["cells"] == 13
    assert document["fleet"]["decidesCell"] == "eks.nodes"
    [zone] = [item["usdPerMonth"] for item in document["cost"] if item["name"] == "private DNS zone"]
    assert zone == pytest.approx(13 * catalog.service_prices().usd("hosted_zone"), abs=13 * 0.01)


def test_a_blueprint_and_a_page_cannot_be_asked_for_together(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["blueprints", "plan", "p5en-cluster", "--fleet", "8", "--page", "page.html"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code
    assert "--fleet and --page: got both" in capsys.readouterr().err

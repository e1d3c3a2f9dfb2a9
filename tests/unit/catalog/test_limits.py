"""Quotas, endpoints and images: nothing that the catalogue has is left without."""

from __future__ import annotations

import json
import re
from importlib.metadata import version

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_catalog.catalogue import REFERENCE_REGION, shipped
from inference_catalog.figures import published_speeds


@pytest.mark.parametrize("purchase", ["onDemand", "spot"])
@pytest.mark.parametrize("instance", catalog.instance_types().values(), ids=lambda entry: entry.name)
def test_one_quota_counts_each_instance_type(instance: catalog.InstanceType, purchase: str) -> None:
    counting = [quota.name for quota in catalog.quotas().values() if quota.counts(instance, purchase)]
    # AWS publishes none that counts P6 spot instances, and none is guessed.
    is_unpublished = purchase == "spot" and instance.family.startswith("p6")
    assert len(counting) == (0 if is_unpublished else 1)


@pytest.mark.parametrize(
    ("name", "purchase", "code"),
    [
        ("g6e.2xlarge", "onDemand", "L-DB2E81BA"),
        ("gr6.4xlarge", "spot", "L-3819A6DF"),
        ("p6-b200.48xlarge", "onDemand", "L-417A185B"),
        ("p4d.24xlarge", "spot", "L-7212CCBC"),
        ("p5.4xlarge", "spot", "L-C4BD4855"),
        ("p5en.48xlarge", "spot", "L-C4BD4855"),
        ("p5en.48xlarge", "onDemand", "L-417A185B"),
        ("trn2.48xlarge", "onDemand", "L-2C3B7624"),
        ("inf2.xlarge", "spot", "L-B5D1601B"),
        ("m7i.xlarge", "onDemand", "L-1216C47A"),
    ],
)
def test_known_quotas(name: str, purchase: str, code: str) -> None:
    assert catalog.quotas()[code].counts(catalog.instance_type(name), purchase)


def test_quota_codes_have_their_form() -> None:
    assert all(re.fullmatch(r"L-[0-9A-F]{8}", code) for code in catalog.quotas())


def test_every_endpoint_says_what_needs_it() -> None:
    endpoints = catalog.endpoints().values()
    assert {endpoint.kind for endpoint in endpoints} == {"interface", "gateway"}
    assert all(endpoint.needed_by for endpoint in endpoints)


def test_every_engine_s_image_has_an_entry() -> None:
    current = {
        f"{engine.image}:{engine.version}{variant}"
        for name, engine in catalog.engines().items()
        for variant in ("", ENGINES[name].efa_variant)
    }
    # A former release that other accelerators need is current too.
    by_accelerator = {
        f"{engine.image}:{engine.version}"
        for releases in shipped().engine_releases.values()
        for engine in releases.values()
        if engine.accelerators
    }
    images = current | by_accelerator
    assert images == set(catalog.images())


def test_prices_are_of_known_types_in_known_regions() -> None:
    tables = shipped().prices
    assert REFERENCE_REGION in tables
    assert set(tables) <= set(catalog.regions())
    compared = {each.instance_type for each in published_speeds()}
    for table in tables.values():
        assert set(table.usd_per_hour) <= catalog.instance_types().keys() | compared
        assert table.date
        assert table.source


def test_every_region_has_the_layer_with_pyarrow_and_tests_have_the_same() -> None:
    assert set(catalog.regions()) <= set(catalog.parquet_layers())
    document = json.loads((shipped().directory / "parquet_layers.json").read_text(encoding="utf-8"))
    assert document["pyarrow"] == version("pyarrow")
    for region, layer in catalog.parquet_layers().items():
        assert re.fullmatch(
            rf"arn:aws(-cn)?:lambda:{region}:\d{{12}}:layer:AWSSDKPandas-Python314-Arm64:\d+", layer
        )


@pytest.mark.parametrize(
    "name", ["quotas.json", "service_quotas.json", "network_quotas.json", "endpoints.json", "images.json"]
)
def test_data_says_whence_and_when(name: str) -> None:
    document = json.loads((shipped().directory / name).read_text(encoding="utf-8"))
    assert document["source"]
    assert re.fullmatch(r"20\d\d-\d\d", document["date"])


def test_quotas_of_services_name_their_page_and_differ_by_region_where_they_say_so() -> None:
    for quota in (*catalog.service_quotas().values(), *catalog.network_quotas().values()):
        assert quota.source.startswith("https://docs.aws.amazon.com/")
        assert quota.value > 0
        assert not quota.code or re.fullmatch(r"L-[0-9A-F]{8}", quota.code)
        for region, value in (quota.regions or {}).items():
            assert re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", region)
            assert quota.in_region(region) == value != quota.value

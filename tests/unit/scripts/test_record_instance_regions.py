"""The table of instance types by region is what the locked moto ships."""

from __future__ import annotations

import record_instance_regions

from inference_catalog.catalogue import shipped


def test_the_table_is_of_the_locked_moto() -> None:
    recorded = (shipped().directory / record_instance_regions.NAME).read_text(encoding="utf-8")
    assert recorded == record_instance_regions.table(date=record_instance_regions.MONTH)


def test_a_type_that_one_region_lacks_is_in_the_others() -> None:
    offered = record_instance_regions.list_offered()
    assert "p6-b300.48xlarge" in offered["us-east-1"]
    assert "p6-b300.48xlarge" not in offered["eu-north-1"]

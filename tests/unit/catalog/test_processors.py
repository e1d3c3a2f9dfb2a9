"""Processors on which models are computed: their cores, sockets and memory bandwidth."""

import pytest

import inference_catalog as catalog
from inference_catalog.hardware import processor_of, processors

PEAK = 12 * 5600e6 * 8
"""Twelve channels of DDR5-5600, each 8 bytes wide."""


@pytest.mark.parametrize("name", processors())
def test_every_family_of_a_processor_is_in_the_catalogue(name: str) -> None:
    known = {each.family for each in catalog.instance_types().values()}
    assert set(processors()[name].families) <= known


@pytest.mark.parametrize(
    ("name", "cores", "sockets"),
    [("c8g.medium", 1, 1), ("c8g.16xlarge", 64, 1), ("m8g.24xlarge", 96, 1), ("r8g.48xlarge", 192, 2)],
)
def test_graviton4_has_a_core_per_vcpu_and_96_per_socket(name: str, cores: int, sockets: int) -> None:
    vcpu = catalog.instance_type(name).vcpu
    graviton = processors()["graviton4"]
    assert (graviton.cores(vcpu), graviton.sockets(vcpu)) == (cores, sockets)


def test_memory_bandwidth_is_the_part_of_the_socket() -> None:
    graviton = processors()["graviton4"]
    assert graviton.bytes_per_second(96) == PEAK
    assert graviton.bytes_per_second(24) == PEAK / 4
    assert graviton.bytes_per_second(192) == 2 * PEAK


def test_an_instance_without_devices_computes_on_its_processors() -> None:
    kind = catalog.instance_type("m8g.4xlarge")
    assert kind.accelerator is not None
    assert (kind.accelerator.manufacturer, kind.accelerator.memory_mib) == ("cpu", kind.memory_mib)
    assert (kind.device_resource, kind.device_count) == (None, 0)


def test_processors_that_the_catalogue_does_not_know_compute_nothing() -> None:
    assert processor_of("c7i") is None
    assert catalog.instance_type("c7i.4xlarge").accelerator is None

"""Published speeds are whole, dated and about engines that exist."""

import re

import pytest

from inference_blueprints.spec.structure import keys
from inference_blueprints.spec.types import Engine
from inference_catalog import instance_types, models
from inference_catalog.figures import PublishedSpeed, published_speeds

#: A source may state only the year.
DATE = re.compile(r"20\d\d(-[01]\d(-[0-3]\d)?)?")
#: Engines that are not yet a key of the blueprint.
LATER = {"vllmNeuron"}


@pytest.mark.parametrize(
    "speed", published_speeds(), ids=lambda each: f"{each.model} on {each.instance_type} ({each.engine})"
)
class TestSpeed:
    def test_the_range_is_one(self, speed: PublishedSpeed) -> None:
        maximum = speed.most_tokens_per_second
        assert speed.least_tokens_per_second > 0
        assert maximum is None or maximum >= speed.least_tokens_per_second
        assert speed.concurrent_requests >= 1

    def test_it_says_when_and_where_it_was_published(self, speed: PublishedSpeed) -> None:
        assert DATE.fullmatch(speed.date)
        assert speed.source.startswith("https://")
        assert speed.conditions

    def test_no_more_devices_took_part_than_the_instance_has(self, speed: PublishedSpeed) -> None:
        kind = instance_types().get(speed.instance_type)
        assert (kind is None) == (speed.devices is None)
        assert kind is None or 1 <= (speed.devices or 0) <= kind.accelerator_count

    def test_a_model_of_the_same_shape_is_in_the_catalogue(self, speed: PublishedSpeed) -> None:
        assert speed.same_shape_as is None or speed.same_shape_as in models()

    def test_its_engine_is_a_key_of_the_blueprint(self, speed: PublishedSpeed) -> None:
        assert speed.engine in {*keys(Engine), *LATER}


def test_no_measurement_is_listed_twice() -> None:
    listed = [
        (each.model, each.instance_type, each.quantization, each.concurrent_requests, each.source)
        for each in published_speeds()
    ]
    assert len(set(listed)) == len(listed)

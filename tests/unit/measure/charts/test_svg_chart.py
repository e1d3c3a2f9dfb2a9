"""Axes end at or above the largest value, with few and round ticks."""

from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.measure.charts import Axis


@given(st.floats(1e-3, 1e9))
def test_ticks_cover_the_values_and_stay_few(maximum: float) -> None:
    axis = Axis("x", maximum)
    assert axis.ticks[0] == 0
    assert axis.end >= maximum * (1 - 1e-9)
    assert axis.end - maximum <= axis.step * (1 + 1e-6)
    assert 2 <= len(axis.ticks) <= 7


def test_an_axis_without_values_still_has_ticks() -> None:
    assert Axis("x", 0.0).end > 0

"""The alarm `gpu-errors` follows new errors: DCGM keeps the last XID, whose value never clears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inference_blueprints.render.monitoring.alarm_table import PlatformAlarm
from inference_blueprints.render.monitoring.recording_rules import RecordingRule
from tests.local.monitoring import series as of
from tests.local.monitoring.test_alarms import alarm_minutes, platform

__all__ = ["platform"]  # the fixture
_Platform = tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
_MINUTES = 120
_CAME = 20


def _raised(platform: _Platform, xid: str, *, util: str = f"80x{_MINUTES}") -> Sequence[float]:
    """Return the minutes at which the alarm is raised if the first GPU has these values."""
    found, alarms = platform
    series = of.well(_MINUTES) | of.gpu("XID_ERRORS", 1, xid) | of.gpu("GPU_UTIL", 1, util)
    return alarm_minutes([alarms["gpu-errors"]], found, series, _MINUTES)["gpu-errors"]


def test_it_clears_although_the_last_xid_stays(platform: _Platform) -> None:
    at = _raised(platform, f"0x{_CAME - 1} 79x{_MINUTES - _CAME}")
    assert _CAME <= min(at) <= _CAME + 3
    assert _CAME + 10 <= max(at) <= _CAME + 16


def test_the_first_xid_of_a_gpu_has_no_series_before_it(platform: _Platform) -> None:
    at = _raised(platform, f"_x{_CAME} 79x{_MINUTES - _CAME}")
    assert _CAME <= min(at) <= _CAME + 3
    assert max(at) <= _CAME + 16


def test_another_xid_raises_it_again(platform: _Platform) -> None:
    again = 60
    at = _raised(platform, f"0x{_CAME - 1} 79x{again - _CAME - 1} 48x{_MINUTES - again}")
    assert [each for each in at if _CAME + 16 < each < again] == []
    assert again <= min(each for each in at if each > _CAME + 16) <= again + 3
    assert max(at) <= again + 16


def test_an_old_xid_is_silent_on_a_gpu_that_is_watched_anew(platform: _Platform) -> None:
    """The exporter or Prometheus has just started: no one knows when the error came."""
    watched = f"_x{_CAME} 80x{_MINUTES - _CAME}"
    assert _raised(platform, f"_x{_CAME} 79x{_MINUTES - _CAME}", util=watched) == ()


def test_a_mended_gpu_raises_nothing(platform: _Platform) -> None:
    """The driver is loaded again, so the value is 0 again."""
    at = _raised(platform, f"0x{_CAME - 1} 79x29 0x{_MINUTES - _CAME - 30}")
    assert max(at) <= _CAME + 16


def test_it_is_silent_without_an_error(platform: _Platform) -> None:
    assert _raised(platform, f"0x{_MINUTES}") == ()

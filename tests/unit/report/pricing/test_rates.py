"""The user's own rates: every fault with its place, and nothing guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.report.pricing.rates import CustomRates, load_rates, prices_for
from inference_blueprints.resources import root
from inference_blueprints.spec.types import Purchase
from inference_contracts.errors import BlueprintError

LIST_PRICE = catalog.prices().usd_per_hour["g6e.2xlarge"]
_SOUND = """\
currency: USD
region: us-west-2
date: "2026-11-21"
source: contract 4711
usdPerHour:
  g6e.2xlarge: {spot: 0.9, reservation: 1.5}
  p5.48xlarge: {capacityBlock: 31}
"""


def _problems(directory: Path, text: str) -> list[str]:
    file = directory / "rates.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BlueprintError) as caught:
        load_rates(file, "us-west-2")
    return [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]


def test_a_sound_file(tmp_path: Path) -> None:
    file = tmp_path / "rates.yaml"
    file.write_text(_SOUND, encoding="utf-8")
    assert load_rates(file, "us-west-2") == CustomRates(
        "us-west-2",
        "2026-11-21",
        "contract 4711",
        {
            ("g6e.2xlarge", "spot"): 0.9,
            ("g6e.2xlarge", "reservation"): 1.5,
            ("p5.48xlarge", "capacityBlock"): 31.0,
        },
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("USD", "EUR", "1:11: currency: got 'EUR', rates are in USD; convert them"),
        ("currency", "curency", "1:1: currency: is missing: always USD"),
        (
            "us-west-2",
            "us-east-1",
            "2:9: region: got 'us-east-1', the blueprint deploys to 'us-west-2'; use that region's rates",
        ),
        (
            '"2026-11-21"',
            "2026",
            "3:7: date: got 2026, expected text: the date of the rates, in quotes",
        ),
        (
            "g6e.2xlarge",
            "g6e.2xlarg",
            "6:3: usdPerHour.g6e.2xlarg: this instance type is not in the catalogue; "
            "did you mean 'g6e.2xlarge'?",
        ),
        (
            "reservation",
            "reserved",
            "6:28: usdPerHour.g6e.2xlarge.reserved: is an unknown purchase option, keys are 'onDemand', "
            "'spot', 'reservation', 'capacityBlock'; did you mean 'reservation'?",
        ),
        ("0.9", "-1", "6:23: usdPerHour.g6e.2xlarge.spot: got -1, expected US dollars per hour above 0"),
        (
            "0.9",
            "free",
            "6:23: usdPerHour.g6e.2xlarge.spot: got 'free', expected US dollars per hour above 0",
        ),
        ("{capacityBlock: 31}", "31", "7:16: usdPerHour.p5.48xlarge: got 31, expected `{spot: 0.9}`"),
    ],
)
def test_a_fault_is_shown_in_its_place(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert problem in _problems(tmp_path, _SOUND.replace(old, new, 1))


def test_all_faults_at_once(tmp_path: Path) -> None:
    text = _SOUND.replace("USD", "EUR").replace("us-west-2", "us-east-1").replace("0.9", "0")
    assert [problem.split(":")[2].strip() for problem in _problems(tmp_path, text)] == [
        "currency",
        "region",
        "usdPerHour.g6e.2xlarge.spot",
    ]


def test_a_missing_and_an_empty_file_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BlueprintError, match=r"does not exist; copy the example in docs/planning.md"):
        load_rates(tmp_path / "none.yaml", "us-west-2")
    assert "is empty; copy the example in docs/planning.md" in _problems(tmp_path, "")[0]


def test_spot_and_capacity_blocks_are_known_from_rates_alone() -> None:
    rates = CustomRates("us-west-2", "2026-11", "a test", {("g6e.2xlarge", "onDemand"): 2.0})
    without, with_rates = prices_for("us-west-2"), prices_for("us-west-2", rates)
    assert without.usd_per_hour("g6e.2xlarge", "onDemand") == LIST_PRICE
    assert with_rates.usd_per_hour("g6e.2xlarge", "onDemand") == 2.0
    for purchase in ("spot", "capacityBlock"):
        assert with_rates.usd_per_hour("g6e.2xlarge", purchase) is None


def test_a_reservation_is_charged_at_the_on_demand_rate_unless_it_has_a_rate() -> None:
    """Amazon EC2 User Guide, "Capacity Reservation pricing and billing"."""
    on_demand = {("g6e.2xlarge", "onDemand"): 2.0}
    contract = {**on_demand, ("g6e.2xlarge", "reservation"): 1.5}

    def price(rates: dict[tuple[str, str], float]) -> float | None:
        own = CustomRates("us-west-2", "2026-11", "a test", rates)
        return prices_for("us-west-2", own).usd_per_hour("g6e.2xlarge", "reservation")

    assert price({}) == LIST_PRICE
    assert (price(on_demand), price(contract)) == (2.0, 1.5)


@pytest.mark.parametrize(
    ("purchase", "rates", "expected"),
    [
        ({"spot": {}}, {}, LIST_PRICE),
        ({"spot": {}}, {("g6e.2xlarge", "spot"): 0.9}, 0.9),
        ({"spot": {"onDemandFallback": True}}, {("g6e.2xlarge", "spot"): 0.9}, LIST_PRICE),
        ({"onDemand": {}}, {}, LIST_PRICE),
        ({"capacityBlock": {"tags": {"a": "b"}}}, {}, None),
    ],
)
def test_what_a_node_costs_at_most(
    purchase: dict[str, Any], rates: dict[tuple[str, str], float], expected: float | None
) -> None:
    prices = prices_for("us-west-2", CustomRates("us-west-2", "2026-11", "a test", rates))
    bound = prices.usd_per_hour_at_most("g6e.2xlarge", Purchase.model_validate(purchase))
    assert bound == (None if expected is None else pytest.approx(expected))


def test_the_documentation_s_example_is_sound(tmp_path: Path) -> None:
    page = (root() / "docs" / "planning.md").read_text(encoding="utf-8")
    file = tmp_path / "rates.yaml"
    file.write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    assert load_rates(file, "us-west-2").usd_per_hour["g6e.2xlarge", "spot"] == 0.9

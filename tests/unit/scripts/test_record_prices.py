"""Prices out of a small offer file in the format of AWS's price list, written for this test."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import record_prices
from record_prices import read_offer, table

import inference_catalog as catalog

_PLAIN = {
    "instanceType": "g6e.2xlarge",
    "tenancy": "Shared",
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "licenseModel": "No License required",
    "capacitystatus": "Used",
    "regionCode": "us-west-2",
}
#: What differs from a plain on-demand instance, and its price.
_PRODUCTS: dict[str, tuple[dict[str, str], str]] = {
    "PLAIN": ({}, "2.2420800000"),
    "LARGE": ({"instanceType": "g6e.48xlarge"}, "30.1311800000"),
    "WINDOWS": ({"operatingSystem": "Windows"}, "2.6"),
    "DEDICATED": ({"tenancy": "Dedicated"}, "2.5"),
    "SOFTWARE": ({"preInstalledSw": "SQL Std"}, "3.1"),
    "RESERVED": ({"capacitystatus": "UnusedCapacityReservation"}, "2.1"),
    "LICENCE": ({"licenseModel": "Bring your own license"}, "2.0"),
    "ELSEWHERE": ({"regionCode": "us-east-1"}, "1.9"),
    "FREE": ({"instanceType": "g6e.xlarge"}, "0.0000000000"),
}


def _offer() -> dict[str, Any]:
    offer: dict[str, Any] = {
        "formatVersion": "v1.0",
        "offerCode": "AmazonEC2",
        "publicationDate": "2026-11-19T21:07:31Z",
        "products": {},
        "terms": {"OnDemand": {}, "Reserved": {}},
    }
    for sku, (difference, price) in _PRODUCTS.items():
        offer["products"][sku] = {"sku": sku, "attributes": {**_PLAIN, **difference}}
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        offer["terms"]["OnDemand"][sku] = {f"{sku}.T": {"priceDimensions": {f"{sku}.T.D": dimension}}}
    reserved = {"unit": "Hrs", "pricePerUnit": {"USD": "1.1"}}
    offer["terms"]["Reserved"]["PLAIN"] = {"PLAIN.R": {"priceDimensions": {"PLAIN.R.D": reserved}}}
    return offer


def _csv(offer: dict[str, Any]) -> str:
    names = {
        "Instance Type": "instanceType",
        "Tenancy": "tenancy",
        "Operating System": "operatingSystem",
        "Pre Installed S/W": "preInstalledSw",
        "License Model": "licenseModel",
        "CapacityStatus": "capacitystatus",
        "Region Code": "regionCode",
    }
    head = ["SKU", "TermType", "Unit", "PricePerUnit", "Currency", *names]
    lines = ['"FormatVersion","v1.0"', f'"Publication Date","{offer["publicationDate"]}"', _line(head)]
    for kind in ("OnDemand", "Reserved"):
        for sku, terms in offer["terms"][kind].items():
            attributes = offer["products"][sku]["attributes"]
            for dimension in next(iter(terms.values()))["priceDimensions"].values():
                cells = [sku, kind, "Hrs", dimension["pricePerUnit"]["USD"], "USD"]
                lines.append(_line([*cells, *(attributes[name] for name in names.values())]))
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


@pytest.mark.parametrize("write", [json.dumps, _csv], ids=["json", "csv"])
def test_only_plain_instances_of_the_region_are_read(write: Callable[[dict[str, Any]], str]) -> None:
    date, prices = read_offer(write(_offer()), "us-west-2")
    assert (date, prices) == ("2026-11-19", {"g6e.2xlarge": 2.24208, "g6e.48xlarge": 30.13118})


@pytest.mark.parametrize("write", [json.dumps, _csv], ids=["json", "csv"])
def test_two_prices_of_one_type_are_refused(write: Callable[[dict[str, Any]], str]) -> None:
    offer = copy.deepcopy(_offer())
    offer["products"]["LARGE"]["attributes"]["instanceType"] = "g6e.2xlarge"
    with pytest.raises(ValueError, match=r"g6e.2xlarge: got 2.24208 and 30.13118"):
        read_offer(write(offer), "us-west-2")


def test_the_table_says_whence_and_when() -> None:
    text = table({"g6e.48xlarge": 30.13118, "g6e.2xlarge": 2.24208}, date="2026-11-19", source="a test")
    assert text == (
        "# source: a test\n# date: 2026-11-19\nname,usd_per_hour\n"
        "g6e.2xlarge,2.24208\ng6e.48xlarge,30.13118\n"
    )


def test_a_region_s_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = tmp_path / "offer.json"
    offer.write_text(json.dumps(_offer()), encoding="utf-8")
    (tmp_path / "prices").mkdir()
    monkeypatch.setattr(record_prices, "shipped", lambda: catalog.Catalogue(tmp_path))
    monkeypatch.setattr("sys.argv", ["record_prices.py", "us-west-2", str(offer), "--source", "a test"])
    record_prices.main()
    written = catalog.Catalogue(tmp_path).prices["us-west-2"]
    assert (written.date, written.source) == ("2026-11-19", "a test")
    assert written.usd_per_hour == {"g6e.2xlarge": 2.24208, "g6e.48xlarge": 30.13118}

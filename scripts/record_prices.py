"""Record a region's on-demand prices from AWS's public price list.

    python scripts/record_prices.py us-west-2 PATH_OR_URL [--source TEXT]

PATH_OR_URL is the offer file of AmazonEC2 in that region, as JSON or CSV (AWS Billing User Guide, "Reading
the service price list files"). Only the prices of the catalogue's instance types, and of others with a
published speed, are kept: Linux without licences or software, shared tenancy, on demand. The output is
`catalog/inference_catalog/data/prices/<region>.csv`. Types that are not in the offer are left out; their
prices are unknown.
"""

import argparse
import csv
import json
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_catalog.catalogue import shipped
from inference_catalog.figures import published_speeds

#: Attributes of the product of a plain on-demand instance, by the names of both formats.
_WANTED = {
    ("tenancy", "Tenancy"): "Shared",
    ("operatingSystem", "Operating System"): "Linux",
    ("preInstalledSw", "Pre Installed S/W"): "NA",
    ("licenseModel", "License Model"): "No License required",
    ("capacitystatus", "CapacityStatus"): "Used",
}


def main() -> None:
    """Write the region's file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("region", choices=sorted(catalog.regions()), help="AWS region of the offer file")
    parser.add_argument("offer", help="the offer file, a path or an HTTPS address")
    parser.add_argument("--source", default="AWS price list, AmazonEC2", help="source that the table states")
    arguments = parser.parse_args()
    date, prices = read_offer(_text(arguments.offer), arguments.region)
    compared = (each.instance_type for each in published_speeds())
    wanted = dict.fromkeys((*catalog.instance_types(), *compared))
    known = {name: prices[name] for name in wanted if name in prices}
    if not known:
        parser.error(f"{arguments.offer}: no on-demand price of a known instance type in {arguments.region}")
    path = shipped().directory / "prices" / f"{arguments.region}.csv"
    path.write_text(table(known, date=date, source=arguments.source), encoding="utf-8")
    print(f"{path.name}: {len(known)} of {len(catalog.instance_types())} instance types, published {date}")


def read_offer(text: str, region: str) -> tuple[str, dict[str, float]]:
    """Return an offer file's date and its plain on-demand prices by instance type.

    text: The file, JSON or CSV.
    region: AWS region. Products of other regions are left out.
    Returns: The day of publication, and US dollars per hour.
    Raises ValueError if an instance type has two different prices.
    """
    date, found = _read_json(text, region) if text.lstrip().startswith("{") else _read_csv(text, region)
    prices: dict[str, float] = {}
    for instance_type, price in found:
        if prices.setdefault(instance_type, price) != price:
            raise ValueError(f"{instance_type}: got {prices[instance_type]} and {price} USD per hour")
    return date[:10], prices


def table(prices: Mapping[str, float], *, date: str, source: str) -> str:
    """Return the catalogue's file of a region.

    prices: US dollars per hour by instance type.
    date, source: Date and source of their publication.
    """
    rows = "".join(f"{name},{price:.10g}\n" for name, price in sorted(prices.items()))
    return f"# source: {source}\n# date: {date}\nname,usd_per_hour\n{rows}"


def _read_json(text: str, region: str) -> tuple[str, Iterable[tuple[str, float]]]:
    offer = json.loads(text)
    return offer["publicationDate"], _json_prices(offer, region)


def _json_prices(offer: Mapping[str, Any], region: str) -> Iterator[tuple[str, float]]:
    """Yield the prices of products that are plain instances of the region."""
    for sku, product in offer["products"].items():
        attributes = product["attributes"]
        is_plain = all(attributes.get(name) == value for (name, _), value in _WANTED.items())
        if not is_plain or attributes.get("regionCode") != region:
            continue
        for term in offer["terms"]["OnDemand"].get(sku, {}).values():
            for dimension in term["priceDimensions"].values():
                price = float(dimension["pricePerUnit"].get("USD", 0))
                if dimension["unit"] == "Hrs" and price:
                    yield attributes["instanceType"], price


def _read_csv(text: str, region: str) -> tuple[str, Iterable[tuple[str, float]]]:
    """Split the lines about the file, such as `"Publication Date","…"`, from the table below them."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith('"SKU"'))
    about = {row[0]: row[1] for row in csv.reader(lines[:start]) if len(row) > 1}
    return about["Publication Date"], _csv_prices(lines[start:], region)


def _csv_prices(lines: Iterable[str], region: str) -> Iterator[tuple[str, float]]:
    for row in csv.DictReader(lines):
        is_plain = all(row.get(name) == value for (_, name), value in _WANTED.items())
        is_hourly = row["TermType"] == "OnDemand" and row["Unit"] == "Hrs" and row["Currency"] == "USD"
        if is_plain and is_hourly and row["Region Code"] == region and float(row["PricePerUnit"]):
            yield row["Instance Type"], float(row["PricePerUnit"])


def _text(offer: str) -> str:
    """Read a path, or an HTTPS address."""
    if offer.startswith("https://"):
        with urllib.request.urlopen(offer) as response:  # noqa: S310 - the scheme is checked above
            content: bytes = response.read()
        return content.decode("utf-8")
    return Path(offer).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()

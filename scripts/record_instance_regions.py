"""Record in which regions EC2 offers the catalogue's instance types.

    .venv/bin/python scripts/record_instance_regions.py

The source is the locked version of moto, which ships EC2's answers to DescribeInstanceTypeOfferings for each
region that its maintainers' account has. Run it again after an upgrade of moto. The output is
`catalog/inference_catalog/data/instance_type_regions.json`.
"""

import gzip
import json
from importlib.metadata import version
from importlib.resources import files

import inference_catalog as catalog
from inference_catalog.catalogue import shipped

NAME = "instance_type_regions.json"
#: Month in which the table was recorded.
MONTH = "2026-11"
_FOLDER = "resources/instance_type_offerings/region"
_SUFFIX = ".json.gz"


def main() -> None:
    """Write the catalogue's file."""
    (shipped().directory / NAME).write_text(table(date=MONTH), encoding="utf-8")
    print(f"{NAME}: {len(list_offered())} regions")


def list_offered() -> dict[str, set[str]]:
    """Return the catalogue's instance types that each recorded region of the catalogue offers."""
    found = {}
    for file in files("moto.ec2").joinpath(_FOLDER).iterdir():
        region = file.name.removesuffix(_SUFFIX)
        if region in catalog.regions():
            answer = json.loads(gzip.decompress(file.read_bytes()))
            names = {offering["InstanceType"] for offering in answer}
            found[region] = names & catalog.instance_types().keys()
    return dict(sorted(found.items()))


def table(*, date: str) -> str:
    """Return the catalogue's file: one line per region.

    date: Month of the record, such as 2026-11.
    """
    head = {
        "source": f"moto {version('moto')}, moto/ec2/{_FOLDER}: EC2's DescribeInstanceTypeOfferings",
        "date": date,
        "purpose": "A region that is missing is unknown. AWS adds types to regions; doctor asks EC2.",
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    names = list(catalog.instance_types())
    rows = [
        f"    {json.dumps(region)}: {json.dumps(sorted(types, key=names.index))}"
        for region, types in list_offered().items()
    ]
    return "\n".join(["{", *lines, '  "regions": {', ",\n".join(rows), "  }", "}", ""])


if __name__ == "__main__":
    main()

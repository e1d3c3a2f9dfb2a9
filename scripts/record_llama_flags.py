"""Record the flags of llama-server, the types of GGUF and the model classes that llama.cpp converts.

Writes ``engines/llamaCpp.json`` and ``gguf.json`` of the catalogue's data from llama.cpp's
source, as the pinned archive has it. Run it again after a change of the pin:

    .venv/bin/python scripts/record_llama_flags.py [--digest sha256:…]
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

from record_engine_flags import owned_tables

from inference_catalog.engine_wheels.release_file import table_text
from inference_local.serving.llama_cpp.server_build import (
    BUILD,
    PACKAGE,
    PACKAGE_VERSION,
    unpacked_source,
)

DATA = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data"
IMAGE = "ghcr.io/ggml-org/llama.cpp"
ARGUMENTS, SIZES, CLASSES = "common/arg.cpp", "tools/quantize/quantize.cpp", "conversion/*.py"
#: Its tables have the bits of types for which the program itself states only those of their blocks.
MEASURED = "tools/quantize/README.md"

Flags = dict[str, dict[str, object]]

_NAMES = re.compile(r'^\s*\{([^}]*)\},\s*(?:\{([^}]*)\},\s*)?(?:"(?:[^"\\]|\\.)*"\s*(,(?!\s*\[\])))?')
_EXAMPLES = re.compile(r"\.set_examples\(\{([^}]*)\}\)")
_EXCLUDES = re.compile(r"\.set_excludes\(\{([^}]*)\}\)")
_OF_SERVER = ("LLAMA_EXAMPLE_SERVER", "LLAMA_EXAMPLE_COMMON")
# Parameters of Llama 3 8B, whose files ``quantize.cpp`` sizes in GiB, by its model card.
_PARAMETERS = 8_030_261_248
_SIZE = re.compile(r'"(\w+)",\s*LLAMA_FTYPE_\w+,\s*" ([\d.]+)G, \S+ ppl @ Llama-3-8B"')
_SIXTEEN_BITS = {"BF16": 16.0, "F16": 16.0}
#: Types of files that keep the weights of a model as it is published, with the published type.
_AS_PUBLISHED = {"MXFP4": "mxfp4"}
_BITS_PER_GIB = 8 * 1024**3


def server_flags(text: str) -> Flags:
    """Return the flags of llama-server in the definitions of all programs' flags."""
    flags: Flags = {}
    for definition in text.split("add_opt(common_arg(")[1:]:
        match = _NAMES.match(definition)
        if match is None or not _is_of_server(definition):
            continue
        positive, negative = (re.findall(r'"(--[\w-]+)"', group or "") for group in match.groups()[:2])
        for name in positive:
            opposite = name.replace("--", "--no-", 1)
            flags[name] = {
                "takes_value": bool(match.group(3)),
                "negatable": opposite in negative,
                "owner": "llamaCpp",
            }
        for name in set(negative) - {each.replace("--", "--no-", 1) for each in positive}:
            flags[name] = {"takes_value": False, "negatable": False, "owner": "llamaCpp"}
    return flags


def _is_of_server(definition: str) -> bool:
    excluded = _EXCLUDES.search(definition)
    if excluded and "LLAMA_EXAMPLE_SERVER" in excluded.group(1):
        return False
    examples = _EXAMPLES.search(definition)
    return examples is None or any(name in examples.group(1) for name in _OF_SERVER)


def bits_per_weight(text: str) -> dict[str, float]:
    """Return the mean bits per weight of each type whose file of a known model llama.cpp sizes."""
    measured = {name: round(float(gib) * _BITS_PER_GIB / _PARAMETERS, 2) for name, gib in _SIZE.findall(text)}
    return _SIXTEEN_BITS | measured


def measured_bits(text: str) -> dict[str, float]:
    """Return the bits per weight that the tables of Llama 3.1 8B have, rounded up."""
    found: dict[str, float] = {}
    names: list[str] = []
    for line in text.splitlines():
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if label == "Measure":
            names = cells
        elif label == "bits/weight":
            found |= {
                name: math.ceil(float(bits) * 100) / 100 for name, bits in zip(names, cells, strict=True)
            }
    return found


def converted_classes(source: Path) -> Iterator[str]:
    """Yield the model classes that llama.cpp converts to GGUF."""
    for path in sorted(source.glob(CLASSES)):
        for names in re.findall(r"@ModelBase\.register\(([^)]*)\)", path.read_text(encoding="utf-8")):
            yield from re.findall(r'"(\w+)"', names)


def main() -> None:
    """Write both files."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--digest", help="manifest digest of the image, sha256:…, if it is known")
    given = options.parse_args()
    source = unpacked_source(print)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    flags = server_flags((source / ARGUMENTS).read_text(encoding="utf-8"))
    head = {
        "image": IMAGE,
        "version": f"server-{BUILD}",
        "digest": given.digest,
        "engine_version": BUILD,
        "date": today,
        "source": f"{ARGUMENTS} of github.com/ggml-org/llama.cpp at {BUILD}, in the archive of {PACKAGE} "
        f"{PACKAGE_VERSION}; the tag of the image as .github/workflows/docker.yml there forms it",
    }
    target = DATA / "engines" / "llamaCpp.json"
    parts = [
        json.dumps(head, indent=2).removesuffix("\n}"),
        table_text("flags", flags),
        *owned_tables(target),
    ]
    target.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    types = measured_bits((source / MEASURED).read_text(encoding="utf-8"))
    types |= bits_per_weight((source / SIZES).read_text(encoding="utf-8"))
    gguf = {
        "source": f"llama.cpp {BUILD}: bits per weight are the sizes that {SIZES} states for Llama 3 8B, "
        f"divided by its parameters, or else those that {MEASURED} has for Llama 3.1 8B; as_published are "
        f"types of files that keep the published weights; classes are those that {CLASSES} registers",
        "date": today,
    }
    names = json.dumps(sorted(set(converted_classes(source))), indent=4).replace("\n]", "\n  ]")
    text = json.dumps(gguf, indent=2).removesuffix("\n}") + ",\n" + table_text("bits_per_weight", types)
    text += ",\n" + table_text("as_published", _AS_PUBLISHED)
    (DATA / "gguf.json").write_text(f'{text},\n  "classes": {names}\n}}\n', encoding="utf-8")
    print(f"{len(flags)} flags, {len(types)} types of GGUF")


if __name__ == "__main__":
    main()

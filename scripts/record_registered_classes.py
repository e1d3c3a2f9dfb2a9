"""Record which model classes the pinned vLLM and SGLang register, and for which task.

Writes ``catalog/inference_catalog/data/registered_classes.json``. Run it after a change of the pinned
engines:

    .venv/bin/python scripts/record_registered_classes.py

It reads modules from each engine's wheel over HTTP and never imports them, because they import torch.

- vLLM has a table per task (``vllm/model_executor/models/registry.py``), one of the classes that it had
  until an earlier release, and one of those that a plugin adds
- SGLang has no tables: each module of ``sglang/srt/models/`` names its classes in ``EntryClass``. The task is
  vLLM's for the same class. For others, ``sglang/srt/configs/model_config.py`` lists those that read images
  and those that write no text, and the name of a draft says so
"""

from __future__ import annotations

import ast
import datetime
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_catalog.engine_wheels.wheels import open_remote_wheel

TARGET = Path(__file__).resolve().parents[1] / "catalog/inference_catalog/data/registered_classes.json"

VLLM_REGISTRY = "vllm/model_executor/models/registry.py"
SGLANG_MODELS = "sglang/srt/models/"
SGLANG_CONFIGURATION = "sglang/srt/configs/model_config.py"

#: Task by vLLM's table. A class in several tables has the task of the first.
_TABLES = {
    "_TEXT_GENERATION_MODELS": "text",
    "_MULTIMODAL_MODELS": "multimodal",
    "_TRANSFORMERS_SUPPORTED_MODELS": "text",
    "_EMBEDDING_MODELS": "embedding",
    "_LATE_INTERACTION_MODELS": "lateInteraction",
    "_REWARD_MODELS": "reward",
    "_TOKEN_CLASSIFICATION_MODELS": "tokenClassification",
    "_SEQUENCE_CLASSIFICATION_MODELS": "sequenceClassification",
    "_SPECULATIVE_DECODING_MODELS": "draft",
}
_TRANSCRIPTION_ONLY = re.compile(r"supports_transcription_only(?:: [^=\n]+)? = True")
_DRAFT = re.compile(r"MTP|NextN|Eagle|EAGLE|DFlash|DSpark|Draft|Medusa|Assistant")
_IMAGES = re.compile(r"VL|Vision|ChatModel")
#: Classes that stand for any model of transformers. No published configuration names them.
_GENERIC = "Transformers"


def vllm_tasks(wheel: zipfile.ZipFile) -> dict[str, str]:
    """Return the task of each class that vLLM registers."""
    tables = dict(_tables(ast.parse(wheel.read(VLLM_REGISTRY))))
    tasks: dict[str, str] = {}
    modules: dict[str, str] = {}
    for table, task in _TABLES.items():
        for name, value in tables[table].items():
            module, mapped = value
            is_multimodal = "MultiModal" in mapped
            tasks.setdefault(name, "multimodal" if is_multimodal else task)
            modules.setdefault(name, module)
    texts: dict[str, bool] = {}
    for name, module in modules.items():
        path = f"vllm/model_executor/models/{module}.py"
        if tasks[name] != "multimodal" or path not in wheel.namelist():
            continue
        if path not in texts:
            texts[path] = bool(_TRANSCRIPTION_ONLY.search(wheel.read(path).decode("utf-8")))
        if texts[path]:
            tasks[name] = "transcription"
    return tasks


def vllm_former(wheel: zipfile.ZipFile) -> tuple[dict[str, str], dict[str, str]]:
    """Return vLLM's last release with each class that it no longer has, and the plugin of others."""
    tables = dict(_tables(ast.parse(wheel.read(VLLM_REGISTRY))))
    return tables["_PREVIOUSLY_SUPPORTED_MODELS"], tables["_OOT_SUPPORTED_MODELS"]


def _tables(tree: ast.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each dictionary of a module, without the parts that it computes."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                pairs = zip(keys, values, strict=True)
                yield name, {ast.literal_eval(key): ast.literal_eval(value) for key, value in pairs if key}


def sglang_tasks(wheel: zipfile.ZipFile, known: Mapping[str, str]) -> dict[str, str]:
    """Return the task of each class that SGLang registers.

    known: Task by vLLM's name.
    """
    configuration = ast.parse(wheel.read(SGLANG_CONFIGURATION))
    reads_images = set(_listed(configuration, "multimodal_model_archs"))
    writes_none = set(_compared(configuration, "is_generation_model"))

    def task(name: str) -> str:
        if name in known:
            return known[name]
        if _DRAFT.search(name):
            return "draft"
        if name in reads_images or _IMAGES.search(name):
            return "multimodal"
        if "Classification" in name:
            return "sequenceClassification"
        if "Reward" in name:
            return "reward"
        is_encoder = name.endswith("Model") and not name.endswith("LMHeadModel")
        return "embedding" if name in writes_none or is_encoder else "text"

    return {name: task(name) for name in _entry_classes(wheel) if not name.startswith(_GENERIC)}


def _entry_classes(wheel: zipfile.ZipFile) -> Iterator[str]:
    for path in wheel.namelist():
        if path.startswith(SGLANG_MODELS) and path.endswith(".py"):
            for statement in ast.parse(wheel.read(path)).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id="EntryClass")], value=value):
                        yield from (node.id for node in ast.walk(value) if isinstance(node, ast.Name))


def _listed(tree: ast.Module, name: str) -> Iterator[str]:
    """Yield the texts of the lists that are assigned to a name, or whose names one unpacks."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.List(elts=elements)) if found == name:
                for element in elements:
                    match element:
                        case ast.Constant(value=str(text)):
                            yield text
                        case ast.Starred(value=ast.Name(id=other)):
                            yield from _listed(tree, other)


def _compared(tree: ast.Module, function: str) -> Iterator[str]:
    """Yield the texts that a function compares."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == function:
            for node in ast.walk(statement):
                match node:
                    case ast.Compare(left=ast.Constant(value=str(text))):
                        yield text


def main() -> None:
    """Record the classes of both engines."""
    releases = {name: catalog.engine(name).engine_version for name in ("vllm", "sglang")}
    with open_remote_wheel(f"vllm=={releases['vllm']}") as wheel:
        vllm, (former, plugins) = vllm_tasks(wheel), vllm_former(wheel)
    with open_remote_wheel(f"sglang=={releases['sglang']}") as wheel:
        sglang = sglang_tasks(wheel, vllm)
    document = {
        "source": f"{VLLM_REGISTRY} of vllm {releases['vllm']}; EntryClass in {SGLANG_MODELS} and "
        f"{SGLANG_CONFIGURATION} of sglang {releases['sglang']}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "releases": releases,
    }
    classes = {
        name: {
            "task": vllm.get(name) or sglang[name],
            "engines": [engine for engine, own in (("vllm", vllm), ("sglang", sglang)) if name in own],
        }
        for name in sorted({*vllm, *sglang}, key=str.lower)
    }
    tables: dict[str, dict[str, Any]] = {
        "classes": classes,
        "former": {name: former[name] for name in sorted(former) if name not in classes},
        "plugins": plugins,
    }
    parts = [json.dumps(document, indent=2).removesuffix("\n}")]
    for key, table in tables.items():
        lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
        parts.append(f'  "{key}": {{\n{lines}\n  }}')
    TARGET.write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{TARGET}: {len(vllm)} classes of vllm, {len(sglang)} of sglang, {len(classes)} in all")


if __name__ == "__main__":
    main()

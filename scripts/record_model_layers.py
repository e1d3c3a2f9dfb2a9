"""Record what the pinned vLLM's own model classes allocate. Tests compare the catalogue's counting with it.

    .venv/bin/python scripts/record_model_layers.py GROUP [--only NAME]

The groups are:

- ``catalogue``: the entries of ``models.json``, with the configurations that ``record_models.py`` counts
- ``experts``, ``states``: some of them, with arguments of the engine that divide experts or change states
- ``ranks``: one model of each class of ``catalogue`` and ``classes`` with experts, with expert parallelism of
  4 devices in each of 4 ranks
- ``classes``, ``heldOut``: the configurations in ``tests/unit/catalog/configurations/``. No rule was written
  with those of ``heldOut`` in view
- ``stages``: one model of each class of ``catalogue``, and ``heldOut``, divided into pipeline stages. A case
  has the weights, the layers and the bytes of requests of each stage
- ``classStages``: the same of ``classes``
- ``drafts``: models with the draft of `configurations/drafts.json`, or with their own layers for multi-token
  prediction. The draft's weights are those before the engine drops what the model has, and after

Each group writes ``tests/unit/catalog/recorded_layers/GROUP.json``, a line per case. Cases that differ in the
compute capability alone are one line. ``--only`` records one model again and leaves the others.

The first use installs real vLLM, as ``make test-engines`` does: 7 GB in the cache folder. A case takes about
a second on one processor, without a GPU and without weights (`layers_inside.py`). Weights are those before
kernels repack them; activations and CUDA graphs are not counted.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from record_models import CONFIGURATIONS, published

import inference_catalog as catalog
from inference_catalog.configurations.describe import describe
from inference_local.serving.vllm_cpu.installation import VLLM

Json = dict[str, Any]

_TESTS = Path(__file__).resolve().parents[1] / "tests/unit/catalog"
RECORDED = _TESTS / "recorded_layers"
_INSIDE = Path(__file__).with_name("layers_inside.py")


class Group(NamedTuple):
    """With what each model of a group is counted."""

    capabilities: tuple[str, ...]
    parallel_sizes: tuple[int, ...]
    cache_types: tuple[str, ...]
    stages: tuple[int, ...] = (1,)
    arguments: tuple[Json, ...] = ({},)
    """More arguments of the engine; models are counted with each."""
    names: str = ".*"
    """Pattern of the names of the models."""


GROUPS: Mapping[str, Group] = {
    "catalogue": Group(("9.0", "10.0"), (1, 2, 4, 8), ("auto", "fp8")),
    "classes": Group(("9.0",), (1, 8), ("auto",)),
    "heldOut": Group(("9.0",), (1, 8), ("auto", "fp8")),
    "stages": Group(("9.0",), (1, 8), ("auto",), (2, 4)),
    "classStages": Group(("9.0",), (1,), ("auto",), (3,)),
    "drafts": Group(("9.0",), (1, 8), ("auto",)),
    "experts": Group(
        ("9.0",),
        (4,),
        ("auto",),
        arguments=(
            {"enable_expert_parallel": True},
            {"enable_expert_parallel": True, "data_parallel_size": 4},
            {"data_parallel_size": 4},
        ),
        names=r"openai/gpt-oss-20b|moonshotai/Kimi-K3|deepseek-ai/DeepSeek-V3\.2|Qwen/Qwen3-30B-A3B-FP8",
    ),
    "blocks": Group(
        ("9.0", "10.0"),
        (8,),
        ("auto", "fp8"),
        arguments=tuple({"block_size": size} for size in (32, 64, 128, 256)),
        names=r"deepseek-ai/DeepSeek-(V4-Flash|V3\.2|R1)|Qwen/Qwen3(-32B|\.5-27B)"
        r"|openai/gpt-oss-20b|google/gemma-3-27b-it|nvidia/MiniMax-M3-NVFP4",
    ),
    "ranks": Group(
        ("9.0",), (4,), ("auto",), arguments=({"enable_expert_parallel": True, "data_parallel_size": 4},)
    ),
    "states": Group(
        ("9.0",),
        (4,),
        ("auto",),
        arguments=(
            {"mamba_cache_dtype": "float32"},
            {"mamba_ssm_cache_dtype": "bfloat16"},
            {"mamba_ssm_cache_dtype": "float32"},
        ),
        names=r"moonshotai/Kimi-K3|nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16|Qwen/Qwen3\.5-27B",
    ),
}


def of_the_catalogue() -> Iterator[Json]:
    """Yield the catalogue's models with their published configurations."""
    sources = {name: model.source for name, model in sorted(catalog.models().items())}
    for name, configuration, exported in published(sources):
        yield {"name": name, "configuration": configuration, "exported": exported}


def given(group: str) -> Iterator[Json]:
    """Yield the configurations of a file."""
    document = json.loads((CONFIGURATIONS / f"{group}.json").read_text(encoding="utf-8"))
    for name, entry in document["configurations"].items():
        yield {
            "name": name,
            "configuration": entry["configuration"],
            "exported": entry.get("exported"),
            "arguments": entry.get("arguments", {}),
        }


#: Tokens that layers for multi-token prediction guess.
_GUESSED = 1


def staged() -> Iterator[Json]:
    """Yield one model of each class of the catalogue, and those that were held out."""
    classes = set()
    for model in of_the_catalogue():
        [name] = model["configuration"]["architectures"]
        if name not in classes:
            classes.add(name)
            yield model
    yield from given("heldOut")


def with_experts() -> Iterator[Json]:
    """Yield one model of each class with experts, of the catalogue if it has one."""
    classes = set()
    for model in (*of_the_catalogue(), *given("classes")):
        entry = describe(model["configuration"], model["exported"])
        if entry["experts"] and entry["architecture"] not in classes:
            classes.add(entry["architecture"])
            yield model


def speculating() -> Iterator[Json]:
    """Yield models with a draft, and those with layers for multi-token prediction."""
    drafts = json.loads((CONFIGURATIONS / "drafts.json").read_text(encoding="utf-8"))["configurations"]
    classes = set()
    for model in (*of_the_catalogue(), *given("heldOut")):
        entry = catalog.models().get(model["name"])
        for name, draft in drafts.items():
            if draft["model"] == model["name"]:
                yield model | {"speculation": {"name": name} | draft}
        if entry and entry.predicted_layers and entry.architecture not in classes:
            classes.add(entry.architecture)
            yield model | {"speculation": {"name": "mtp", "method": "mtp", "tokens": _GUESSED}}


def models_of(group: str) -> list[Json]:
    """Return the models of a group."""
    readers = {
        "catalogue": of_the_catalogue,
        "blocks": of_the_catalogue,
        "experts": of_the_catalogue,
        "ranks": with_experts,
        "states": of_the_catalogue,
        "stages": staged,
        "drafts": speculating,
    }
    files = {"classStages": "classes"}
    return list(readers[group]() if group in readers else given(files.get(group, group)))


def counted(
    program: Sequence[Path], capability: str, jobs: list[Json], environment: Mapping[str, str] | None = None
) -> Iterator[Json]:
    """Yield an engine's answers to jobs, for one compute capability.

    program: The Python of the engine's environment and the script that asks the engine.
    environment: Environment variables; None for this process's own.
    """
    with tempfile.TemporaryDirectory(prefix="layers-") as folder:
        asked, answered = Path(folder) / "jobs", Path(folder) / "results"
        asked.write_text("".join(f"{json.dumps(job)}\n" for job in jobs), encoding="utf-8")
        subprocess.run([*program, capability, asked, answered], check=True, env=environment)
        yield from map(json.loads, answered.read_text(encoding="utf-8").splitlines())


def record(
    program: Sequence[Path],
    models: list[Json],
    group: Group,
    environment: Mapping[str, str] | None = None,
) -> list[Json]:
    """Count models with every setting of their group."""
    jobs = [
        model
        | {"tensor_parallel_size": size, "kv_cache_dtype": cache_type}
        | {"arguments": model.get("arguments", {}) | arguments}
        | ({} if stages == 1 else {"pipeline_parallel_size": stages})
        for model in models
        for stages in group.stages
        for size in group.parallel_sizes
        for cache_type in group.cache_types
        for arguments in group.arguments
    ]
    cases: dict[str, Json] = {}
    for capability in group.capabilities:
        for case in counted(program, capability, jobs, environment):
            del case["sm"]
            first = cases.setdefault(json.dumps(case, sort_keys=True), {"sm": [], **case})
            first["sm"].append(capability)
    return sorted(cases.values(), key=_place)


def _place(case: Json) -> tuple[Any, ...]:
    return (
        *(case.get(name, "" if name == "draft" else 0) for name in ("name", "draft", "pp", "tp", "given_kv")),
        json.dumps(case.get("arguments", {})),
        case["sm"],
    )


def write(target: Path, engine: str, cases: list[Json]) -> None:
    """Write a group's file, a line per case."""
    head = {
        "source": f"{engine}: its model classes on the device meta, as rank 0 "
        "of each stage of a pretended group on GPUs of the compute capabilities `sm`",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{json.dumps(head, indent=2).removesuffix("}").rstrip()},\n  "cases": [\n{lines}\n]\n}}\n'
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")


def update(
    target: Path, engine: str, models: list[Json], count: Callable[[list[Json]], list[Json]], only: str | None
) -> None:
    """Record models, or those whose names match a pattern, and say what the engine refuses."""
    kept: list[Json] = []
    if only:
        names = {model["name"] for model in models}
        models = [model for model in models if re.fullmatch(only, model["name"])]
        asked = {model["name"] for model in models}
        known = json.loads(target.read_text(encoding="utf-8"))["cases"] if target.exists() else []
        kept = [case for case in known if case["name"] in names - asked]
    cases = count(models)
    write(target, engine, sorted([*kept, *cases], key=lambda case: str(case["name"])))
    refused = [case for case in cases if "error" in case]
    print(f"{target}: {len(kept) + len(cases)} cases, {len(refused)} of them refused by {engine}")
    for case in refused:
        print(f"  {case['name']} with TP {case['tp']}, KV {case['given_kv']}: {case['error'][:150]}")


def main() -> None:
    """Record a group."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("group", choices=GROUPS)
    options.add_argument("--only", metavar="NAME", help="a pattern of names to record again")
    chosen = options.parse_args()
    group, program = GROUPS[chosen.group], [VLLM.python(print), _INSIDE]
    update(
        RECORDED / f"{chosen.group}.json",
        f"vllm {VLLM.locked_version('vllm-cpu')}",
        [model for model in models_of(chosen.group) if re.fullmatch(group.names, model["name"])],
        lambda models: record(program, models, group),
        chosen.only,
    )


if __name__ == "__main__":
    main()

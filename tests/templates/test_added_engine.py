"""An engine, added as docs/architecture.md says, is planned and rendered; it takes four files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import inference_catalog as catalog
from tests.templates.copied_library import CopiedLibrary

pytestmark = pytest.mark.thorough

ENGINES = "inference_blueprints/serving/engines"
DATA = "catalog/inference_catalog/data/engines"
KEYS = "inference_blueprints/spec/sections/models/keys.py"

CLASS = '''
"""An engine with a server of its own."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.serving_engine import OwnServer, RequestCounter
from inference_blueprints.serving.engines.serving_engine import ArgumentNames, ServingEngine
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import Accelerator


class Quick(ServingEngine):
    argument_names = ArgumentNames(
        length="max-length",
        sequences="max-sequences",
        step_tokens="max-tokens",
        block_size="block-size",
        memory_share="memory-share",
        kv_cache_type="cache-type",
        kv_cache_types=("auto", "fp8"),
        without_prefix_cache=("prefix-cache", False),
    )
    own_server = OwnServer(
        program="quickServer",
        command=("quick", "serve"),
        running="quick:running",
        waiting="quick:waiting",
        requests=RequestCounter("quick:requests_total"),
    )
    block_size = 16

    def step_tokens(self, accelerator: Accelerator) -> int:
        return 2048

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:
        return {"model": resolved.model.weights.hugging_face, **self.argument_names.sizing_arguments(sizing)}

    def server_arguments(
        self, arguments: Mapping[str, Argument], port: int, stream_seconds: int
    ) -> tuple[str, ...]:
        return command_line({**arguments, "port": port})
'''

FLAG = {"takes_value": True, "negatable": False, "owner": "quick"}
FLAGS = ("model", "max-length", "max-sequences", "max-tokens", "block-size", "memory-share", "cache-type")
ENTRY = {
    "image": "registry.example.com/quick",
    "version": "1.0.0",
    "digest": None,
    "engine_version": "1.0.0",
    "date": "2026-11-28",
    "source": "made up",
    "flags": {f"--{name}": FLAG for name in (*FLAGS, "port", "seed")},
    "owned_arguments": {"@huggingFace": ["model"], "the load balancer knows it": ["port"]},
}

#: File, what stands there, and what is added before it.
EDITS = (
    (
        f"{ENGINES}/__init__.py",
        "from inference_blueprints.serving.engines.serving_engine",
        "from inference_blueprints.serving.engines.quick import Quick\n",
    ),
    (f"{ENGINES}/__init__.py", '        "vllm": Vllm(),', '        "quick": Quick(),\n'),
    (
        KEYS,
        "    vllm: VllmEngine | None = None",
        '    quick: EngineSection | None = None\n    """A quick one."""\n',
    ),
    (KEYS, '    {"vllmNeuron": "direct"', '    {"quick": "direct"} |\n'),
)

#: Plans a right file and reads a wrong one, as the commands do.
PROGRAM = """
import json
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.structure import json_schema
from inference_contracts.errors import BlueprintError

[worker] = build_plan(load_blueprint("right.yaml").blueprint).models[0].deployments[0].processes
try:
    load_blueprint("wrong.yaml")
except BlueprintError as error:
    problems = [problem.message for problem in error.problems]
print(json.dumps({
    "image": worker.image, "command": worker.command, "arguments": worker.arguments, "problems": problems,
    "keys": list(json_schema()["$defs"]["Engine"]["properties"]),
}))
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> CopiedLibrary:
    """A copy of the library with the engine, a right file and a wrong one."""
    copied = CopiedLibrary.make(
        tmp_path_factory.mktemp("library"),
        changed=("inference_blueprints", "catalog"),
        added={f"{ENGINES}/quick.py": CLASS, f"{DATA}/quick.json": json.dumps(ENTRY)},
        edits=EDITS,
    )
    for name, arguments in (("right", {"seed": 7}), ("wrong", {"model": "x", "port": 1, "sead": 7})):

        def change(spec: dict[str, Any], arguments: dict[str, Any] = arguments) -> None:
            [model] = spec["models"]
            model["engine"] = {"quick": {"args": arguments}}

        copied.write_blueprint(name, change)
    return copied


@pytest.fixture(scope="module")
def planned(copied: CopiedLibrary) -> dict[str, Any]:
    """What the copy says of the files."""
    result: dict[str, Any] = json.loads(copied.run("-c", PROGRAM))
    return result


def test_an_engine_takes_four_files() -> None:
    """Red if the plan needs one more place that lists engines: without it, the tests below would fail."""
    assert len({name for name, *_ in EDITS} | {"its class", "its data"}) == 4


def test_its_worker_is_planned(planned: dict[str, Any]) -> None:
    assert planned["image"] == "registry.example.com/quick:1.0.0"
    words = [*planned["command"], *planned["arguments"]]
    assert words[words.index("quick") : words.index("quick") + 2] == ["quick", "serve"]
    assert words[words.index("--seed") + 1] == "7"
    assert planned["keys"][0] == "quick"


def test_what_the_plan_owns_is_refused_with_its_reason(planned: dict[str, Any]) -> None:
    """Red if an engine's own reasons, or the shared ones, are not read from its data."""
    huggingface = catalog.argument_reasons()["huggingFace"]
    assert planned["problems"] == [
        f"the plan sets 'model' itself; {huggingface}",
        "the plan sets 'port' itself; the load balancer knows it",
        "got 'sead', which is not an argument of quick 1.0.0; did you mean 'seed'?",
    ]


def test_the_app_deploys_it(copied: CopiedLibrary) -> None:
    """Red if charts or stacks need an entry per engine."""
    rendered = [path.read_text() for path in copied.synthesise().glob("*.template.json")]
    assert any("registry.example.com/quick" in text for text in rendered)

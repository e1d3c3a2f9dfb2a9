"""The examples of docs/clients.md, as they are, against a local platform.

LangChain, LlamaIndex and LiteLLM run in an environment of their own, with what requirements.txt locks: they
need another release of OpenAI's client than this project.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints import tools
from inference_blueprints.resources import root
from tests.local.serving.conftest import Served

PAGE = (root() / "docs" / "clients.md").read_text(encoding="utf-8")
LOCK = Path(__file__).with_name("requirements.txt")
#: What follows each example, and shows what the program got.
SHOWN = {
    "LangChain": """
import json
calls = [(each["name"], sorted(each["args"])) for each in called]
print(json.dumps([len(answer.text.split()), answer.usage_metadata["output_tokens"],
                  len("".join(streamed).split()), type(weather.degrees).__name__,
                  type(by_tool.degrees).__name__, calls]))
""",
    "LlamaIndex": """
import json
print(json.dumps([len(answer.text.split()), len("".join(filter(None, streamed)).split()),
                  type(weather.degrees).__name__]))
""",
    "LiteLLM": """
import json
chunks = [each.choices[0].delta.content or "" for each in streamed]
print(json.dumps([answer.choices[0].finish_reason, answer.usage.completion_tokens,
                  len("".join(chunks).split()), typed.choices[0].finish_reason,
                  type(weather.degrees).__name__]))
""",
    "Node.js": """
console.log(JSON.stringify([answer.choices[0].finish_reason, typeof weather.degrees, calls.length,
  typeof calls[0].degrees, refusal.constructor.name, refusal.status, refusal.error]));
""",
}
SEEN: dict[str, list[Any]] = {
    "LangChain": [60, 60, 60, "int", "int", [["Weather", ["city", "degrees"]]]],
    "LlamaIndex": [60, 60, "int"],
    "LiteLLM": ["length", 30, 30, "stop", "int"],
}


def example(heading: str, served: Served) -> str:
    """Return the program below a heading, with the address of the platform."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(r"^```(?:python|js)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].replace("http://127.0.0.1:PORT/v1", served.endpoint.base_url)


def run(*words: str | Path, folder: Path) -> str:
    """Run a program that may call only the endpoint, and return what it wrote."""
    variables = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8"}
    ran = subprocess.run(
        list(map(str, words)), cwd=root(), env=variables, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the locked clients."""
    folder = tmp_path_factory.mktemp("clients")
    installed = folder / "venv/bin/python"
    uv = [sys.executable, "-m", "uv", "--quiet", "--no-config"]
    subprocess.run([*uv, "venv", "--python", sys.executable, str(folder / "venv")], check=True)
    install = [*uv, "pip", "install", "--require-hashes", "--requirement", str(LOCK)]
    subprocess.run([*install, "--python", str(installed)], check=True)
    return installed


@pytest.fixture(scope="module")
def ran(python: Path, served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each example wrote. They run at the same time: their imports take seconds."""

    def one(heading: str) -> str:
        folder = tmp_path_factory.mktemp(heading)
        program = folder / "example.py"
        program.write_text(example(heading, served) + SHOWN[heading], encoding="utf-8")
        return run(python, program, folder=folder)

    with ThreadPoolExecutor() as pool:
        return dict(zip(SEEN, pool.map(one, SEEN), strict=True))


@pytest.mark.parametrize("heading", SEEN)
def test_an_example_gets_what_its_client_promises(heading: str, ran: dict[str, str]) -> None:
    """A stream without words, a call without arguments, or a schema that ends with `length`, raises."""
    assert json.loads(ran[heading].splitlines()[-1]) == SEEN[heading]


def test_the_example_of_python_runs(served: Served) -> None:
    names: dict[str, Any] = {}
    exec(example("Python", served), names)  # noqa: S102
    assert names["answer"].usage.completion_tokens == 30
    assert isinstance(names["weather"].degrees, int)
    assert names["call"].name == "measure"
    assert names["arguments"].keys() == {"city", "degrees"}


def test_the_example_of_node_runs(served: Served, tmp_path: Path) -> None:
    """The table of errors has the body that this client shows: Dynamo's, without an envelope."""
    program = tmp_path / "example.mjs"
    program.write_text(example("Node.js", served) + SHOWN["Node.js"], encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(root() / "node_modules")
    *seen, body = json.loads(run(tools.node(), program, folder=tmp_path).splitlines()[-1])
    assert seen == ["length", "number", 1, "number", "BadRequestError", 400]
    assert body

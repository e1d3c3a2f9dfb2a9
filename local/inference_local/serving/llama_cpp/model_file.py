"""The file of GGUF that llama-server serves: a tiny model with random weights, or one that the user names."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.processes.checked_folder import made_once
from inference_local.serving.llama_cpp import read_gguf, write_gguf
from inference_local.serving.llama_cpp.server_build import BUILD, cache_folder, unpacked_source

_OPTION = "--gguf"
_NAMED_FILE_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """What the plan expects of a file."""

    type: str
    """``gguf.type`` of the blueprint."""
    context: int
    """Tokens of the longest request, which the model must allow."""


def check_file(file: Path, planned: PlannedFile, report: Report) -> None:
    """Make sure that llama-server can serve a file in place of the planned one.

    report: Called with a line for what cannot be compared.
    Raises UserError with every reason why not.
    """
    stated = _stated(file, report)
    if problems := list(_problems(stated, planned)):
        raise UserError("\n".join(f"{_OPTION} {file}: {each}" for each in problems))
    if stated["type"] is None:
        report(f"{file.name}: states no type (general.file_type), so it was not compared with {planned.type}")


def _stated(file: Path, report: Report) -> Mapping[str, Any]:
    """Return what a file says about itself."""
    source = unpacked_source(report)
    # -B: the folder of the source must stay as its checksums say.
    command = [sys.executable, "-I", "-B", str(read_gguf.__file__), str(source), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = "\n  ".join(done.stderr.splitlines()[-_NAMED_FILE_SHOWN_LINES:])
        raise UserError(f"{_OPTION} {file}: could not be read:\n  {lines}")
    stated: Mapping[str, Any] = json.loads(done.stdout)
    return stated


def _problems(stated: Mapping[str, Any], planned: PlannedFile) -> Iterator[str]:
    if "problem" in stated:
        yield (
            f"is no file of GGUF, or is not complete ({stated['problem']}); name a whole file, and compare "
            "its size with that of its source"
        )
        return
    parts, architecture = stated["parts"], stated["architecture"]
    if parts and parts > 1:
        yield (
            f"is one of {parts} parts of a model, and the plan is for one file; join them with "
            "`llama-gguf-split --merge`, and name the result"
        )
    if not stated["heads"]:
        yield (
            f"its architecture {architecture} states no number of attention heads "
            f"({architecture}.attention.head_count), from which the plan counts the KV cache; name a "
            "language model with attention"
        )
    elif stated["causal"] is False:
        yield f"its architecture {architecture} writes no text; name a language model"
    elif stated["context"] is None or stated["context"] < planned.context:
        got = "no context length" if stated["context"] is None else f"a context of {stated['context']} tokens"
        yield (
            f"has {got}, and the plan's longest request has {planned.context}; name another file, or lower "
            "`workload` or `maxContextTokens` in a copy of the blueprint"
        )
    if stated["type"] not in (None, planned.type):
        yield (
            f"has the type {stated['type']}, and gguf.type is {planned.type}; name a file of that type, or "
            f"set 'type: {stated['type']}' in a copy of the blueprint"
        )


_FILE = "model.gguf"
_TINY_MODEL_SHOWN_LINES = 15
#: Qwen's format, with the tools and the calls of Hermes. With a template that has no tools, llama-server
#: ignores ``tool_choice`` and answers with text (``has_tools`` in ``common/chat-auto-parser-generator.cpp``).
#: It has one call per message: of several, its grammar would allow any number (``one_or_more`` in that file).
_TEMPLATE = (
    "{%- if tools %}{{- '<|im_start|>system\n' }}"
    "{%- for tool in tools %}{{- tool | tojson + '\n' }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}"
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\n' + (message.content or '') }}"
    "{%- if message.tool_calls %}{%- set call = message.tool_calls[0] %}"
    '{{- \'<tool_call>{"name": "\' + call.function.name + \'", "arguments": \' }}'
    "{{- call.function.arguments | tojson + '}</tool_call>' }}{%- endif %}"
    "{{- '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
#: Tokens that Qwen3 added to the vocabulary of Qwen2, by number (``tokenizer_config.json`` of Qwen3).
_ADDED_TOKENS = {"<tool_call>": 151657, "</tool_call>": 151658}
#: What is added to the scores of tokens. llama-server's grammars allow text before a tool call, and texts
#: of any length. Random weights would seldom choose the token that ends these. The scores of all others have
#: a standard deviation of about 0.5, and the highest of them is about 2.2.
_BIASES = {"qwen2": {"<tool_call>": 2.0, '"': 2.4, "<|im_end|>": 1.0}}


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A model with random weights."""

    context: int
    """Tokens that its positions allow."""
    architecture: str = "qwen2"
    """Llama.cpp's name of the architecture: ``qwen2``, ``qwen3``, ``llama`` or ``gemma``."""
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 128
    """`layers`, `hidden`, `heads`, `kv_heads`, `feed_forward`: Its sizes."""
    seed: int = 7
    """Seed of the weights."""

    def file(self, report: Report) -> Path:
        """Return it as a file of GGUF, with the tokenizer of Qwen2 from llama.cpp's archive.

        report: Called with a line for the cache hit, or for the first use, which writes the file.
        Returns: The file, in a folder of the cache whose content matches its checksums.
        Raises UserError if the file cannot be written.
        """
        fixed = {"name": "random weights", "template": _TEMPLATE, "added_tokens": _ADDED_TOKENS}
        biases = _BIASES.get(self.architecture, {})  # others have no such tensor in llama.cpp
        settings = json.dumps({**asdict(self), **fixed, "biases": biases}, sort_keys=True)
        recipe = [BUILD, settings, Path(str(write_gguf.__file__)).read_text(encoding="utf-8")]
        digest = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:12]
        title = f"{self.architecture} with random weights"
        folder = cache_folder() / f"model-{digest}"
        return made_once(folder, title, lambda draft: _write(settings, draft / _FILE), report) / _FILE


def _write(settings: str, target: Path) -> None:
    source = unpacked_source(lambda _: None)
    # -B: the folder of the source must stay as its checksums say.
    command = [sys.executable, "-I", "-B", str(write_gguf.__file__), str(source), str(target), settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = "\n  ".join(done.stderr.splitlines()[-_TINY_MODEL_SHOWN_LINES:])
        raise UserError(f"a model with random weights could not be written:\n  {lines}")

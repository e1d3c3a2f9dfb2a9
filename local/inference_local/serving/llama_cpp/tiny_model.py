"""The tiny models with random weights that llama-server serves on this machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.processes.checked_folder import made_once
from inference_local.serving.llama_cpp import write_gguf
from inference_local.serving.llama_cpp.source_archive import BUILD, cache_folder, unpacked_source

_FILE = "model.gguf"
_SHOWN_LINES = 15
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
        lines = "\n  ".join(done.stderr.splitlines()[-_SHOWN_LINES:])
        raise UserError(f"a model with random weights could not be written:\n  {lines}")

"""A file of GGUF that the user names, in place of the model with random weights."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.serving.llama_cpp import read_gguf
from inference_local.serving.llama_cpp.source_archive import unpacked_source

_OPTION = "--gguf"
_SHOWN_LINES = 5


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
        lines = "\n  ".join(done.stderr.splitlines()[-_SHOWN_LINES:])
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

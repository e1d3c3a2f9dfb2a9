"""Processor time and memory of a Dynamo frontend per request, per prompt token and per answer token.

A frontend with the plan's arguments of quickstart-g6e gets chat requests in front of simulated workers that
answer at once. Its vocabulary is that of gpt-oss, its prompts are parts of this project's documentation, and
answers are streamed. Three kinds of requests (short, long prompt, long answer) give the three times.
`frontend_load_memory` is the memory after all of them. The plan of frontends uses these figures
(`frontend_load.json` of the catalogue).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness.figure import Figure
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend, write_large_model
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup

_BLUEPRINT = "quickstart-g6e"
_WARM = Load(40, 200, 20)
_SHORT, _PROMPT, _ANSWER = Load(600, 20, 1), Load(100, 6000, 1), Load(100, 20, 800)


def measure() -> list[Figure]:
    """Take the measurement."""
    with tempfile.TemporaryDirectory() as directory, ProcessGroup() as processes:
        folder = Path(directory)
        process = build_plan(load_blueprint(_BLUEPRINT).blueprint).models[0].deployments[0].entry_point
        model = write_large_model(folder / "model")
        frontend = MeasuredFrontend(
            process, "frontend", folder / "frontend", model=model, processes=processes
        )
        frontend.wait()
        frontend.cost(_WARM)
        short, prompt, answer = (frontend.cost(each) for each in (_SHORT, _PROMPT, _ANSWER))
        memory = frontend.memory_mib
        processes.check()
    per_prompt_token = (prompt.seconds - short.seconds) / (prompt.prompt_tokens - short.prompt_tokens)
    per_answer_token = (answer.seconds - short.seconds) / (answer.answer_tokens - short.answer_tokens)
    fixed = short.seconds - short.prompt_tokens * per_prompt_token - short.answer_tokens * per_answer_token
    return [
        Figure("frontend_load", fixed * 1e3, "ms per request"),
        Figure("frontend_load_prompt", per_prompt_token * 1e6, "ms per 1,000 prompt tokens"),
        Figure("frontend_load_answer", per_answer_token * 1e6, "ms per 1,000 answer tokens"),
        Figure("frontend_load_memory", memory, "MiB"),
    ]

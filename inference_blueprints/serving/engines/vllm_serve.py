"""The command line of ``vllm serve``, and what vLLM's own server reports.

Flags are those of ``vllm/entrypoints/launchers/cli_args.py``, and metrics those of ``v1/metrics/loggers.py``
of vLLM 0.31.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.own_server import OwnServer, ParserFlags, RequestCounter

#: Arguments of ``dynamo.vllm`` that ``vllm serve`` does not have.
_DYNAMO_ONLY = ("disaggregation-mode", "embedding-worker")
_REACHED = "requests arrive at the address and port that the plan sets"
_PARSERS = ParserFlags("vllm", "reasoning-parser", "tool-call-parser")

#: vLLM's server.
VLLM_SERVER = OwnServer(
    program="vllmServer",
    command=("vllm", "serve"),
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    #: vLLM counts requests that ended, also at prefill workers.
    requests=RequestCounter("vllm:request_success_total"),
    latency="vllm:time_to_first_token_seconds",
    parsers=_PARSERS,
)


def serve_arguments(
    planned: Mapping[str, Argument], port: int, stream_seconds: int
) -> tuple[str, dict[str, Argument]]:
    """Return the model and the arguments of ``vllm serve``, from those of Dynamo's worker.

    Events of the KV cache are left out: they need a router that reads them.

    planned: Arguments of Dynamo's worker, by name without dashes.
    port: Port of the API.
    stream_seconds: Longest time of an answer, which runs to its end after SIGTERM.
    """
    left_out = (*_DYNAMO_ONLY, "model", "kv-events-config")
    arguments = {name: value for name, value in planned.items() if name not in left_out}
    arguments |= {"port": port, "shutdown-timeout": stream_seconds}
    # Answers report how much of a prompt was cached, as those of Dynamo's workers always do.
    arguments["enable-prompt-tokens-details"] = True
    if _PARSERS.tool_call in arguments:
        # Without it, vLLM refuses requests in which the model may choose a tool.
        arguments.setdefault("enable-auto-tool-choice", True)
    return str(planned["model"]), arguments

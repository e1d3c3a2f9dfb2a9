"""Levels of Dynamo's logs: one line per request instead of eight.

At the level ``info``, a frontend of ai-dynamo 1.6.1 writes five or six lines per request, together 1.5 kB,
and a worker two or three. CloudWatch Logs bills each gigabyte, and the metrics say the same. So the modules
that write these lines log from ``warn`` on. One line of a frontend stays, which names the request, its worker
and its outcome: Dynamo fixes the level of its spans, and this line has it. ``DYN_LOG`` holds levels by module
(https://docs.nvidia.com/dynamo/dev/reference/observability/environment-variables).
"""

from __future__ import annotations

from typing import Final

#: Variable with the levels. A blueprint may set it.
LOG_LEVELS: Final = "DYN_LOG"
#: Modules that write a line per request.
_PER_REQUEST: Final = (
    "dynamo_llm::http::service",
    "dynamo_kv_router::scheduling::selector",
    "dynamo_runtime::pipeline::network::ingress::push_handler",
)
#: Variables of every process of Dynamo for its logs.
LOG_ENVIRONMENT: Final = {LOG_LEVELS: ",".join(("info", *(f"{module}=warn" for module in _PER_REQUEST)))}

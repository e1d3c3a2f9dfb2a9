"""Headers of requests that Dynamo's router reads. The Java client has the same file of names in its jar.

Sources: https://docs.nvidia.com/dynamo/dev/agents/identify-agent-sessions for sessions, and
``lib/llm/src/http/service`` of ai-dynamo 1.6.1 for the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

#: The names. Builds of the Java client copy this file into the jar.
HEADERS_FILE: Final = Path(__file__).with_name("request_headers.json")
_NAMES: Final[dict[str, Any]] = json.loads(HEADERS_FILE.read_text(encoding="utf-8"))

#: The class of the router's queues that requests of batch wait in.
BATCH_CLASS: Final[str] = _NAMES["batch"]["class"]
#: Headers of requests of batch. vLLM's worker takes the negative of the priority
#: (``dynamo/vllm/handlers.py`` of ai-dynamo 1.6.1), and vLLM runs the lowest number first.
BATCH_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {_NAMES["policyClass"]: BATCH_CLASS, _NAMES["priority"]: _NAMES["batch"]["priority"]}
)
#: Keeps the requests of a session on one worker, if the model has ``sessionAffinitySeconds``.
SESSION_HEADER: Final[str] = _NAMES["session"]

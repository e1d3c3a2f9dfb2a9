"""How Dynamo's router treats requests of batch beside interactive ones.

Interactive requests never wait in the router. A request of batch waits until a worker has no prompt to
process: it then delays no first token by more than its own prompt. The router weighs prompts in process much
more than tokens being generated, and a cached prefix less on workers that have more prompts in process, so
interactive requests go to the workers without prompts of batch.

The file is that of ``--router-policy-config`` (``lib/kv-router/src/scheduling`` of ai-dynamo 1.6.1 and its
page "Configuration and Tuning"): a request with a class of its own in ``x-dynamo-meta-policy-class`` waits in
the queue of this class, all others belong to the default family.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.types import FilePath
from inference_contracts.request_headers import BATCH_CLASS

_INTERACTIVE, _ALL = "interactive", "all"
#: Requests of batch that are admitted in a turn of their queue, in tokens. Interactive ones do not queue.
_QUANTUM = 2048
#: The frontend's arguments for choosing among workers.
BESIDE_BATCH: Mapping[str, float] = MappingProxyType(
    {
        # Weight of a prompt that is being processed, against tokens that are being generated. In Dynamo's
        # offline replay (simulated: four workers, one router), first tokens beside batch come earlier up to
        # 16 to 64, where they change no more.
        "router-prefill-load-scale": 32.0,
        # How fast a cached prefix loses its weight on workers with more prompts in process than others. A
        # free worker without the prefix answers sooner than one that has it but first processes a prompt of
        # batch.
        "router-kv-overlap-score-credit-decay": 2.0,
    }
)

_POLICY = {
    "default_policy_family": _INTERACTIVE,
    "uncached_isl_buckets": [{"bucket": _ALL, "min_tokens": 0}],
    "policy_classes": [
        {"name": _INTERACTIVE, "policy_family": _INTERACTIVE, "cache_bucket": _ALL, "quantum": _QUANTUM},
        {"name": BATCH_CLASS, "quantum": _QUANTUM, "prefill_busy_threshold": 0},
    ],
}


def router_policy() -> FilePath:
    """Return the file of the router's classes. JSON is YAML."""
    return FilePath("router-policy.yaml", json.dumps(_POLICY, indent=1) + "\n")

"""Headers between Envoy and the policy process of the front door.

Envoy removes all headers with `PREFIX` from what callers send, fills those of a request with what it reads in
the body, and asks the policy. The policy's answer adds those of a decision, which choose the cluster and are
written to the access log, from which the policy settles the reservation. Envoy removes them before the
request leaves for a model.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "x-door-"
#: What Envoy puts before the path of a request when it asks for a decision (``path_prefix`` of its filter
#: ``ext_authz``), so that no path of a caller is one of the policy's own pages.
DECIDE: Final = "/decide"
#: Name of the cluster of the policy process in Envoy, and the target of requests that the policy answers
#: itself: the list of models.
POLICY_CLUSTER: Final = "door-policy"
#: Paths at which the policy answers over its socket: whether it is ready, and its metrics for Prometheus.
READY_PATH: Final = "/ready"
METRICS_PATH: Final = "/metrics"

# What Envoy reads in a request, for the policy. A field that the body does not have has no header. Numbers
# are whole, below a billion, and written as the caller wrote them.
MODEL: Final = f"{PREFIX}model"
STREAM: Final = f"{PREFIX}stream"
#: Largest number of tokens of one answer, from the fields that engines read at the path. Missing if the body
#: states none; 0 if what it states may bound nothing.
MAX_TOKENS: Final = f"{PREFIX}max-tokens"
#: Answers that a request asks for: the largest of `n`, `best_of` and `n_cmpl`, times the prompts of a
#: completion.
CHOICES: Final = f"{PREFIX}n"
#: Length of the body in bytes, without the contents of images, sounds and films that it has (data URLs).
#: Definitions of tools count four times.
BYTES: Final = f"{PREFIX}bytes"
#: Payload of a JSON Web Token that Envoy has checked, in base64url.
TOKEN: Final = f"{PREFIX}token"
#: What a conversation is known by, of the body: `prompt_cache_key` and `user`. A conversation stays at its
#: target. The session header (`request_headers.SESSION_HEADER`) counts before both.
CACHE_KEY: Final = f"{PREFIX}cache-key"
USER: Final = f"{PREFIX}user"
#: Images, sounds and films of the prompt, by their contents or their addresses. Missing if there are none.
IMAGES: Final = f"{PREFIX}images"
#: Bytes of those contents, which `BYTES` does not count. A model that reads no images may read them as text.
MEDIA_BYTES: Final = f"{PREFIX}media-bytes"
#: ``true`` if only the server knows the length of the prompt: it goes on from a stored response or
#: conversation, has a film or a sound, or says how templates and images are read.
STORED: Final = f"{PREFIX}stored"

#: Address of the caller: that of the connection, or what the load balancer says of it.
ADDRESS: Final = f"{PREFIX}address"

# What the policy decides.
TARGET: Final = f"{PREFIX}target"
#: Name of the model at the target.
SERVED: Final = f"{PREFIX}served"
TEAM: Final = f"{PREFIX}team"
PROJECT: Final = f"{PREFIX}project"
#: Identifier of the API key, which is no secret.
KEY: Final = f"{PREFIX}key"
#: Subject of the caller's token, for the usage record.
CALLER: Final = f"{PREFIX}caller"
#: The public name of the model, also if the request named an alias.
PUBLIC: Final = f"{PREFIX}public"
#: Identifier of the reservation in the ledger.
RESERVATION: Final = f"{PREFIX}reservation"
#: Nano-dollars reserved. Callers see it in the response too.
RESERVED: Final = f"{PREFIX}reserved"
#: Largest number of tokens of one answer that Envoy writes into the body, because the request states none.
#: Callers see it in the response too. Missing if nothing is written.
MAXIMUM: Final = f"{PREFIX}maximum"
PRIORITY: Final = f"{PREFIX}priority"

#: What the budget limits that refuses a request (`door_terms.BudgetScope`), in the answer. A refusal because
#: the model has no room does not have it. Its name is one of those that Envoy passes on (``x-ratelimit-*``).
BUDGET_SCOPE: Final = "x-ratelimit-scope"

#: Name of the project of a request, which callers may send with an API key of a team.
CALLERS_PROJECT: Final = "openai-project"

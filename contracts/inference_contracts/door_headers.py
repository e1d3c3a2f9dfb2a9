"""Headers between Envoy and the policy process of the front door.

Envoy removes all headers with `PREFIX` from what callers send, fills those of a request with what it reads in
the body, and asks the policy. The policy's answer adds those of a decision, which choose the cluster and are
written to the access log, from which the policy settles the reservation. Envoy removes them before the
request leaves for a model.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "x-door-"

# What Envoy reads in a request, for the policy. A field that the body does not have is empty or ``-``.
MODEL: Final = f"{PREFIX}model"
STREAM: Final = f"{PREFIX}stream"
MAX_TOKENS: Final = f"{PREFIX}max-tokens"
MAX_COMPLETION_TOKENS: Final = f"{PREFIX}max-completion-tokens"
MAX_OUTPUT_TOKENS: Final = f"{PREFIX}max-output-tokens"
#: `n` of a request, or the number of its images.
CHOICES: Final = f"{PREFIX}n"
#: Length of the body, in bytes.
BYTES: Final = f"{PREFIX}bytes"
#: Payload of a JSON Web Token that Envoy has checked, in base64url.
TOKEN: Final = f"{PREFIX}token"
#: Images of the prompt, which only vision routes count.
IMAGES: Final = f"{PREFIX}images"

# What the policy decides.
TARGET: Final = f"{PREFIX}target"
#: Name of the model at the target.
SERVED: Final = f"{PREFIX}served"
TEAM: Final = f"{PREFIX}team"
PROJECT: Final = f"{PREFIX}project"
#: Identifier of the API key, which is no secret.
KEY: Final = f"{PREFIX}key"
#: The public name of the model, also if the request named an alias.
PUBLIC: Final = f"{PREFIX}public"
#: Identifier of the reservation in the ledger.
RESERVATION: Final = f"{PREFIX}reservation"
#: Nano-dollars reserved. Callers see it in the response too.
RESERVED: Final = f"{PREFIX}reserved"
PRIORITY: Final = f"{PREFIX}priority"

#: Name of the project of a request, which callers may send with an API key of a team.
CALLERS_PROJECT: Final = "openai-project"

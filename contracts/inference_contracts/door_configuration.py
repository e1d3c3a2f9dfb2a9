"""What the policy of the front door is told: models, prices, teams, budgets and callers.

The plan of a platform writes the document, and the policy process of each replica reads it. Money is in
nano-dollars (a billion of them are one US dollar), so that one token has a whole number as its price.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference_contracts.door_terms import NANO, BudgetScope, Enforcement, StoreLoss
from inference_contracts.json_record import JsonRecord
from inference_contracts.platform_keys import PlatformCaller

__all__ = [
    "NANO",
    "BudgetScope",
    "DoorBudget",
    "DoorConfiguration",
    "DoorIssuer",
    "DoorModel",
    "DoorPrices",
    "DoorTarget",
    "DoorTeam",
    "Enforcement",
    "StoreLoss",
]


@dataclass(frozen=True, slots=True)
class DoorTarget(JsonRecord):
    """A deployment, or all deployments of a model, as one place to send requests to."""

    cluster: str
    """Name of its cluster in Envoy's configuration: the release of the deployment."""
    served_model: str
    """Name of the model there. It replaces the public name in the body."""
    weight: int
    """Share of the conversations, relative to the weights of the model's other targets. With 0, it gets only
    requests for which the others have no room."""
    requests_at_once: int | None
    """Requests that its workers answer at the same time within the objectives. None if it is unknown: then
    the target always counts as free."""
    context_length: int | None = None
    """Largest number of tokens of prompt and answer together that its workers accept. None for that of the
    model."""


@dataclass(frozen=True, slots=True)
class DoorPrices(JsonRecord):
    """What the requests of a model cost, in nano-dollars."""

    input_token: int
    output_token: int
    image: int = 0
    """`input_token`, `output_token`, `image`: Price of a token of the prompt, a token of the answer, and an
    image that was generated."""


@dataclass(frozen=True, slots=True)
class DoorModel(JsonRecord):
    """A model under its public name."""

    name: str
    """Name in requests. It may have dots and slashes."""
    aliases: tuple[str, ...]
    """Further names in requests."""
    targets: tuple[DoorTarget, ...]
    """Where its requests go, at least one, in the order in which they are tried when some have no room."""
    prices: DoorPrices
    teams: tuple[str, ...] | None
    """Teams that may use it. None for all."""
    priority: int
    """Highest priority of its requests, 0 to 100. A request with a lower one is refused first when there is
    no room."""
    context_length: int
    """Largest number of tokens of prompt and answer together that all its targets accept."""
    default_output_tokens: int
    """Largest number of tokens of an answer if a request states none. If it is the context, an answer ends
    where the context does."""
    image_tokens: int = 0
    """Largest number of tokens that one image of a prompt counts as. 0 if prompts have no images."""
    caller: PlatformCaller | None = None
    """Part of the platform that alone may use it, with keys that name it. None for callers from outside."""


@dataclass(frozen=True, slots=True)
class DoorBudget(JsonRecord):
    """A limit of what a team, a project, a key or a model may use."""

    scope: BudgetScope
    name: str
    """`scope`, `name`: What it limits. A project's name begins with its team's and a slash. `*` of a key or a
    project stands for each of them."""
    nano_per_day: int | None = None
    nano_per_month: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """`nano_per_day`, `nano_per_month`, `requests_per_minute`, `tokens_per_minute`: The limits. None for no
    limit. Days and months are those of `DoorConfiguration.time_zone`."""
    enforce: Enforcement = "before"
    requests_at_once: int | None = None
    """Requests that may be in progress at once. None for no limit. It is always counted before a request."""


@dataclass(frozen=True, slots=True)
class DoorTeam(JsonRecord):
    """A team of the platform."""

    name: str
    principals: tuple[str, ...]
    """ARNs of its IAM roles and users, which call with a token of AWS STS."""


@dataclass(frozen=True, slots=True)
class DoorIssuer(JsonRecord):
    """An issuer of JSON Web Tokens. Envoy checks the tokens; the policy reads the team."""

    issuer: str
    audience: str
    """`issuer`, `audience`: Values of the claims ``iss`` and ``aud`` that a token must have."""
    team_claim: str
    """Claim with the name of the team. For tokens of AWS STS it is ``sub``, the ARN of the caller."""
    is_sts: bool = False
    """Whether the issuer is AWS STS: the subject is a principal of a team."""


@dataclass(frozen=True, slots=True)
class DoorConfiguration(JsonRecord):
    """Everything that the policy process needs to know about the platform."""

    platform: str
    """`metadata.name` of the platform."""
    models: tuple[DoorModel, ...]
    teams: tuple[DoorTeam, ...]
    budgets: tuple[DoorBudget, ...]
    issuers: tuple[DoorIssuer, ...]
    api_keys: bool
    """Whether callers may identify themselves with API keys. Parts of the platform always do."""
    time_zone: str = "UTC"
    """Time zone of days and months, such as ``Europe/Berlin``."""
    on_store_loss: StoreLoss = "refuse"
    store_loss_nano: int = 0
    """With ``admit``: the largest cost, in nano-dollars, that all replicas together admit while the store
    does not answer."""
    replicas: int = 2
    """Replicas of the door, which share `store_loss_nano`."""

    @property
    def reads_keys(self) -> bool:
        """Whether anybody calls with a key."""
        return self.api_keys or any(model.caller for model in self.models)

    @property
    def public_models(self) -> tuple[DoorModel, ...]:
        """The models of callers from outside."""
        return tuple(model for model in self.models if model.caller is None)

    @property
    def charged_teams(self) -> tuple[str, ...]:
        """All teams that requests are charged to: those of the platform, and the one of its own parts."""
        internal = (team for model in self.models if model.caller for team in model.teams or ())
        return tuple(dict.fromkeys((*(team.name for team in self.teams), *internal)))

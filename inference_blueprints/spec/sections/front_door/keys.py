"""The front door: one address for all models, with callers, routing, budgets and usage."""

from typing import Any, Literal

from pydantic import Field

from inference_blueprints.spec.section import (
    Choice,
    DoorKey,
    HttpsUrl,
    Name,
    ProjectName,
    PublicName,
    Section,
    TimeZone,
    UtcTime,
    default,
)
from inference_contracts.door_terms import Enforcement, StoreLoss


class ApiKeys(Section):
    """API keys, which `blueprints keys` makes."""

    max_days: int = Field(default=365, ge=1, le=3650)
    """Longest life of a key, in days."""
    rotation_hours: int = Field(default=24, ge=0, le=720)
    """Hours for which the old secret of a rotated key stays valid."""


class StsIssuer(Section):
    """An AWS account whose STS signs tokens."""

    issuer: HttpsUrl
    """Its address, `https://<id>.tokens.sts.global.api.aws`, which differs by account:
    `aws iam get-outbound-web-identity-federation-info` shows it."""
    keys: dict[str, Any] | None = None
    """Its key set (JWKS), for a network that cannot reach the issuer. Without it, the key set is fetched."""


class IamCallers(Section):
    """IAM roles and users of teams, which call with a token of AWS STS (`GetWebIdentityToken`)."""

    accounts: list[StsIssuer] = Field(min_length=1, max_length=20)
    """Accounts of the teams' `principals`."""
    audience: str = Field(default="", max_length=1000)
    """Audience that the tokens must have. Without it, the address of the front door."""


class Issuer(Section):
    """An issuer of JSON Web Tokens (OpenID Connect)."""

    issuer: HttpsUrl
    """Its address, as in the claim `iss`."""
    audience: str = Field(min_length=1, max_length=1000)
    """Value that the claim `aud` must have."""
    team_claim: str = Field(default="team", min_length=1, max_length=200)
    """Claim with the name of the team."""
    keys_url: HttpsUrl | None = None
    """Address of its key set (JWKS), which is fetched every few minutes. Mutually exclusive with `keys`."""
    keys: dict[str, Any] | None = None
    """Its key set (JWKS), for a network that cannot reach the issuer. Mutually exclusive with `keysUrl`."""


class Identity(Section):
    """How callers identify themselves. At least one way."""

    api_keys: ApiKeys | None = None
    """API keys of teams."""
    iam: IamCallers | None = None
    """IAM roles and users: the `principals` of teams."""
    oidc: list[Issuer] = Field(default_factory=list, max_length=10)
    """Issuers of tokens."""


class FrontDoorTarget(Section):
    """A place that answers requests."""

    model: Name
    """Name of the model in this file."""
    deployment: Name | None = None
    """Name of its deployment. Without it, those that answer in real time, by their weights."""
    weight: int = Field(default=100, ge=0, le=1000)
    """Share of the conversations, relative to the other targets. With 0, the target gets only requests for
    which the others have no room."""


class FrontDoorModel(Section):
    """A model under a public name."""

    name: PublicName
    """Name in requests. It may have dots and slashes, such as `openai/gpt-oss-120b`."""
    aliases: list[PublicName] = Field(default_factory=list, max_length=20)
    """Further names in requests."""
    to: list[FrontDoorTarget] = Field(min_length=1, max_length=10)
    """Where its requests go. A conversation stays at one of them."""
    teams: list[Name] | None = Field(default=None, min_length=1, max_length=200)
    """Teams that may use it. Without it, all."""
    priority: int = Field(default=50, ge=0, le=100)
    """Priority of its requests while there is no room for all: the lowest are refused first."""
    default_output_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Largest number of tokens of an answer if the request states none. Without it, the `max` of the
    `outputTokens` of its models, or all that their context leaves if one states none."""


class FrontDoorBudget(Section):
    """A limit of what a team, a project, a key or a model may use. It names exactly one of them."""

    team: Name | None = None
    """Name of a team."""
    project: ProjectName | None = None
    """A project as `team/project`, or each project of a team as `team/*`."""
    key: DoorKey | None = None
    """Identifier of an API key, or `*` for each."""
    model: PublicName | None = None
    """Public name of a model."""
    usd_per_day: float | None = Field(default=None, gt=0.0, le=1_000_000_000.0)
    """US dollars per day."""
    usd_per_month: float | None = Field(default=None, gt=0.0, le=1_000_000_000.0)
    """US dollars per calendar month. For a team, `monthlyBudgetUsd` of the team is this limit."""
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Requests per minute."""
    tokens_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000_000)
    """Tokens of prompts and answers per minute."""
    requests_at_once: int | None = Field(default=None, ge=1, le=1_000_000)
    """Requests in progress at the same time, at all replicas together. It is counted before a request, so not
    with `enforce: after`."""
    enforce: Enforcement = "before"
    """Whether a request is refused if it could pass the limit (`before`), or only once the limit has been
    passed (`after`), which costs less time per request."""


class FrontDoorUsage(Section):
    """Records of usage and of administration."""

    prompts: Literal["never", "onRequest"] = "never"
    """Whether prompts and answers are recorded for keys that ask for it. By default, never."""
    retention_days: int = Field(default=400, ge=1, le=3650)
    """Days for which records are kept."""
    object_lock: Literal["none", "governance", "compliance"] = "none"
    """Object Lock of the record of administration: nobody can delete or change it before `retentionDays`."""


class NamesOfDoor(Section):
    """The host names of the models lead to the door, which asks for a caller there too."""


class NamesOfModels(Section):
    """The host names of the models lead to the models, without callers and budgets, until all are moved."""

    until: UtcTime
    """Time from which on the models refuse these requests, also if nobody deploys then."""


class OldHostNames(Choice):
    """Where the host names lead that each model has without the front door."""

    door: NamesOfDoor | None = None
    """To the door."""
    models: NamesOfModels | None = None
    """To the models, until a time. This is also the way back."""


class FrontDoor(Section):
    """One address for all models: callers, routing, budgets and usage. It requires a certificate."""

    host: Name = "api"
    """First label of its host name in `network.domain`."""
    identity: Identity = default({"apiKeys": {}})
    """How callers identify themselves. Without it, with API keys."""
    models: list[FrontDoorModel] = Field(default_factory=list, max_length=200)
    """Models under public names. Without it, each model of the file under its own name."""
    budgets: list[FrontDoorBudget] = Field(default_factory=list, max_length=1000)
    """Limits besides the monthly budgets of the teams."""
    time_zone: TimeZone = "UTC"
    """Time zone in which days and months of budgets begin."""
    on_store_loss: StoreLoss = "refuse"
    """What happens while the store of the budgets does not answer: requests are refused with 503 (`refuse`),
    or admitted up to `storeLossUsd` (`admit`)."""
    store_loss_usd: float | None = Field(default=None, gt=0.0, le=1_000_000.0)
    """With `onStoreLoss: admit`: the largest cost that is admitted while the store does not answer, in US
    dollars."""
    replicas: int | None = Field(default=None, ge=2, le=1000)
    """Replicas of the door. Without it, what the plan computes from the peaks of the models."""
    usage: FrontDoorUsage = default({})
    """Records of usage. Without it, they are kept for 400 days and hold no prompts."""
    old_host_names: OldHostNames = default({"door": {}})
    """Where the host names that each model has without the front door lead. Without it, to the door."""

"""How API keys are made, rotated and revoked: the same rules for `blueprints keys` and for the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from inference_contracts.door_audit import Act, Actor, AuditLog
from inference_contracts.door_configuration import NANO, DoorBudget, DoorTeam
from inference_contracts.door_key_table import (
    BusyTableError,
    ChangedMeanwhileError,
    KeyTable,
    UnreadableKeyError,
)
from inference_contracts.door_keys import KeyRecord, NewKey, key_hash, new_key
from inference_contracts.json_record import JsonRecord

#: Life of a key if none is stated, in days.
DEFAULT_DAYS: Final = 90
#: Valid keys that a team may have: every replica holds all keys in memory.
MOST_KEYS: Final = 1_000
_LONGEST_NAME: Final = 100
_PROJECT: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DAY_SECONDS: Final = 24 * 3600


class KeyRequestError(Exception):
    """A request to administer keys that is refused. Nothing was changed.

    problems: All reasons: what was got, what is allowed, and what to do.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UnknownKeyError(KeyRequestError):
    """There is no such key, or it belongs to a team that the caller may not administer."""


class KeyConflictError(KeyRequestError):
    """The key has a state, or a change of somebody else, that forbids the act."""


@dataclass(frozen=True, slots=True)
class KeyModel(JsonRecord):
    """A model that keys may name."""

    name: str
    """Its public name."""
    teams: tuple[str, ...] | None
    """Teams that may use it. None for all."""


@dataclass(frozen=True, slots=True)
class KeyRules(JsonRecord):
    """What keys of a platform may be."""

    platform: str
    """`metadata.name`."""
    teams: tuple[DoorTeam, ...]
    models: tuple[KeyModel, ...]
    """`teams`, `models`: All teams and models of the platform."""
    max_days: int
    """Longest life of a key, in days."""
    rotation_hours: int
    """Longest time for which the old secret of a rotated key stays valid, in hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """A key that somebody wants."""

    team: str
    name: str
    """`team`, `name`: Its team, and what people call it."""
    project: str | None = None
    """Project of all its requests. None if callers may name one."""
    models: tuple[str, ...] | None = None
    """Public names of models. None for all of the team."""
    days: int | None = None
    """Its life in days. None for `DEFAULT_DAYS`, or less if the platform allows less."""
    budget: DoorBudget | None = None
    """Its own limits."""


def key_budget(
    *,
    usd_per_day: float | None = None,
    usd_per_month: float | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    requests_at_once: int | None = None,
) -> DoorBudget | None:
    """Return the limits of a key. None if there are none."""
    day, month = (None if usd is None else round(usd * NANO) for usd in (usd_per_day, usd_per_month))
    budget = DoorBudget(
        "key", "", day, month, requests_per_minute, tokens_per_minute, requests_at_once=requests_at_once
    )
    return None if budget == DoorBudget("key", "") else budget


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key that was changed."""

    record: KeyRecord
    secret: str | None = None
    """The new secret. It is stored nowhere."""
    audit_problem: str | None = None
    """Why the end of the act is not in the record of administration. Its beginning is."""


@dataclass(frozen=True, slots=True)
class KeyActs:
    """The acts of somebody who administers keys."""

    table: KeyTable
    audit: AuditLog
    rules: KeyRules
    actor: Actor
    """`table`, `audit`, `rules`, `actor`: Where keys and the record of administration are, what keys may be,
    and who acts."""
    team: str | None = None
    """The only team whose keys the actor may see and change. None for all teams."""

    def list(self, *, team: str | None = None) -> list[KeyRecord]:
        """Return the keys, the newest first, also expired and revoked ones.

        team: Only those of this team.
        Raises KeyRequestError if the table has an item that is no key.
        """
        wanted = [each for each in (self.team, team) if each is not None]
        try:
            found = [each for each in self.table.all() if all(each.team == name for name in wanted)]
        except UnreadableKeyError as error:
            raise KeyRequestError(str(error)) from error
        return sorted(found, key=lambda each: (each.created, each.id), reverse=True)

    def get(self, key_id: str) -> KeyRecord:
        """Return a key.

        key_id: Its identifier.
        Raises UnknownKeyError if there is no such key.
        """
        found = self.table.get(key_id)
        if found is None or self.team not in {None, found.team}:
            raise UnknownKeyError(f"key {key_id[:80]}: there is no such key; the list of keys has them")
        return found

    def create(self, request: KeyRequest, *, now: float) -> KeyChange:
        """Make a key.

        now: Seconds since 1970.
        Raises KeyRequestError with all problems of the request.
        """
        problems = [*request_problems(request, self.rules, only_team=self.team)]
        if not problems:
            problems += self._problems_of_others(request, now)
        if problems:
            raise KeyRequestError(*problems)
        made = new_key()
        days = request.days or min(DEFAULT_DAYS, self.rules.max_days)
        record = KeyRecord(
            id=made.id,
            team=request.team,
            project=request.project,
            hashes=(key_hash(made.secret),),
            old_until=None,
            models=request.models,
            created=int(now),
            created_by=self.actor.arn,
            expires=int(now) + days * _DAY_SECONDS,
            revoked=None,
            change=0,
            name=request.name,
            budget=None if request.budget is None else replace(request.budget, scope="key", name=made.id),
        )
        return self._do("create", None, record, now=now, made=made)

    def rotate(
        self, key_id: str, *, now: float, overlap_hours: int | None = None, again: bool = False
    ) -> KeyChange:
        """Give a key a new secret.

        now: Seconds since 1970.
        overlap_hours: Time for which the old secret stays valid. None for the longest that is allowed.
        again: Whether to replace the newest secret of a key whose old one is still valid, if it was lost.
        Raises KeyRequestError if the key does not exist, or is not valid, or still has an old secret.
        """
        before = self._valid(key_id, now)
        if before.caller is not None:
            raise KeyConflictError(
                f"key {key_id}: belongs to the platform's own programs ({before.name}), whose secret AWS "
                "Secrets Manager rotates; 'aws secretsmanager rotate-secret' does so at once"
            )
        most = self.rules.rotation_hours
        hours = most if overlap_hours is None else overlap_hours
        if not 0 <= hours <= most:
            raise KeyRequestError(
                f"overlap: got {hours} hours, allowed are 0 to {most}; identity.apiKeys.rotationHours of the "
                "blueprint is the most"
            )
        overlaps = before.old_until is not None and now < before.old_until
        if overlaps and not again and hours:
            raise KeyConflictError(
                f"key {key_id}: its old secret is valid until {shown_time(before.old_until)}, and a key has "
                "two secrets at most; wait, end the overlap with 0 hours, or replace its newest secret, if "
                "that was lost, with 'again'"
            )
        made = new_key(key_id)
        kept = before.hashes[:1] if overlaps else before.hashes[-1:]
        until = before.old_until if overlaps and hours else int(now) + hours * 3600
        after = replace(
            before,
            hashes=(*kept, key_hash(made.secret)) if hours else (key_hash(made.secret),),
            old_until=until if hours else None,
        )
        return self._do("rotate", before, after, now=now, made=made)

    def revoke(self, key_id: str, *, now: float) -> KeyChange:
        """End a key for good. A key that is revoked already stays as it is.

        now: Seconds since 1970.
        Raises UnknownKeyError if there is no such key.
        """
        before = self.get(key_id)
        if before.revoked is not None:
            return KeyChange(before)
        if before.caller is not None and self.team is not None:
            raise KeyConflictError(
                f"key {key_id}: belongs to the platform's own programs ({before.name}); only the platform's "
                "owner may revoke it"
            )
        return self._do("revoke", before, replace(before, revoked=int(now)), now=now)

    def _do(
        self, act: Act, before: KeyRecord | None, after: KeyRecord, *, now: float, made: NewKey | None = None
    ) -> KeyChange:
        """Change a key between the two records of the act."""
        change = write_key(self.table, self.audit, self.actor, act, before=before, after=after, now=now)
        return replace(change, secret=None if made is None else made.secret)

    def _valid(self, key_id: str, now: float) -> KeyRecord:
        found = self.get(key_id)
        if found.revoked is not None:
            raise KeyConflictError(
                f"key {key_id}: was revoked at {shown_time(found.revoked)}; create a new one"
            )
        if now >= found.expires:
            raise KeyConflictError(f"key {key_id}: expired at {shown_time(found.expires)}; create a new one")
        return found

    def _problems_of_others(self, request: KeyRequest, now: float) -> Iterator[str]:
        """Yield that the team has too many keys, or one of this name, perhaps of a cut-off command."""
        own = (each for each in self.list(team=request.team) if each.caller is None)
        valid = [each for each in own if each.hashes_at(now)]
        if len(valid) >= MOST_KEYS:
            yield f"team {request.team} has {len(valid)} valid keys, allowed are {MOST_KEYS}; revoke some"
        for each in valid:
            if each.name == request.name:
                yield (
                    f"name: {each.team} has the key {each.id} of this name since {shown_time(each.created)}; "
                    "take another name, rotate that key if its secret was lost, or revoke it"
                )


def write_key(
    table: KeyTable,
    audit: AuditLog,
    actor: Actor,
    act: Act,
    *,
    before: KeyRecord | None,
    after: KeyRecord,
    now: float,
) -> KeyChange:
    """Write the record of a key between the two records of the act.

    Raises KeyConflictError if somebody else has changed it.
    """
    begun = audit.begin(actor, act, before=before, after=after, now=now)
    try:
        written = table.put(after, before=before)
    except ChangedMeanwhileError as error:
        refusal = f"key {after.id}: somebody else changed it just now; nothing was done, repeat it"
        audit.end(begun, after=None, reason=refusal)
        raise KeyConflictError(refusal) from error
    except BusyTableError as error:
        refusal = "too many keys are changed at the same time; nothing was done, repeat it"
        audit.end(begun, after=None, reason=refusal)
        raise KeyConflictError(refusal) from error
    try:
        audit.end(begun, after=written)
    except Exception as error:  # noqa: BLE001 - the key is changed, and its secret must reach the caller
        return KeyChange(written, None, f"{type(error).__name__}: {error}")
    return KeyChange(written)


def request_problems(request: KeyRequest, rules: KeyRules, *, only_team: str | None = None) -> Iterator[str]:
    """Yield what is wrong with a request for a key, as far as the rules tell.

    only_team: The only team that the caller may administer. None for all.
    """
    teams = [each.name for each in rules.teams if only_team in {None, each.name}]
    if request.team not in teams:
        yield f"team: got {_shown(request.team)}, allowed are {', '.join(teams) or 'none'}"
    if not request.name or len(request.name) > _LONGEST_NAME or not request.name.isprintable():
        yield f"name: got {_shown(request.name)}, allowed are 1 to {_LONGEST_NAME} printable characters"
    if request.project is not None and not _PROJECT.fullmatch(request.project):
        yield (
            f"project: got {_shown(request.project)}, allowed are 1 to 64 letters, digits, hyphens and "
            "underscores, a letter or digit first"
        )
    models = [each.name for each in rules.models if each.teams is None or request.team in each.teams]
    if request.models is not None and not request.models:
        yield f"models: got none, allowed are {', '.join(models)}; leave them out for all"
    for model in request.models or ():
        if model not in models:
            yield f"model: got {_shown(model)}, allowed are {', '.join(models)}"
    if request.days is not None and not 1 <= request.days <= rules.max_days:
        yield (
            f"days: got {request.days}, allowed are 1 to {rules.max_days}; "
            "identity.apiKeys.maxDays of the blueprint is the most"
        )
    yield from _budget_problems(request.budget)


def _budget_problems(budget: DoorBudget | None) -> Iterator[str]:
    """Yield which limits refuse every request."""
    if budget is None:
        return
    limits = {
        "dollars per day": budget.nano_per_day,
        "dollars per month": budget.nano_per_month,
        "requests per minute": budget.requests_per_minute,
        "tokens per minute": budget.tokens_per_minute,
        "requests at once": budget.requests_at_once,
    }
    for name, limit in limits.items():
        if limit is not None and limit <= 0:
            yield f"{name}: got a limit of 0 or less, must be more; revoke a key that nobody may use"


def shown_time(seconds: int | None) -> str:
    """Return a time as messages show it.

    seconds: Seconds since 1970. None is shown as a hyphen.
    """
    if seconds is None:
        return "-"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _shown(text: str) -> str:
    """Return a text that somebody sent as one line of a message."""
    return repr(text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…")

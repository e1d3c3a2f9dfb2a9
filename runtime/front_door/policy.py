"""Decides on each request: who asks, for which model, where it goes, and whether the budgets have room."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from front_door.asked_request import AskedRequest, RefusedError, read_request
from front_door.callers import Callers, DoorCaller
from front_door.costs import CostBound, bound_of
from front_door.door_metrics import DoorMetrics
from front_door.given_back import give_back
from front_door.invented_projects import InventedProjects
from front_door.key_snapshot import KeySnapshot
from front_door.known_usage import KnownUsage
from front_door.ledger import AT_ONCE, NOT_RESERVED, Exceeded, Ledger, Reservation
from front_door.ledger_counters import Budgets, LedgerSlot
from front_door.open_requests import EnvoyLink, OpenRequest, OpenRequests, RequestFacts
from front_door.refusals import DoorRefusal
from front_door.reservations import Promise, Signer
from front_door.router import NoRoom, choose_target, models_by_name
from front_door.store import StoreLostError
from front_door.target_load import TargetLoads
from inference_contracts import door_headers
from inference_contracts.door_configuration import NANO, DoorConfiguration, DoorModel
from inference_contracts.request_headers import BATCH_CLASS, BATCH_HEADERS

MODELS_PATH: Final = "/v1/models"
#: Seconds after which a caller asks again while the store does not answer.
_STORE_RETRY_SECONDS: Final = 2
_REQUEST_ID: Final = b"x-request-id"
#: Header and value of requests that step back behind all others.
_CLASS: Final = next(name for name, value in BATCH_HEADERS.items() if value == BATCH_CLASS).lower().encode()
_BATCH: Final = BATCH_CLASS.encode()
_KINDS: Final = {
    1: ("US dollars per day", "insufficient_quota"),
    2: ("US dollars per month", "insufficient_quota"),
    3: ("requests per minute", "rate_limit_exceeded"),
    4: ("tokens per minute", "rate_limit_exceeded"),
    AT_ONCE: ("requests at once", "rate_limit_exceeded"),
}

#: Characters of subjects that stay as they are.
_PLAIN: Final = "/:@|+=,."

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """What follows from one configuration. A new one replaces it as a whole."""

    configuration: DoorConfiguration
    models: Mapping[str, DoorModel]
    budgets: Budgets
    callers: Callers

    @classmethod
    def of(cls, configuration: DoorConfiguration, keys: KeySnapshot) -> Known:
        """Compute it."""
        return cls(
            configuration,
            models_by_name(configuration.models),
            Budgets(configuration),
            Callers(configuration, keys),
        )


class Policy:
    """The decisions of one replica.

    known: What follows from the configuration. It is replaced when that changes.
    """

    def __init__(
        self,
        known: Known,
        *,
        ledger: Ledger,
        signer: Signer,
        loads: TargetLoads,
        usage: KnownUsage,
        opened: OpenRequests,
        keys: KeySnapshot,
        metrics: DoorMetrics,
        replica: str,
    ) -> None:
        self.known = known
        self._ledger, self._signer, self._loads = ledger, signer, loads
        self._usage, self._opened, self._keys = usage, opened, keys
        self._metrics, self._replica = metrics, replica
        self._invented = InventedProjects()

    async def decide(self, path: str, headers: Mapping[bytes, bytes], link: EnvoyLink) -> Headers:
        """Return the headers of an admitted request. Raises RefusedError.

        path: Path of the request, without its query.
        headers: By name in lower case.
        link: The connection over which Envoy asks.
        """
        self._metrics.count("requests")
        try:
            found = await self._decide(path, headers, link)
        except RefusedError as error:
            self._metrics.refused(error.refusal.reason or error.refusal.code)
            self._metrics.answered(error.refusal.status)
            raise
        self._metrics.count("admitted")
        return found

    def visible_models(self, caller: DoorCaller) -> list[DoorModel]:
        """Return the models that a caller may use."""
        return [model for model in self.known.configuration.models if caller.may_use(model)]

    def slots(
        self, team: str, project: str | None, key: str | None, model: str
    ) -> tuple[LedgerSlot, LedgerSlot | None]:
        """Return the counters that a request was charged to."""
        budgets, record = self.known.budgets, self._keys.get(key) if key else None
        caller = budgets.of_caller(team, project, key, record.budget if record else None)
        return caller, budgets.of_model(model)

    def limits(self, key: str) -> bool:
        """Return whether the counter of a key in the store has a limit."""
        record = self._keys.get(key.rpartition(":k:")[2])
        return self.known.budgets.limits(key) or bool(record and record.budget)

    async def _decide(self, path: str, headers: Mapping[bytes, bytes], link: EnvoyLink) -> Headers:
        known = self.known
        caller = known.callers.identify(headers)
        if path == MODELS_PATH or path.startswith(f"{MODELS_PATH}/"):
            return {door_headers.TARGET: door_headers.POLICY_CLUSTER, **_of_caller(caller, caller.project)}
        request = read_request(path, headers)
        model = known.models.get(request.model)
        if model is None or not caller.may_use(model):
            message = (
                f"The model {request.model[:200]!r} does not exist, or this caller may not use it. "
                "GET /v1/models lists what it may use."
            )
            raise RefusedError(DoorRefusal(404, "model_not_found", message, parameter="model"))
        project = _project(caller, request)
        if project and caller.project is None and known.budgets.counts_invented(caller.team, project):
            self._note_invented(caller, project)
        # The requests of a part of the platform are of many, which shall not all have one target.
        own = headers.get(_REQUEST_ID, b"").decode("ascii", "replace") if caller.caller else caller.name
        conversation = request.conversation or own
        is_batch = caller.caller == "batch" or headers.get(_CLASS) == _BATCH
        priority = 0 if is_batch else model.priority
        target = choose_target(model, conversation, priority, self._loads)
        if isinstance(target, NoRoom):
            message = (
                f"The model {model.name!r} has no room for requests of this priority now. Ask again later."
            )
            raise RefusedError(
                DoorRefusal(
                    *(429, "rate_limit_exceeded", message), retry_after=target.retry_after, reason="no_room"
                )
            )
        bound, written = bound_of(request, model, target.context_length)
        windows = self._ledger.windows
        facts = RequestFacts(
            replica=self._replica,
            request=headers.get(_REQUEST_ID, b"").decode("ascii", "replace"),
            team=caller.team,
            project=project,
            key=caller.key,
            model=model.name,
            target=target.cluster,
            bound=bound,
            prices=model.prices,
            day=windows.day,
            month=windows.month,
            started=int(time.time()),
        )
        while (promise := await self._reserve(caller, model, bound, facts, link)) is None:
            windows = self._ledger.windows
            facts = replace(facts, day=windows.day, month=windows.month)
        self._loads.began(target.cluster)
        if not link.is_open:  # the caller has gone: Envoy does not wait any more
            await give_back(
                promise.id, opened=self._opened, ledger=self._ledger, loads=self._loads, usage=self._usage
            )
        return {
            door_headers.TARGET: target.cluster,
            door_headers.SERVED: target.served_model,
            door_headers.PUBLIC: model.name,
            door_headers.RESERVATION: self._signer.write(promise),
            door_headers.RESERVED: str(promise.nano),
            door_headers.PRIORITY: str(priority),
            **_of_caller(caller, project),
            **({door_headers.MAXIMUM: str(written)} if written else {}),
            **({door_headers.USER: request.user} if request.user else {}),
        }

    def _note_invented(self, caller: DoorCaller, project: str) -> None:
        most = self._invented.most(caller.team, caller.name, project, self._ledger.windows.day)
        if most is not None:
            message = (
                f"The project {project!r} is new today, and this caller or its team has begun {most} today, "
                "which is the most. Name one of these, or ask the platform's owner for a budget of this "
                "project, or for a key that belongs to it."
            )
            raise RefusedError(DoorRefusal(403, "too_many_projects", message))

    async def _reserve(
        self,
        caller: DoorCaller,
        model: DoorModel,
        bound: CostBound,
        facts: RequestFacts,
        link: EnvoyLink,
    ) -> Promise | None:
        """Reserve in the counters of the caller and in that of the model, or in none.

        Return None, with nothing reserved, if a day has begun since the facts were written.
        """
        budgets = self.known.budgets
        caller_slot = budgets.of_caller(caller.team, facts.project, caller.key, caller.budget)
        model_slot = budgets.of_model(model.name)
        nano, identifier = bound.nano(model.prices), os.urandom(8).hex()
        windows = self._ledger.windows
        for slot in (caller_slot, model_slot):
            if slot and (passed := self._usage.passed(slot, windows, time.time())):
                raise RefusedError(_exceeded(passed))
        asked = [slot for slot in (caller_slot, model_slot) if slot and slot.reserves]
        value = f"{nano} {bound.tokens} {facts.as_text()}" if asked else ""
        found: dict[str, Reservation] = {}
        lost = None
        if asked:
            found, lost = await self._promises(asked, identifier, nano, bound.tokens, value)
        if lost:
            self._metrics.count("store_lost")
            self._ledger.doubtful.extend((slot, identifier) for slot in asked if slot.tag in found)
            self._admit_without_store(nano, lost)
            found, asked = {}, []
        elif any(each.day != facts.day for each in found.values()):
            await self._return(asked, identifier, found)
            return None
        self._opened.add(
            identifier,
            OpenRequest(facts, nano, value, tuple(asked), link, lost is not None, time.monotonic()),
        )
        none = Reservation(NOT_RESERVED, facts.day, facts.month, 0)
        return Promise(
            identifier,
            found.get(caller_slot.tag, none),
            found.get(model_slot.tag, none) if model_slot else none,
            *(nano, bound.input_tokens, bound.output_tokens, bound.images),
            model.prices,
        )

    async def _promises(
        self, asked: Sequence[LedgerSlot], identifier: str, nano: int, tokens: int, value: str
    ) -> tuple[dict[str, Reservation], StoreLostError | None]:
        """Ask all slots in one write. Return what they promise, by their tags, and why one has not answered.

        Raises RefusedError, with nothing reserved, if one refuses.
        """
        found: dict[str, Reservation] = {}
        passed = lost = None
        questions = [self._answer(slot, identifier, nano, tokens, value) for slot in asked]
        answers = [await questions[0]] if len(asked) == 1 else await asyncio.gather(*questions)
        for slot, answer in zip(asked, answers, strict=True):
            if isinstance(answer, Reservation):
                found[slot.tag] = answer
            elif isinstance(answer, Exceeded):
                passed = passed or answer
            else:
                lost = answer
        if passed:
            await self._return(asked, identifier, found)
            raise RefusedError(_exceeded(passed))
        return found, lost

    async def _answer(
        self, slot: LedgerSlot, identifier: str, nano: int, tokens: int, value: str
    ) -> Reservation | Exceeded | StoreLostError:
        try:
            return await self._ledger.reserve(slot, identifier, nano, tokens, value)
        except StoreLostError as error:
            return error

    async def _return(
        self, asked: Sequence[LedgerSlot], identifier: str, found: Mapping[str, Reservation]
    ) -> None:
        """Give back what slots have promised of a request that is not admitted."""
        for slot in asked:
            if slot.tag in found:
                try:
                    await self._ledger.settle(slot, identifier, 0, 0, found[slot.tag])
                except StoreLostError:
                    self._ledger.doubtful.append((slot, identifier))

    def _admit_without_store(self, nano: int, error: StoreLostError) -> None:
        """Admit a request up to this replica's share of what may be spent and not be charged yet."""
        configuration = self.known.configuration
        share = configuration.store_loss_nano // max(1, configuration.replicas)
        if configuration.on_store_loss == "refuse" or self._opened.unchecked_nano + nano > share:
            message = "Budgets cannot be checked now. Ask again in some seconds."
            refusal = DoorRefusal(503, "budgets_unavailable", message, retry_after=_STORE_RETRY_SECONDS)
            raise RefusedError(refusal) from error
        self._metrics.count("admitted_without_store")


def _project(caller: DoorCaller, request: AskedRequest) -> str | None:
    """Return the project that is charged: the key's own, or the one that the caller names."""
    if caller.project is None:
        return request.project
    if request.project not in (None, caller.project):
        message = (
            f"The key belongs to the project {caller.project!r}. Leave out the header, or name that one."
        )
        raise RefusedError(DoorRefusal(403, "other_project", message))
    return caller.project


def _of_caller(caller: DoorCaller, project: str | None) -> Headers:
    found = {
        door_headers.TEAM: caller.team,
        door_headers.PROJECT: project,
        door_headers.KEY: caller.key,
        # A subject may have any characters, and a header may not.
        door_headers.CALLER: caller.subject and quote(caller.subject, safe=_PLAIN),
    }
    return {name: value for name, value in found.items() if value is not None}


def _exceeded(passed: Exceeded) -> DoorRefusal:
    unit, code = _KINDS[passed.kind]
    is_money = passed.kind <= 2  # noqa: PLR2004 -- the first two are days and months
    limit, used = (
        f"{number / NANO:.6f}".rstrip("0").rstrip(".") if is_money else str(number)
        for number in (passed.limit, passed.used)
    )
    advice = (
        "Ask for fewer tokens ('max_tokens'), or ask the platform's owner to raise it."
        if is_money
        else "Ask again after it, or ask for fewer tokens ('max_tokens')."
    )
    if passed.kind == AT_ONCE:
        message = (
            f"Requests in progress of the {passed.counter.scope} {passed.counter.name!r}: {used}, and at "
            f"most {limit} at once. Ask again when one of them has ended."
        )
        return DoorRefusal(429, code, message, retry_after=passed.resets_in, reason="requests_at_once")
    message = (
        f"The budget of the {passed.counter.scope} {passed.counter.name!r} is {limit} {unit}; {used} are "
        f"used or reserved, and this request could pass it. It begins anew in {passed.resets_in} s. {advice}"
    )
    return DoorRefusal(429, code, message, retry_after=passed.resets_in, scope=passed.counter.scope)

"""The table of an account's platforms: to which file each belongs, and which operation changes it now.

There is one DynamoDB table per account and region. It is needed before a platform's first stack exists and
after its last one is gone, so no stack owns it: `bootstrap` creates it, or the first command that needs it.
DynamoDB checks a condition and makes its change in one step (Amazon DynamoDB Developer Guide, "DynamoDB
condition expression CLI example"), so two operators never both begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.operate.aws.account import Account, describe_error
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

TABLE = "inference-blueprints-platforms"
_KEY = "platform"
#: An operation renews its entry every 15 seconds. One call must not take longer than that.
_LIMITS = Config(connect_timeout=3, read_timeout=4, retries={"mode": "standard", "total_max_attempts": 2})
_NAMES = {"#identity": "identity", "#operation": "operation", "#beat": "beat"}
_OWNER_NAMES = {"#file": "file", "#operator": "operator", "#since": "since"}


@dataclass(frozen=True, slots=True)
class RunningOperation:
    """An operation that changes a platform, as its operator wrote it."""

    command: str
    """Such as ``deploy``."""
    operator: str
    """ARN of the caller, and the name of the machine."""
    since: str
    """When it began, by the operator's clock."""
    beat: str
    """Random text that the operator changes for as long as the operation runs."""


@dataclass(frozen=True, slots=True)
class PlatformOwner:
    """The file to which a platform belongs."""

    identity: str
    """Identity of the blueprint, from its lock."""
    file: str
    """Name of the blueprint's file, without its folder, for messages."""
    operator: str
    """Who deployed it first, or took it over."""
    since: str
    """When, by the operator's clock."""


@dataclass(frozen=True, slots=True)
class PlatformRecord:
    """The entry of a platform."""

    owner: PlatformOwner | None = None
    """None for a platform that no release with this table has deployed yet."""
    operation: RunningOperation | None = None
    """None if no operation runs."""


class ConditionFailedError(Exception):
    """The entry is not as the caller expects it."""


class PlatformTable:
    """The table in one account and region."""

    def __init__(self, account: Account) -> None:
        self._client = account.patient_client("dynamodb", _LIMITS)
        self._where = f"{TABLE} in account {account.number}, {account.region}"

    def ensure(self) -> bool:
        """Create the table if the account does not have it; return whether it was created.

        Raises UserError if AWS refuses it.
        """
        try:
            self._client.create_table(
                TableName=TABLE,
                KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
                DeletionProtectionEnabled=True,
            )
            created = True
        except ClientError as error:
            # DynamoDB API Reference, CreateTable: a table of this name exists, or is being created.
            if _code(error) != "ResourceInUseException":
                raise self._refused(error) from error
            created = False
        try:
            self._client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 2})
        except (ClientError, BotoCoreError) as error:
            raise self._refused(error) from error
        return created

    def read(self, platform: str) -> PlatformRecord:
        """Return the entry of a platform; an empty one if it has none. Raises UserError if AWS refuses it."""
        try:
            answer = self._client.get_item(TableName=TABLE, Key=_key(platform), ConsistentRead=True)
        except ClientError as error:
            if _code(error) == "ResourceNotFoundException":
                return PlatformRecord()
            raise self._refused(error) from error
        except BotoCoreError as error:
            raise self._refused(error) from error
        item = answer.get("Item", {})
        owner = PlatformOwner(**_texts(item, PlatformOwner)) if "identity" in item else None
        if "operation" not in item:
            return PlatformRecord(owner)
        return PlatformRecord(owner, RunningOperation(**_texts(item["operation"]["M"], RunningOperation)))

    def begin(
        self,
        platform: str,
        operation: RunningOperation,
        *,
        identity: str | None,
        owner: PlatformOwner | None = None,
        takes_over: bool = False,
        dead_beat: str | None = None,
    ) -> None:
        """Note an operation, if the platform has no owner or this one, and if no other operation runs.

        identity: Identity of the operator's file; None if it has none.
        owner: Becomes the owner of a platform that has none. None leaves it without.
        takes_over: Whether `owner` becomes the owner whoever it was before.
        dead_beat: Beat of an operation that no longer runs, which this one replaces.
        Raises ConditionFailedError if the platform belongs to another file, or another operation runs. Raises
            UserError if AWS refuses it.
        """
        values: dict[str, Any] = {":operation": {"M": _strings(asdict(operation))}}
        free = "attribute_not_exists(#operation)"
        if dead_beat is not None:
            values[":dead"] = {"S": dead_beat}
            free = f"({free} OR #operation.#beat = :dead)"
        changes = ["#operation = :operation"]
        names = dict(_NAMES)
        conditions = [free]
        if not takes_over:
            same = "attribute_not_exists(#identity)"
            if identity is not None:
                values[":identity"] = {"S": identity}
                same = f"({same} OR #identity = :identity)"
            conditions.append(same)
        if owner is not None:
            names |= _OWNER_NAMES
            values |= {f":{key}": text for key, text in _strings(asdict(owner)).items()}
            changes += ["#identity = :identity", "#file = :file"]
            changes += [
                f"#{key} = :{key}" if takes_over else f"#{key} = if_not_exists(#{key}, :{key})"
                for key in ("operator", "since")
            ]
        used = " ".join([*changes, *conditions])
        self._change(
            platform,
            operation.beat,
            UpdateExpression=f"SET {', '.join(changes)}",
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeNames={key: name for key, name in names.items() if key in used},
            ExpressionAttributeValues=values,
        )

    def renew(self, platform: str, beat: str, following: str) -> None:
        """Change the beat of a running operation, which shows that it still runs.

        Raises ConditionFailedError if this operation is no longer the one that runs. Raises UserError if AWS
        refuses it.
        """
        self._change(
            platform,
            following,
            UpdateExpression="SET #operation.#beat = :following",
            ConditionExpression="#operation.#beat = :beat",
            ExpressionAttributeNames={"#operation": "operation", "#beat": "beat"},
            ExpressionAttributeValues={":beat": {"S": beat}, ":following": {"S": following}},
        )

    def end(self, platform: str, beat: str, *, forget: bool) -> None:
        """Remove the note of an operation; do nothing if another one has replaced it.

        forget: Whether the entry is deleted, with the owner.
        Raises UserError if AWS refuses it.
        """
        condition = {
            "ConditionExpression": "#operation.#beat = :beat",
            "ExpressionAttributeNames": {"#operation": "operation", "#beat": "beat"},
            "ExpressionAttributeValues": {":beat": {"S": beat}},
        }
        try:
            if forget:
                self._write("delete_item", Key=_key(platform), **condition)
            else:
                self._write(
                    "update_item", Key=_key(platform), UpdateExpression="REMOVE #operation", **condition
                )
        except ConditionFailedError:
            return

    def _change(self, platform: str, beat: str, **parameters: Any) -> None:
        """Make a conditional change after which the operation has this beat.

        An answer can be lost, and the client then sends the change again. The condition does not hold for the
        second one, but the beat shows that the first one was made.
        """
        try:
            self._write("update_item", Key=_key(platform), **parameters)
        except ConditionFailedError:
            running = self.read(platform).operation
            if running is None or running.beat != beat:
                raise

    def _write(self, operation: str, **parameters: Any) -> None:
        """Change an entry, and create the table if it is missing."""
        call = getattr(self._client, operation)
        try:
            try:
                call(TableName=TABLE, **parameters)
            except ClientError as error:
                if _code(error) != "ResourceNotFoundException":
                    raise
                self.ensure()
                call(TableName=TABLE, **parameters)
        except ClientError as error:
            if _code(error) == "ConditionalCheckFailedException":
                raise ConditionFailedError from error
            raise self._refused(error) from error
        except BotoCoreError as error:
            raise self._refused(error) from error

    def _refused(self, error: ClientError | BotoCoreError) -> UserError:
        """Return the error for a call that AWS refused."""
        return UserError(
            f"the table {self._where} says to which file a platform belongs, and it cannot be used: "
            f"{describe_error(error)}; run `blueprints bootstrap` once, which creates it, and add "
            f"the permissions "
            "in docs/life-cycle.md, 'Who owns a platform', to the role that deploys"
        )


def _key(platform: str) -> dict[str, Any]:
    return {_KEY: {"S": platform}}


def _strings(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return DynamoDB's form of texts."""
    return {key: {"S": text} for key, text in texts.items()}


def _texts(item: Mapping[str, Any], form: type[PlatformOwner | RunningOperation]) -> dict[str, str]:
    """Return the texts of a class's fields from DynamoDB's form."""
    return {field.name: item[field.name]["S"] for field in fields(form)}


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])

"""What an error of S3 means for the object that was asked for.

The table has the codes that reading or writing one object can answer with. Sources: Amazon S3 API Reference,
"Error responses", lists of error codes, of which botocore's model of S3 has most (`Error`, ``Code``); AWS KMS
API Reference, `Decrypt` and `GenerateDataKey`, whose errors S3 passes on with the prefix ``KMS.``
(localstack/localstack#8422 and aws/aws-cli#4507 show three of them); and the codes that botocore itself
repeats (`botocore.retries.standard`). A HEAD request has no body, so its code is the HTTP status.

An unknown code is judged by its status: 5xx and 429 may pass, 403 is a denial, and every other one concerns
the object.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from urllib3.exceptions import HTTPError

#: Errors with which reading or writing an object ends: answers of S3, failures before an answer, and a body
#: that breaks off.
S3_FAILURES: Final = (ClientError, BotoCoreError, HTTPError, OSError)
_SHOWN_CHARACTERS: Final = 500


class S3Meaning(enum.Enum):
    """What an error says about the object."""

    #: Reading it again ends the same way, until somebody changes the object, its key or the request.
    FAULT = "fault"
    #: A policy denies it. A policy or a role that has just changed takes effect everywhere within minutes
    #: (IAM User Guide, "Changes that I make are not always immediately visible").
    DENIED = "denied"
    #: S3 or KMS cannot answer now, or the credentials are being renewed.
    LATER = "later"


_MISSING: Final = "does not exist; write the object first, then submit again"
_ARCHIVED: Final = "is archived; restore it (S3 RestoreObject), or copy it to another storage class"
_NO_ADDRESS: Final = "is not an address in S3; correct it"
_REGION: Final = "is in a bucket of another region; copy it into a bucket of the platform's region"
_ACCOUNT: Final = "is in a bucket whose account S3 does not serve; ask the owner of the bucket"
_KEY: Final = (
    "has a KMS key that cannot be used; cancel the key's deletion, or store the object with another key"
)

#: What is wrong with an object and what to do, by code. The address stands before it.
_FAULTS: Final[Mapping[str, str]] = {
    "NoSuchKey": _MISSING,
    "404": _MISSING,
    "NoSuchVersion": _MISSING,
    "NoSuchBucket": "is in a bucket that does not exist; correct the address",
    "InvalidObjectState": _ARCHIVED,
    "ObjectNotInActiveTierError": _ARCHIVED,
    "KeyTooLongError": "has a key that is too long; a key may have 1,024 bytes",
    "InvalidURI": _NO_ADDRESS,
    "InvalidBucketName": _NO_ADDRESS,
    "InvalidRange": "became shorter while it was read; submit again",
    "PermanentRedirect": _REGION,
    "301": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "AllAccessDisabled": _ACCOUNT,
    "AccountProblem": _ACCOUNT,
    "InvalidPayer": _ACCOUNT,
    "KMS.DisabledException": "has a KMS key that is disabled; enable the key",
    "KMS.NotFoundException": "has a KMS key that does not exist; store the object with another key",
    "KMS.KMSInvalidStateException": _KEY,
    "KMS.InvalidStateException": _KEY,
    "KMS.InvalidKeyUsageException": _KEY,
}
#: What S3 says of an object that was stored with a key of its owner. The code is that of other errors too.
_OWN_KEY_SAID: Final = "a form of Server Side Encryption"
_OWN_KEY: Final = "cannot be read without the key of its owner (SSE-C); store it with SSE-S3 or SSE-KMS"
_DENIALS: Final = frozenset({"AccessDenied", "403", "KMS.AccessDeniedException"})
_PASSING: Final = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "Busy", "OperationAborted"),
        *("RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete", "IncompleteBody"),
        *("TemporaryRedirect", "Redirect", "307", "ConditionalRequestConflict", "BandwidthLimitExceeded"),
        # What arrived is not what was sent.
        *("BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"),
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"),
        *("RequestThrottledException", "RequestLimitExceeded", "TooManyRequestsException"),
        # Of the platform's own credentials and clock: the SDK gets new ones.
        *("ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"),
        *("SignatureDoesNotMatch", "RequestTimeTooSkewed", "NotSignedUp", "InvalidSecurity"),
        *("KMS.ThrottlingException", "KMS.KMSInternalException", "KMS.InternalFailureException"),
        *("KMS.DependencyTimeoutException", "KMS.KeyUnavailableException", "KMS.LimitExceededException"),
    }
)


def code_of(error: ClientError) -> str:
    """Return the code of an answer of AWS."""
    return str(error.response["Error"]["Code"])


def meaning_of(error: BaseException) -> S3Meaning:
    """Return what an error of `S3_FAILURES` says about its object. A lost connection may pass."""
    if isinstance(error, ParamValidationError):
        return S3Meaning.FAULT
    if not isinstance(error, ClientError):
        return S3Meaning.LATER
    code = code_of(error)
    if code in _FAULTS:
        return S3Meaning.FAULT
    if code in _DENIALS:
        return S3Meaning.DENIED
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if (
        code in _PASSING
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or status == HTTPStatus.TOO_MANY_REQUESTS
    ):
        return S3Meaning.LATER
    return S3Meaning.DENIED if status == HTTPStatus.FORBIDDEN else S3Meaning.FAULT


def explanation(address: str, error: BaseException) -> str:
    """Return an object's address, what is wrong with it by S3's answer, and what to do.

    address: ``s3://bucket/key``.
    """
    if isinstance(error, ParamValidationError):
        return f"{address} {_NO_ADDRESS}"
    if not isinstance(error, ClientError):
        return f"{address} could not be read to its end ({type(error).__name__}); submit again"
    code = code_of(error)
    if code in _FAULTS:
        return f"{address} {_FAULTS[code]} ({code})"
    said = str(error.response["Error"].get("Message", ""))[:_SHOWN_CHARACTERS]
    if code == "InvalidRequest" and _OWN_KEY_SAID in said:
        return f"{address} {_OWN_KEY} ({code})"
    answer = f"{code}: {said}" if said else code
    if meaning_of(error) is S3Meaning.DENIED:
        # S3 answers 403 instead of 404 to a caller that may not list the bucket (Amazon S3 API Reference,
        # GetObject and HeadObject, Permissions).
        return (
            f"{address} may not be read by the platform ({answer}). Allow its batch roles s3:GetObject in "
            "the policy of the bucket, and kms:Decrypt in that of the object's key. If they may not list "
            "the bucket (s3:ListBucket), S3 gives the same answer for an object that does not exist"
        )
    advice = "submit again later" if meaning_of(error) is S3Meaning.LATER else "correct the object"
    return f"{address} could not be read ({answer}); {advice}"


# Failures of AWS that the state machine repeats for longer than other errors of a function.
#
# Step Functions knows an error of a function by the name of its class
# (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).

P = ParamSpec("P")
R = TypeVar("R")


class AwsBusyError(Exception):
    """AWS could not answer now. The call is repeated until the job's deadline."""


class AwsDeniedError(Exception):
    """AWS denies one of the platform's own roles, perhaps only until a deployment has ended.

    The call is repeated for a quarter of an hour.
    """


def repeatable(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function of the state machine tell failures that may pass from its other errors."""

    @functools.wraps(function)
    def call(*words: P.args, **options: P.kwargs) -> R:
        try:
            return function(*words, **options)
        except (BotoCoreError, ClientError) as error:
            meaning = _meaning_for_the_platform(error)
            if meaning is S3Meaning.FAULT:
                raise
            kind = AwsDeniedError if meaning is S3Meaning.DENIED else AwsBusyError
            raise kind(f"{type(error).__name__}: {error}") from error

    return call


#: Denials of services other than S3, most of which have status 400. DynamoDB also answers so if it may not
#: use the table's key (aws/aws-cdk#10010).
_OTHER_DENIALS: Final = frozenset({"AccessDeniedException", "AccessDenied", "UnauthorizedOperation"})
#: Errors of DynamoDB that pass, with status 400: a table on demand throttles too, for example above twice its
#: former peak (Amazon DynamoDB Developer Guide, "Error handling with DynamoDB", and "On-demand capacity
#: mode").
_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "TransactionConflictException",
    }
)
#: Reasons of a cancelled transaction that pass (Amazon DynamoDB API Reference, TransactWriteItems).
_THROTTLED_ITEMS: Final = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)


def _meaning_for_the_platform(error: BotoCoreError | ClientError) -> S3Meaning:
    """Return what an error says that is about the platform's own bucket and tables."""
    meaning = meaning_of(error)
    if not isinstance(error, ClientError):
        return meaning
    code = code_of(error).rpartition("#")[2]
    reasons = {each.get("Code") for each in error.response.get("CancellationReasons", [])}
    if code in _THROTTLED or reasons & _THROTTLED_ITEMS:
        return S3Meaning.LATER
    # A key of the platform that is disabled can be enabled again, and its objects are as they were.
    is_own_key = meaning is S3Meaning.FAULT and code.startswith("KMS.")
    return S3Meaning.DENIED if code in _OTHER_DENIALS or is_own_key else meaning

"""Each error of S3 means something: the object's fault, a denial, or that S3 cannot answer now."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ParamValidationError
from botocore.retries import standard
from urllib3.exceptions import IncompleteRead

from batch import s3_errors
from batch.s3_errors import AwsBusyError, AwsDeniedError, S3Meaning, explanation, meaning_of, repeatable
from inference_contracts.batch_names import BUSY_ERROR, DENIED_ERROR


def answer(code: str, status: int, said: str = "m") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": said}, "ResponseMetadata": {"HTTPStatusCode": status}},
        "GetObject",
    )


def cancelled(*reasons: str) -> ClientError:
    """Return DynamoDB's answer to a transaction, with the reason of each item."""
    return ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "m"},
            "ResponseMetadata": {"HTTPStatusCode": 400},
            "CancellationReasons": [{"Code": each} for each in reasons],
        },
        "TransactWriteItems",
    )


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (answer("InvalidObjectState", 403), S3Meaning.FAULT),
        (answer("SomethingNew", 400), S3Meaning.FAULT),
        (answer("SomethingNew", 403), S3Meaning.DENIED),
        (answer("SomethingNew", 500), S3Meaning.LATER),
        (answer("SomethingNew", 429), S3Meaning.LATER),
        (answer("ExpiredToken", 400), S3Meaning.LATER),
        (answer("KMS.InvalidCiphertextException", 400), S3Meaning.FAULT),
        # S3 API Reference, "Error responses": not of the object, whatever the status says.
        (answer("BadDigest", 400), S3Meaning.LATER),
        (answer("Redirect", 307), S3Meaning.LATER),
        (answer("InvalidSecurity", 403), S3Meaning.LATER),
        (answer("InvalidPayer", 403), S3Meaning.FAULT),
        (ParamValidationError(report="Invalid bucket name"), S3Meaning.FAULT),
        (ConnectTimeoutError(endpoint_url="https://s3"), S3Meaning.LATER),
        (IncompleteRead(1, 2), S3Meaning.LATER),
    ],
)
def test_an_error_means_one_thing(error: Exception, meaning: S3Meaning) -> None:
    assert meaning_of(error) is meaning
    assert explanation("s3://b/k", error).startswith("s3://b/k ")


def test_an_invalid_request_says_what_s3_says() -> None:
    """Red if each code `InvalidRequest` is taken for an object with a key of its owner (SSE-C)."""
    said = "The object was stored using a form of Server Side Encryption. The correct parameters must be ..."
    assert "SSE-C" in explanation("s3://b/k", answer("InvalidRequest", 400, said))
    assert "Missing required header" in explanation(
        "s3://b/k", answer("InvalidRequest", 400, "Missing required header")
    )


def test_what_botocore_repeats_is_no_fault_of_an_object() -> None:
    """Red if an object is blamed for an error that botocore itself takes for a passing one."""
    transient = standard.TransientRetryableChecker._TRANSIENT_ERROR_CODES
    throttled = standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES
    of_other_services = {
        *("ProvisionedThroughputExceededException", "TransactionInProgressException"),
        *("LimitExceededException", "EC2ThrottledException"),
    }
    for code in {*transient, *throttled} - of_other_services:
        assert meaning_of(answer(code, 400)) is S3Meaning.LATER, code
    tables = (set(s3_errors._FAULTS), s3_errors._DENIALS, s3_errors._PASSING)
    assert sum(map(len, tables)) == len(set().union(*tables)), "a code stands in two tables"


def test_the_state_machine_knows_the_failures_by_their_names() -> None:
    """Red if a class has another name than the state machine's retries."""
    assert (AwsBusyError.__name__, AwsDeniedError.__name__) == (BUSY_ERROR, DENIED_ERROR)

    @repeatable
    def act(error: Exception) -> None:
        raise error

    for error, kind in (
        (answer("SlowDown", 503), AwsBusyError),
        (answer("AccessDenied", 403), AwsDeniedError),
        (answer("AccessDeniedException", 400), AwsDeniedError),
        # The platform's own key is denied (aws/aws-cdk#10010) or disabled (localstack/localstack#8422).
        (answer("com.amazon.coral.service#AccessDeniedException", 400), AwsDeniedError),
        (answer("KMS.DisabledException", 400), AwsDeniedError),
        (answer("KMS.KMSInvalidStateException", 400), AwsDeniedError),
        # Also a table on demand throttles.
        (answer("ProvisionedThroughputExceededException", 400), AwsBusyError),
        (answer("ThrottlingException", 400), AwsBusyError),
        (answer("RequestLimitExceeded", 400), AwsBusyError),
        (cancelled("None", "ThrottlingError"), AwsBusyError),
        (cancelled("ConditionalCheckFailed", "None"), ClientError),
        (answer("NoSuchKey", 404), ClientError),
    ):
        with pytest.raises(kind):
            act(error)

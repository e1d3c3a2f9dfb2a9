"""A program has the newest keys of its secret, and reads it no more often than it must."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts.platform_key_reader import LEAST_SECONDS, KeysNotReadyError, PlatformKeys
from inference_contracts.platform_keys import LOOK_SECONDS, write_keys


class Secret:
    """A secret, and the clock of who reads it."""

    def __init__(self, text: str | None) -> None:
        self.text, self.reads, self.now = text, 0, 100.0

    def get_secret_value(self, **values: Any) -> Any:
        assert values == {"SecretId": "arn"}
        self.reads += 1
        if self.text is None:
            raise ConnectionError("no route")
        return {"SecretString": self.text}

    def keys(self) -> PlatformKeys:
        return PlatformKeys(self, "arn", lambda: self.now)


def test_a_key_is_read_once_in_ten_minutes() -> None:
    secret = Secret(write_keys({"red": "one", "blue": "two"}))
    keys = secret.keys()
    assert (keys.key("red"), keys.key("blue"), secret.reads) == ("one", "two", 1)
    secret.text = write_keys({"red": "new"})
    secret.now += LOOK_SECONDS - 1
    assert (keys.key("red"), secret.reads) == ("one", 1)
    secret.now += 1
    assert (keys.key("red"), secret.reads) == ("new", 2)


@pytest.mark.parametrize("text", ["fR9!random password", "{}", "[]", '{"red": 5}', None])
def test_before_the_first_rotation_a_program_waits(text: str | None) -> None:
    """Red if the random value of a new secret is sent as a key, or if a program ends instead of waiting."""
    secret = Secret(text)
    keys = secret.keys()
    for _ in range(3):
        with pytest.raises(KeysNotReadyError, match=r"secret arn: got no key for team 'red'.*rotate-secret"):
            keys.key("red")
    assert secret.reads == 1
    secret.text = write_keys({"red": "one"})
    secret.now += LEAST_SECONDS
    assert keys.key("red") == "one"


def test_a_refused_key_is_replaced_at_once_and_never_in_a_loop() -> None:
    """Red if a revoked key is sent for ten minutes, or if each refusal reads the secret."""
    secret = Secret(write_keys({"red": "one"}))
    keys = secret.keys()
    keys.key("red")
    secret.now += LEAST_SECONDS
    assert [keys.refused("one") for _ in range(4)] == [False] * 4
    assert secret.reads == 2
    secret.text = write_keys({"red": "new"})
    secret.now += LEAST_SECONDS
    assert keys.refused("one")
    assert (keys.key("red"), secret.reads) == ("new", 3)
    # An answer to a request that was sent before.
    secret.now += LEAST_SECONDS
    assert keys.refused("one")
    assert secret.reads == 3


def test_keys_stay_while_the_secret_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """Red if a short outage of Secrets Manager stops a program whose keys are valid."""
    secret = Secret(write_keys({"red": "one"}))
    keys = secret.keys()
    keys.key("red")
    for text in (None, "no JSON"):
        secret.text = text
        secret.now += LOOK_SECONDS
        assert keys.key("red") == "one"
    assert "no route" in caplog.text

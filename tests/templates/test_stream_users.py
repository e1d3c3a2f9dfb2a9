"""Each streaming job writes signals as a user of its own, who may write no other signal."""

from __future__ import annotations

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.streaming_users import user_of
from tests.templates.support import Templates
from tests.templates.test_streaming_stack import streaming


@pytest.fixture(scope="module")
def two_jobs(synthesise: Synthesise) -> Templates:
    return synthesise(streaming)


def test_the_user_of_a_job_writes_its_signal_only(two_jobs: Templates) -> None:
    cache = two_jobs.only("AWS::ElastiCache::ServerlessCache", "Stores")["ServerlessCacheName"]
    names = {user_of(two_jobs, signal) for signal in ("shopper-intent", "basket-value")}
    assert len(names) == 2
    assert not {f"{cache}-writer", f"{cache}-reader"} & names
    group = two_jobs.only("AWS::ElastiCache::UserGroup", "Stores")
    assert len(group["UserIds"]) == 4
    for each in two_jobs.properties("AWS::ElastiCache::User", "Stores"):
        assert each["UserId"] == each["UserName"]
        assert len(each["UserName"]) <= 40
        keys = [word for word in each["AccessString"].split() if word.startswith(("~", "%", "allkeys"))]
        assert len(keys) == 1
        assert (keys == ["~signal:*"]) is (each["UserName"] not in names)

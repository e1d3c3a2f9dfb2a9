"""A server that is killed while it answers, behind the stand-in for the load balancer."""

from __future__ import annotations

import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inference_local.serving.llama_cpp.model_file import TinyModel
from tests.llama.served import SECONDS, answer, balanced, listed, metric, words

pytestmark = pytest.mark.llama

LONG = {"max_tokens": 2000, "ignore_eos": True}


def test_a_whole_answer_of_a_killed_server_fails_once_and_later_ones_come_from_the_other(
    tmp_path: Path,
) -> None:
    """It turns red if a request is repeated: the other server may have begun, or done, what it asked for.

    An Application Load Balancer answers 502 if the target closes the connection before the answer (Elastic
    Load Balancing, "Troubleshoot your Application Load Balancers", HTTP 502).
    """
    with balanced(TinyModel(4096).file(print), tmp_path) as (url, servers), ThreadPoolExecutor() as pool:
        asked = pool.submit(answer, url, **LONG)
        deadline = time.monotonic() + SECONDS
        while not (busy := [each for each in servers if metric(each[0], "requests_processing")]):
            assert time.monotonic() < deadline
        [(dying, process)] = busy
        [(other, _)] = [each for each in servers if each[0] != dying]
        process.kill()
        with pytest.raises(urllib.error.HTTPError) as failed:
            asked.result(SECONDS)
        assert failed.value.code == 502
        assert metric(other, "prompt_tokens_total") == 0, "the request was sent again"
        deadline = time.monotonic() + SECONDS
        while listed(url) != 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert all(words(answer(url, max_tokens=4, ignore_eos=True)) for _ in range(4))
        assert metric(other, "prompt_tokens_total") > 0

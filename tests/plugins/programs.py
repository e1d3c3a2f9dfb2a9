"""No test builds a program: a build takes minutes, and the time limit of the test would end it.

`make programs` builds what tests need, before they run. Programs that tests start find it in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from inference_contracts.errors import UserError
from inference_local.control_plane import build
from inference_local.serving.llama_cpp import server_build

#: For the tests of Go's answers.
real_go = build._go


def refusal(command: str) -> Callable[..., NoReturn]:
    """Return a function that refuses to build, and names the command that builds."""

    def refuse(*_: object) -> NoReturn:
        raise UserError(f"no test builds a program, and this one is not in the cache; run: {command}")

    return refuse


@pytest.fixture(scope="session", autouse=True)
def built_before() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_go", refusal("make programs, and for KEDA: make programs KEDA=1"))
        for module, name in ((server_build, "_build"), (server_build, "_download")):
            patch.setattr(module, name, refusal("make programs LLAMA=1"))
        yield

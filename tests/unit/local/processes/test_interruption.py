"""A signal becomes one exception, and a second one does not break the cleaning up."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal

import pytest

from inference_local.processes.interruption import SIGNALS, Interrupted, interruptible


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_raised_with_the_exit_code_of_a_shell(number: int) -> None:
    with pytest.raises(Interrupted) as caught, interruptible():
        os.kill(os.getpid(), number)
    assert caught.value.exit_code == 128 + number


def test_a_second_signal_does_not_interrupt_the_cleaning_up() -> None:
    cleaned: list[str] = []

    def run_and_clean_up() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            cleaned.append("all")

    with pytest.raises(Interrupted), interruptible():
        run_and_clean_up()
    assert cleaned == ["all"]


def test_a_signal_leaves_the_loop_of_asyncio_as_it_is() -> None:
    async def answer() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    async def ask() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(answer())
            await asyncio.Event().wait()

    with pytest.raises(Interrupted) as caught, interruptible():
        asyncio.run(ask())
    assert caught.value.exit_code == 128 + signal.SIGINT


def test_a_signal_in_a_callback_of_asyncio_ends_the_loop() -> None:
    async def wait() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(Interrupted), interruptible():
        asyncio.run(wait())


def test_the_handlers_before_are_put_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_tasks_that_a_signal_ends_print_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Red if asyncio reports the task of the signal when it is collected: Ctrl-C during the replay."""

    async def stopped() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    async def all_tasks() -> None:
        await asyncio.gather(stopped(), asyncio.sleep(60))

    logger = logging.getLogger("asyncio")
    level = logger.level
    try:
        with pytest.raises(Interrupted), interruptible():
            asyncio.run(all_tasks())
        gc.collect()
    finally:
        logger.setLevel(level)
    assert caplog.messages == []

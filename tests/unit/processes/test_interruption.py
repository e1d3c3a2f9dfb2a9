"""A signal becomes one exception, and a second one does not break the cleaning up."""

from __future__ import annotations

import os
import signal

import pytest

from inference_blueprints.processes.interruption import SIGNALS, Interrupted, interruptible


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


def test_the_handlers_before_are_put_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before

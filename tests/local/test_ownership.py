"""Operators in processes of their own, on the emulator's DynamoDB: one at a time, and a killed one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from inference_local.emulator.emulator import Emulator

REGION = "us-west-2"
OPERATORS = 4
#: An operator with a lease of four seconds. It notes in a file that it is alone, and waits for a line.
OPERATOR = """
import sys
from pathlib import Path
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ownership import platform_operation as module
from inference_contracts.errors import UserError

module.RENEW_SECONDS, module.LEASE_SECONDS, module._POLL_SECONDS = 0.5, 4.0, 0.25
platform, identity, alone = sys.argv[1:]
account = Account("us-west-2")
try:
    with module.platform_operation(
        account, platform, command="deploy", file=Path("mine.yaml"), identity=identity, say=print, owns=True
    ):
        Path(alone).mkdir()
        print("began", flush=True)
        sys.stdin.readline()
        Path(alone).rmdir()
except UserError as error:
    print(error, flush=True)
    sys.exit(1)
"""


class Operators:
    """Starts operators in one account."""

    def __init__(self, directory: Path, emulator: Emulator) -> None:
        self.directory = directory
        self._environment = {**os.environ, **emulator.environment()}

    def start(
        self, platform: str, identity: str = "0" * 32, *, starter: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Start an operator.

        starter: Words of a command that starts it.
        """
        return subprocess.Popen(
            [*starter, sys.executable, "-c", OPERATOR, platform, identity, str(self.directory / platform)],
            cwd=root(),
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def successor(self, platform: str) -> subprocess.Popen[str]:
        """Start operators until one begins.

        A sign of life that was on its way when the former one stopped may still arrive. Then the next one is
        refused, rightly, and the one after it is not.
        """
        for _ in range(3):
            process = self.start(platform)
            if began(process):
                return process
            assert process.wait(60) == 1
        raise AssertionError("nobody begins after an operator that shows no sign of life")


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    directory = tmp_path_factory.mktemp("operators")
    with Emulator(directory / "emulator", region=REGION) as emulator:
        yield Operators(directory, emulator)


def began(process: subprocess.Popen[str]) -> bool:
    """Return whether an operator begins; its other lines are skipped."""
    assert process.stdout is not None
    return any(line == "began\n" for line in process.stdout)


def test_of_operators_who_start_at_once_one_begins(operators: Operators) -> None:
    """Without a condition, two of them are alone at the same time, and the folder exists already."""
    started = [operators.start("at-once") for _ in range(OPERATORS)]
    results = [process.communicate("\n", timeout=120)[0] for process in started]
    for process, out in zip(started, results, strict=True):
        # Whoever comes after the end of another one may begin too.
        assert (process.returncode == 0) == ("began" in out), out
    assert any("began" in out for out in results)


def test_a_killed_operator_is_replaced_after_its_lease_and_a_living_one_is_not(operators: Operators) -> None:
    """A lock that outlives kill -9 turns this red, and so does one that expires while its operator works."""
    first = operators.start("killed")
    assert began(first)
    refused = operators.start("killed")
    out, _ = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert "runs `deploy` since" in out.splitlines()[-1]
    assert "nothing was changed" in out.splitlines()[-1]
    first.send_signal(signal.SIGKILL)
    first.wait()
    (operators.directory / "killed").rmdir()
    second = operators.successor("killed")
    second.communicate("\n", timeout=60)
    assert second.returncode == 0


def test_an_operator_who_was_stopped_for_longer_than_its_lease_ends_itself(operators: Operators) -> None:
    """A laptop that wakes up and goes on beside its successor turns this red; also in a background."""
    first = operators.start("asleep", starter=("sh", "-c", "trap '' INT; exec \"$@\"", "sh"))
    assert began(first)
    first.send_signal(signal.SIGSTOP)
    (operators.directory / "asleep").rmdir()
    second = operators.successor("asleep")
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 1  # its standard input stays open: it would wait for ever
    assert "another operator has begun" in first.communicate()[0]
    second.communicate("\n", timeout=60)
    assert second.returncode == 0


def test_another_file_is_refused_at_once(operators: Operators) -> None:
    first = operators.start("owned")
    assert began(first)
    other = operators.start("owned", "1" * 32)
    out, _ = other.communicate(timeout=60)
    assert other.returncode == 1
    assert "belongs to another blueprint (mine.yaml" in out
    first.communicate("\n", timeout=60)
    assert first.returncode == 0

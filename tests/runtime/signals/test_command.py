"""`blueprints signals get` over a real store: records for people and machines, and what is in the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from inference_blueprints.cli import main as command_line
from inference_blueprints.operate import signals
from inference_blueprints.operate.aws.account import Account
from signals.connection import BULK_TIMEOUTS, open_client
from signals.record import SignalRecord
from signals.store import SignalWriter
from tests.runtime.signals.conftest import LOOPBACK, Cache
from tests.runtime.signals.instants import EXPIRES
from tests.unit.cli.batch_commands import BLUEPRINT, QUEUES
from tests.unit.operate.fake_cloudformation import FakeCloudFormation

pytestmark = pytest.mark.clock

SIGNAL = SignalRecord(
    "captions", "shoe-1", "a red shoe\nwith laces", 5, "qwen3-8b", "abc", 1_790_000_000, EXPIRES
)
STORE = "  signalStore: {valkey: {maxGb: 1}, signals: [{name: captions, team: search}]}\n"


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> FakeCloudFormation:
    fake = FakeCloudFormation()
    monkeypatch.setattr(Account, "client", lambda _, service: {"cloudformation": fake}[service])
    return fake


@pytest.fixture
def deployed(cache: Cache, stacks: FakeCloudFormation, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The cache is that of the platform `chat`, and holds a signal."""
    monkeypatch.setenv("SIGNALS_AUTHORITY", str(cache.address.authority))
    stacks.add("chat-Stores", "chat")
    stacks.outputs["chat-Stores"] = {
        "SignalsHost": LOOPBACK,
        "SignalsPort": str(cache.address.port),
        "SignalsCache": "signals",
        "SignalsReader": "reader",
    }
    with SignalWriter(open_client(replace(cache.address, user="writer"), BULK_TIMEOUTS)) as store:
        store.write([SIGNAL])
    return cache


@pytest.fixture
def get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    (tmp_path / "chat.yaml").write_text(BLUEPRINT + QUEUES + STORE, encoding="utf-8")
    (tmp_path / "plain.yaml").write_text(BLUEPRINT + QUEUES, encoding="utf-8")

    def command(*words: str, blueprint: str = "chat.yaml") -> Ran:
        monkeypatch.setattr(sys, "argv", ["blueprints", "signals", "get", str(tmp_path / blueprint), *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return command


@pytest.mark.usefixtures("deployed")
def test_a_signal_is_shown(get: Callable[..., Ran]) -> None:
    ran = get("captions", "shoe-1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "shoe-1"
    assert "  value        a red shoe\n               with laces\n" in ran.out
    assert "  answered     2026-09-21 14:13:20 UTC\n" in ran.out


@pytest.mark.usefixtures("deployed")
def test_what_is_missing_is_said_beside_what_is_there(get: Callable[..., Ran]) -> None:
    ran = get("captions", "shoe-2", "shoe-1", "--output", "json")
    assert ran.code == 1
    assert [(record["key"], record["value"]) for record in json.loads(ran.out)] == [("shoe-1", SIGNAL.value)]
    assert ran.err == "shoe-2: has no value, or its value has expired\n"


def test_a_tunnel_leads_to_the_store(
    deployed: Cache, stacks: FakeCloudFormation, get: Callable[..., Ran]
) -> None:
    # A name of the certificate that leads nowhere, as outside the VPC.
    stacks.outputs["chat-Stores"] |= {"SignalsHost": "kubernetes", "SignalsPort": "1"}
    assert get("captions", "shoe-1", "--address", f"{LOOPBACK}:{deployed.front.port}").code == 0


def test_who_may_not_come_in_is_told_what_is_missing(
    deployed: Cache, stacks: FakeCloudFormation, get: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    ran = get("captions", "shoe-1")
    assert (ran.code, ran.out) == (1, "")
    assert "the store refuses: invalid username-password pair" in ran.err
    assert "elasticache:Connect" in ran.err


def test_a_store_that_cannot_be_reached_is_said(
    deployed: Cache, stacks: FakeCloudFormation, get: Callable[..., Ran]
) -> None:
    stacks.outputs["chat-Stores"]["SignalsPort"] = "1"
    ran = get("captions", "shoe-1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("signal store at 127.0.0.1:1: the store does not answer: ")
    assert "--address" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("deployed")
def test_a_reader_that_breaks_is_no_answer(
    get: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(signals, "runtime_directory", lambda: tmp_path)
    program = tmp_path / "signals" / "__main__.py"
    program.parent.mkdir()
    program.with_name("__init__.py").touch()
    program.write_text("import elsewhere\n")
    ran = get("captions", "shoe-1")
    assert (ran.code, ran.out) == (1, "")
    assert "No module named 'elsewhere'" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("stacks", "credentials")
@pytest.mark.parametrize(
    ("words", "blueprint", "message"),
    [
        (
            ("captions", "x"),
            "chat.yaml",
            "chat-Stores: is not deployed in us-west-2; run `blueprints deploy`",
        ),
        (("captions", "x"), "plain.yaml", "chat: has no signal store; add spec.signalStore"),
        (("caption", "x"), "chat.yaml", "got signal caption; allowed are captions"),
        (("captions", "x", "--address", "here"), "chat.yaml", "got --address here; allowed is HOST:PORT"),
    ],
)
def test_what_cannot_be_asked_is_said(
    get: Callable[..., Ran], words: tuple[str, ...], blueprint: str, message: str
) -> None:
    ran = get(*words, blueprint=blueprint)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(("key", "message"), [("", "got an empty key"), ("a\nb", r"got key 'a\nb'")])
def test_a_key_that_cannot_be_asked_for_is_said(get: Callable[..., Ran], key: str, message: str) -> None:
    ran = get("captions", "shoe-1", key)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err

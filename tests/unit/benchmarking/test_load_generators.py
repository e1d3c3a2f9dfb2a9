"""From this machine: keys and certificates reach aiperf, and no command line."""

import asyncio
import ssl
import stat
from pathlib import Path

import certifi
import pytest

from inference_blueprints import catalog, tools
from inference_blueprints.benchmarking import aiperf
from inference_blueprints.benchmarking.load_generators import Access, LocalLoadGenerator, access
from inference_blueprints.errors import UserError
from tests.unit.benchmarking.test_aiperf import LOAD_TEST

KEY = "sk-a-secret"
AUTHORITY = Path(certifi.where())


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in uv's place that writes down how it was called; it returns what it wrote."""
    program, calls = tmp_path / "uv", tmp_path / "calls"
    program.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$*" "key=$API_KEY" "ca=$SSL_CERT_FILE" >> {calls}\n'
        f'test -z "$FAILS" || {{ echo "$FAILS" >&2; exit 1; }}\n'
        "echo printed\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(tools, "uv", lambda: program)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    return calls


def local_load_generator(shown: Access) -> LocalLoadGenerator:
    return LocalLoadGenerator(shown, catalog.model("Qwen/Qwen3-8B"))


def test_the_key_comes_from_the_environment_and_goes_into_it(uv: Path) -> None:
    shown = access("MY_KEY", None, {"MY_KEY": KEY})
    assert local_load_generator(shown).ask(LOAD_TEST) == "printed\n"
    installed, _, _, run, key, authority = uv.read_text().splitlines()
    assert installed.endswith(f"--from aiperf=={aiperf.VERSION} aiperf --version")
    assert run.endswith(f"python {aiperf.program()}")
    assert KEY not in installed + run
    assert (key, authority) == (f"key={KEY}", "ca=")


def test_a_private_authority_is_trusted_by_both(uv: Path) -> None:
    shown = access(None, AUTHORITY, {})
    local_load_generator(shown).ask(LOAD_TEST)
    assert uv.read_text().splitlines()[-2:] == ["key=", f"ca={AUTHORITY.resolve()}"]

    async def trusted() -> int:
        async with shown.session() as session:
            context = session.connector._ssl  # type: ignore[union-attr]
            assert isinstance(context, ssl.SSLContext)
            return context.cert_store_stats()["x509_ca"]

    assert asyncio.run(trusted()) > 0


def test_first_questions_show_the_key(tmp_path: Path) -> None:
    async def headers() -> dict[str, str]:
        async with Access(KEY).session() as session, Access().session() as without:
            assert "Authorization" not in without.headers
            return dict(session.headers)

    assert asyncio.run(headers())["Authorization"] == f"Bearer {KEY}"


def test_a_key_is_in_no_representation() -> None:
    assert KEY not in repr(Access(KEY)) + repr(local_load_generator(Access(KEY)))


@pytest.mark.parametrize("environment", [{}, {"MY_KEY": ""}])
def test_a_key_that_is_not_there_is_an_error(environment: dict[str, str]) -> None:
    with pytest.raises(UserError, match="MY_KEY is not set or empty"):
        access("MY_KEY", None, environment)


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_certificates_that_are_none_are_an_error(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=r"--ca-file: .*ca\.pem: no certificates"):
        access(None, path, {})


def test_the_last_words_of_a_failure_are_told(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "no room left")
    with pytest.raises(UserError, match=f"aiperf {aiperf.VERSION}: no room left"):
        local_load_generator(Access()).ask(LOAD_TEST)


def test_without_uv_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "uv", lambda: None)
    with pytest.raises(UserError, match="pip install uv"):
        local_load_generator(Access()).ask(LOAD_TEST)

"""From this machine: keys and certificates reach aiperf, and no command line."""

import asyncio
import ssl
from pathlib import Path

import certifi
import pytest

import inference_catalog as catalog
from inference_blueprints import tools
from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.measure.benchmarking.load_generators import Access, LocalLoadGenerator, access
from inference_contracts.errors import UserError
from tests.unit.measure.benchmarking.test_aiperf import LOAD_TEST
from tests.unit.stand_in_programs import Printed, StandInPrograms

KEY = "sk-a-secret"
AUTHORITY = Path(certifi.where())


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> StandInPrograms:
    """uv, which prints a word."""
    programs = StandInPrograms(monkeypatch)
    programs.add("uv", lambda _: Printed("printed\n"))
    monkeypatch.setattr(tools, "uv", lambda: Path("uv"))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    return programs


def local_load_generator(shown: Access) -> LocalLoadGenerator:
    return LocalLoadGenerator(shown, catalog.model("Qwen/Qwen3-8B"))


def test_the_key_comes_from_the_environment_and_goes_into_it(uv: StandInPrograms) -> None:
    shown = access("MY_KEY", None, {"MY_KEY": KEY})
    assert local_load_generator(shown).ask(LOAD_TEST) == "printed\n"
    installed, ran = uv.calls
    assert installed.words[-4:] == ["--from", f"aiperf=={load_generators.VERSION}", "aiperf", "--version"]
    assert ran.words[-2:] == ["python", str(load_generators.program())]
    assert KEY not in installed.words + ran.words
    assert ran.environment["API_KEY"] == KEY
    assert "SSL_CERT_FILE" not in ran.environment


def test_a_private_authority_is_trusted_by_both(uv: StandInPrograms) -> None:
    shown = access(None, AUTHORITY, {})
    local_load_generator(shown).ask(LOAD_TEST)
    assert uv.calls[-1].environment["SSL_CERT_FILE"] == str(AUTHORITY.resolve())
    assert not uv.calls[-1].environment.get("API_KEY")

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


def test_the_last_words_of_a_failure_are_told(uv: StandInPrograms) -> None:
    uv.add("uv", lambda _: Printed(err="no room left\n", code=1))
    with pytest.raises(UserError, match=f"aiperf {load_generators.VERSION}: no room left"):
        local_load_generator(Access()).ask(LOAD_TEST)


def test_without_uv_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "uv", lambda: None)
    with pytest.raises(UserError, match="pip install uv"):
        local_load_generator(Access()).ask(LOAD_TEST)

"""The program that keeps the files of a certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from certificate_files.__main__ import CertificateFolder, UnreadableError, keep, main

from inference_contracts.door_identities import FILES, FOLDER_VARIABLE, READY_LINK, SECRET_VARIABLE


def _values(word: str) -> dict[str, str]:
    return {key: f"{key} {word}" for key in FILES}


def _shown(folder: Path) -> dict[str, str]:
    return {key: (folder / name).read_text() for key, name in FILES.items()}


def test_files_change_together_and_the_old_ones_go(tmp_path: Path) -> None:
    """Red if the certificate could be read with the key of another one: both are behind one link."""
    folder = CertificateFolder(tmp_path)
    assert folder.show(_values("first"))
    first = (tmp_path / READY_LINK).resolve()
    assert not folder.show(_values("first"))
    assert folder.show(_values("second"))
    assert _shown(tmp_path) == _values("second")
    assert {(tmp_path / name).readlink().parts[0] for name in FILES.values()} == {READY_LINK}
    assert not first.exists()
    kept = {each.name for each in tmp_path.iterdir()}
    assert kept == {*FILES.values(), READY_LINK, (tmp_path / READY_LINK).readlink().name}


def test_a_container_that_starts_again_takes_the_folder_over(tmp_path: Path) -> None:
    CertificateFolder(tmp_path).show(_values("first"))
    assert CertificateFolder(tmp_path).show(_values("second"))
    assert _shown(tmp_path) == _values("second")


def test_a_secret_without_a_certificate_writes_nothing(tmp_path: Path) -> None:
    folder = CertificateFolder(tmp_path)
    with pytest.raises(UnreadableError, match="envoy_authority"):
        folder.show({key: "" for key in FILES if key != "envoy_authority"})
    assert not folder.is_ready
    assert not [*tmp_path.iterdir()]


def test_what_cannot_be_read_changes_nothing_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Iterator[Mapping[str, str] | Exception] = iter(
        [UnreadableError("not yet"), _values("first"), OSError("no space"), _values("second")]
    )
    waits: list[float] = []
    seen: list[object] = []

    def read() -> Mapping[str, str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        seen.append(_shown(tmp_path)["cert"] if (tmp_path / READY_LINK).exists() else None)
        return len(waits) == 4

    keep(CertificateFolder(tmp_path), read, wait, 600)
    assert seen == [None, "cert first", "cert first", "cert second"]
    # It hurries only while there is nothing to show.
    assert waits == [5, 600, 600, 600]
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each.get("why") for each in events] == ["not yet", None, "no space", None]


def test_missing_variables_are_named_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({}) == 2
    assert {SECRET_VARIABLE, FOLDER_VARIABLE} <= set(capsys.readouterr().err.replace(",", "").split())

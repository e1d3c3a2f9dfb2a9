"""Certificates of callers: made once, renewed in time, and an authority that changes without a gap."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from inference_contracts.door_identities import FILES, SERVER_NAME
from tests.runtime.door_certificates.issued import PLATFORM, RELEASE, client, issue, secret, server

pytestmark = pytest.mark.clock


def _certificates(text: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(text.encode())


def _authority(folder: Path, name: str = "cert") -> x509.Certificate:
    return _certificates(secret(folder, "authority")[name])[0]


def test_certificates_name_their_owner_and_nothing_else(tmp_path: Path) -> None:
    result = issue(tmp_path, [server(), client("door")])
    assert result.returncode == 0, result.stderr
    for name, uri, hosts, usages in (
        (RELEASE, f"spiffe://{PLATFORM}/models/{RELEASE}", [RELEASE, SERVER_NAME], 2),
        ("door", f"spiffe://{PLATFORM}/door", [], 1),
    ):
        values = secret(tmp_path, name)
        assert values.keys() == FILES.keys()
        (certificate,) = _certificates(values["cert"])
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        assert names.critical
        assert names.value.get_values_for_type(x509.UniformResourceIdentifier) == [uri]
        assert names.value.get_values_for_type(x509.DNSName) == hosts
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert ExtendedKeyUsageOID.CLIENT_AUTH in usage
        assert len(usage) == usages
        certificate.verify_directly_issued_by(_authority(tmp_path))
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=14)
        key = serialization.load_pem_private_key(values["key"].encode(), password=None)
        assert key.public_key() == certificate.public_key()
        # PKCS #8, without which Java reads no key.
        assert values["key"].startswith("-----BEGIN PRIVATE KEY-----")
        assert secret(tmp_path, "authority")["key"] not in json.dumps(values)
    assert "PRIVATE" not in result.stdout + result.stderr


def test_what_lasts_stays_and_what_changes_or_ends_soon_is_new(tmp_path: Path) -> None:
    (tmp_path / "door").write_text('x"1{')  # the random text of a new secret
    assert issue(tmp_path, [server(), client("door")]).returncode == 0
    before = {name: secret(tmp_path, name) for name in (RELEASE, "door", "authority")}
    renamed = {**server(), "names": [RELEASE]}
    assert issue(tmp_path, [renamed, client("door")]).returncode == 0
    assert secret(tmp_path, "door") == before["door"]
    assert secret(tmp_path, RELEASE)["cert"] != before[RELEASE]["cert"]
    assert issue(tmp_path, [client("door")], LEFT_DAYS="15").returncode == 0
    assert secret(tmp_path, "door")["cert"] != before["door"]["cert"]
    assert secret(tmp_path, "authority") == before["authority"]


def test_a_denied_call_ends_the_build_and_replaces_nothing(tmp_path: Path) -> None:
    """Red if a secret that could not be read counts as empty: then everybody would get a new authority."""
    issue(tmp_path, [client("door")])
    before = secret(tmp_path, "authority")
    denied = issue(tmp_path, [client("door")], DENIED="yes")
    assert denied.returncode == 1
    assert "AccessDenied" in denied.stderr
    assert "Traceback" not in denied.stderr
    assert secret(tmp_path, "authority") == before


def test_an_authority_that_ends_has_a_successor_that_all_trust_before_it_signs(tmp_path: Path) -> None:
    assert issue(tmp_path, [client("door")], AUTHORITY_DAYS="300").returncode == 0
    first = _authority(tmp_path)
    # Its time is nearly over: the successor is trusted, and signs nothing.
    assert issue(tmp_path, [client("door")], LEFT_DAYS="15").returncode == 0
    second = _authority(tmp_path, "next_cert")
    values = secret(tmp_path, "door")
    assert _certificates(values["ca"]) == [first, second]
    _certificates(values["cert"])[0].verify_directly_issued_by(first)
    # After some days, it signs, and the old one is trusted still.
    _age_successor(tmp_path, days=15)
    second = _authority(tmp_path, "next_cert")
    assert issue(tmp_path, [client("door")]).returncode == 0
    values = secret(tmp_path, "door")
    assert _certificates(values["ca"]) == [second, first]
    _certificates(values["cert"])[0].verify_directly_issued_by(second)
    assert secret(tmp_path, "authority").keys() == {"cert", "key", "old"}


def _age_successor(folder: Path, days: int) -> None:
    """Write a successor that was made some days ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"callers of {PLATFORM}")])
    began = datetime.now(UTC) - timedelta(days=days)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    values = {
        **secret(folder, "authority"),
        "next_cert": made.public_bytes(serialization.Encoding.PEM).decode(),
        "next_key": key.private_bytes(*form).decode(),
    }
    (folder / "authority").write_text(json.dumps(values))

"""Certificates of the discovery store are made once, renewed in time, and trust each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from inference_blueprints.contracts.ecs_names import DISCOVERY_SECRET_KEYS
from tests.runtime.discovery_certificates.issuing import issue, secret

pytestmark = pytest.mark.clock

HOSTS = ["discovery-0.a.internal", "discovery-1.a.internal"]


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(secret(folder, name)["cert"].encode())


def test_members_get_a_certificate_with_their_names_and_clients_one_without(tmp_path: Path) -> None:
    result = issue(tmp_path, HOSTS)
    assert result.returncode == 0, result.stderr
    members, clients = certificate(tmp_path, "members"), certificate(tmp_path, "clients")
    names = members.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == HOSTS
    usages = [
        set(each.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        for each in (members, clients)
    ]
    assert usages == [
        {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH},
        {ExtendedKeyUsageOID.CLIENT_AUTH},
    ]
    common = [
        each.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value for each in (members, clients)
    ]
    assert common == ["member", "client"]
    authority = certificate(tmp_path, "authority")
    for each in (members, clients):
        each.verify_directly_issued_by(authority)
    assert set(secret(tmp_path, "clients")) == set(DISCOVERY_SECRET_KEYS.values())
    assert "key" in secret(tmp_path, "authority")
    assert secret(tmp_path, "authority")["key"] not in (tmp_path / "members").read_text()
    assert "PRIVATE" not in result.stdout + result.stderr


def test_random_text_of_a_new_secret_is_replaced(tmp_path: Path) -> None:
    for name in ("authority", "members", "clients"):
        (tmp_path / name).write_text('x"1{')
    result = issue(tmp_path, HOSTS)
    assert (result.returncode, result.stderr) == (0, "")
    assert "key" in secret(tmp_path, "members")


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS)
    before = {name: secret(tmp_path, name) for name in ("authority", "members", "clients")}
    result = issue(tmp_path, HOSTS)
    assert "the members' certificate stays" in result.stdout, result.stderr
    assert {name: secret(tmp_path, name) for name in before} == before


def test_certificates_that_end_soon_are_renewed_by_the_same_authority(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS, days=100)
    before = {name: secret(tmp_path, name) for name in ("authority", "members", "clients")}
    assert issue(tmp_path, HOSTS).returncode == 0
    assert secret(tmp_path, "authority") == before["authority"]
    for name in ("members", "clients"):
        assert secret(tmp_path, name)["cert"] != before[name]["cert"]
        assert secret(tmp_path, name)["ca"] == before[name]["ca"]


def test_other_names_of_members_get_a_new_certificate(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS)
    clients = secret(tmp_path, "clients")
    issue(tmp_path, ["discovery-0.b.internal"])
    names = certificate(tmp_path, "members").extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["discovery-0.b.internal"]
    assert secret(tmp_path, "clients") == clients


def test_a_refused_call_fails_and_replaces_no_secret(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS)
    before = {name: secret(tmp_path, name) for name in ("authority", "members", "clients")}
    result = issue(tmp_path, HOSTS, denied=True)
    assert result.returncode == 1
    assert "AccessDenied" in result.stderr
    assert {name: secret(tmp_path, name) for name in before} == before

"""Certificates of the discovery store are made once, renewed in time, and trust each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from inference_contracts.discovery_roles import ADMINISTRATOR
from inference_contracts.ecs_names import discovery_secret_keys
from tests.runtime.discovery_certificates.issuing import CLIENT, issue, secret

pytestmark = pytest.mark.clock

HOSTS = ["discovery-0.a.internal", "discovery-1.a.internal"]


#: All secrets.
SECRETS = ("authority", "members", "clients", "administrator")


def certificate(folder: Path, name: str, client: str = CLIENT) -> x509.Certificate:
    key = f"{client}-cert" if name == "clients" else "cert"
    return x509.load_pem_x509_certificate(secret(folder, name)[key].encode())


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
    assert common == ["member", CLIENT]
    authority = certificate(tmp_path, "authority")
    for each in (members, clients):
        each.verify_directly_issued_by(authority)
    assert set(secret(tmp_path, "clients")) == set(discovery_secret_keys(CLIENT).values())
    assert "key" in secret(tmp_path, "authority")
    assert secret(tmp_path, "authority")["key"] not in (tmp_path / "members").read_text()
    assert "PRIVATE" not in result.stdout + result.stderr


def test_random_text_of_a_new_secret_is_replaced(tmp_path: Path) -> None:
    for name in SECRETS:
        (tmp_path / name).write_text('x"1{')
    result = issue(tmp_path, HOSTS)
    assert (result.returncode, result.stderr) == (0, "")
    assert "key" in secret(tmp_path, "members")


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS)
    before = {name: secret(tmp_path, name) for name in SECRETS}
    result = issue(tmp_path, HOSTS)
    assert "the members' certificate stays" in result.stdout, result.stderr
    assert {name: secret(tmp_path, name) for name in before} == before


def test_certificates_that_end_soon_are_renewed_by_the_same_authority(tmp_path: Path) -> None:
    issue(tmp_path, HOSTS, days=100)
    before = {name: secret(tmp_path, name) for name in SECRETS}
    assert issue(tmp_path, HOSTS).returncode == 0
    assert secret(tmp_path, "authority") == before["authority"]
    for name in ("members", "clients", "administrator"):
        key = f"{CLIENT}-cert" if name == "clients" else "cert"
        assert secret(tmp_path, name)[key] != before[name][key]
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
    before = {name: secret(tmp_path, name) for name in SECRETS}
    result = issue(tmp_path, HOSTS, denied="yes")
    assert result.returncode == 1
    assert "AccessDenied" in result.stderr
    assert {name: secret(tmp_path, name) for name in before} == before


def test_the_administrator_has_no_common_name_and_keeps_its_password(tmp_path: Path) -> None:
    """etcd's gateway refuses certificates with a common name, and the store keeps the first password."""
    issue(tmp_path, HOSTS, days=100)
    before = secret(tmp_path, "administrator")
    assert set(before) == set(ADMINISTRATOR)
    assert not certificate(tmp_path, "administrator").subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    issue(tmp_path, HOSTS)
    after = secret(tmp_path, "administrator")
    assert after["cert"] != before["cert"]
    assert after["password"] == before["password"]
    assert len(after["password"]) == 64


def test_a_new_client_gets_a_certificate_and_those_that_run_keep_theirs(tmp_path: Path) -> None:
    """Without this, a task of a removed model, or of an earlier release, cannot start again."""
    issue(tmp_path, HOSTS)
    held = {**secret(tmp_path, "clients"), "cert": "of an earlier release", "key": "of an earlier release"}
    (tmp_path / "clients").write_text(json.dumps(held))
    result = issue(tmp_path, HOSTS, clients=["rba9876543210"])
    assert result.returncode == 0, result.stderr
    after = secret(tmp_path, "clients")
    assert after.keys() == held.keys() | {"rba9876543210-cert", "rba9876543210-key"}
    assert held.items() <= after.items()


def _services(folder: Path, created: str, **reads: str) -> None:
    state = {name.replace("_", "-"): {"created": created, "reads": [read]} for name, read in reads.items()}
    (folder / "services.json").write_text(json.dumps(state))


def _created(folder: Path) -> dict[str, str]:
    return {
        name: each["created"] for name, each in json.loads((folder / "services.json").read_text()).items()
    }


def test_services_older_than_their_certificate_start_again(tmp_path: Path) -> None:
    """It turns red if a running task keeps its certificate, a service without one starts again, or the next
    run does not go on where one failed."""
    issue(tmp_path, HOSTS)
    before = "2001-01-01T00:00:00.123000+00:00"
    reads = {
        "member_0": "members:cert::",
        "worker": f"clients:{CLIENT}-cert::",
        "roles": "administrator:cert::",
        "other": "clients:r999999999999-cert::",
        "metrics": "another:cert::",
    }
    _services(tmp_path, before, **reads)
    failed = issue(tmp_path, HOSTS, denied="update-service")
    assert failed.returncode != 0
    assert set(_created(tmp_path).values()) == {before}
    again = issue(tmp_path, HOSTS)
    assert again.returncode == 0, again.stderr
    kept = {name for name, created in _created(tmp_path).items() if created == before}
    assert kept == {"other", "metrics"}
    assert "starts again" not in issue(tmp_path, HOSTS).stdout

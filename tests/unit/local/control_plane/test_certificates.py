"""Certificates of one control plane."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

from cryptography import x509

from inference_local.control_plane.certificates import Authority


def test_a_certificate_is_signed_and_names_user_groups_and_loopback(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    pair = authority.issue("some:user", groups=("system:masters",))

    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.read_bytes()))
    names = {attribute.rfc4514_attribute_name: attribute.value for attribute in certificate.subject}
    assert names == {"O": "system:masters", "CN": "some:user"}
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each) for each in hosts.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_a_key_fits_its_certificate_and_is_its_owner_s(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("server")

    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(pair.certificate, pair.key)
    assert stat.S_IMODE(pair.key.stat().st_mode) == 0o600

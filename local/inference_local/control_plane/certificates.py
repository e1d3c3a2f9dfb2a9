"""A certificate authority for one control plane. It is deleted with the control plane."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = datetime.timedelta(days=2)
# A clock that is slightly late must not reject a new certificate.
_BACKDATING = datetime.timedelta(minutes=5)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESS = ipaddress.IPv4Address("127.0.0.1")


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, both in PEM files."""

    certificate: Path
    """File of the certificate."""
    key: Path
    """File of the key, readable by its owner only."""


class Authority:
    """A certificate authority with a new key.

    folder: Folder for certificates and keys. It is created.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "inference-blueprints")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _certificate(self._name, self._name, self._key.public_key())
        certificate = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = folder / "authority.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, groups: tuple[str, ...] = ()) -> KeyPair:
        """Sign a certificate for a server on loopback, or for a client.

        name: Common name, which is the user in Kubernetes. The files are named after it.
        groups: Organisations, which are the user's groups in Kubernetes (Kubernetes documentation, "X.509
            client certificates").
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        hosts = [*(x509.DNSName(host) for host in _SERVER_NAMES), x509.IPAddress(_SERVER_ADDRESS)]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            _certificate(subject, self._name, key.public_key())
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = name.replace(":", "-")
        pair = KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.touch(mode=0o600)
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return pair


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATING)
        .not_valid_after(now + _VALIDITY)
    )

"""Makes the certificates of callers and entry points, and writes them into secrets before the old ones end.

CodeBuild runs the text of this file in each deployment and every day, so it imports only the standard
library, and calls the programs ``aws`` and ``openssl`` of its image. `main` documents the variables.

The authority renews itself too, without a moment in which somebody is refused: its successor is first added
to what everybody trusts, and signs only after `TRUST_DAYS`, when everybody has read it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final

#: Time for which everybody trusts a new authority before it signs, in days.
TRUST_DAYS: Final = 14
_ENVOY_TYPE: Final = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
_USAGES: Final = {"server": "serverAuth,clientAuth", "client": "clientAuth"}
_DATE: Final = "%b %d %H:%M:%S %Y %Z"
_UTC: Final = timezone.utc  # noqa: UP017 -- the Python of the image may be 3.10


class IssuingError(Exception):
    """Certificates could not be made or stored."""


def _run(*words: str) -> str:
    """Run a program, and return its output. No secret is in its arguments."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise IssuingError(f"{' '.join(words[:3])}: {done.stderr.strip()}")
    return done.stdout


def _held(secret: str) -> dict[str, str]:
    """Return the values of a secret. Empty if it has none yet: CloudFormation writes random text into it."""
    try:
        words = ("--secret-id", secret, "--query", "SecretString", "--output", "text")
        text = _run("aws", "secretsmanager", "get-secret-value", *words)
    except IssuingError as error:
        if "ResourceNotFoundException" in str(error):
            return {}
        raise
    with contextlib.suppress(ValueError):
        values = json.loads(text)
        if isinstance(values, dict):
            return values
    return {}


def _store(secret: str, values: Mapping[str, str]) -> None:
    file = pathlib.Path("value.json")
    file.write_text(json.dumps(values), encoding="utf-8")
    try:
        _run(
            "aws",
            "secretsmanager",
            "put-secret-value",
            "--secret-id",
            secret,
            "--secret-string",
            f"file://{file}",
        )
    finally:
        file.unlink()


def _write(name: str, text: str) -> str:
    pathlib.Path(name).write_text(text, encoding="utf-8")
    return name


def _read(name: str) -> str:
    return pathlib.Path(name).read_text(encoding="utf-8")


def _when(certificate: str, which: str) -> datetime:
    """Return the ``startdate`` or ``enddate`` of a certificate."""
    text = _run("openssl", "x509", "-in", _write("dated.pem", certificate), "-noout", f"-{which}")
    return datetime.strptime(text.strip().partition("=")[2], _DATE).replace(tzinfo=_UTC)


def _lasts(certificate: str, days: int) -> bool:
    return _when(certificate, "enddate") > datetime.now(_UTC) + timedelta(days=days)


def _new_key(name: str) -> str:
    """Write a key in PKCS #8, the only form that Java reads."""
    _run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name)
    return name


def _new_authority(platform: str, days: int) -> tuple[str, str]:
    """Return the certificate and the key of a new authority."""
    key = _new_key("authority.key")
    subject = ("-subj", f"/CN=callers of {platform}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    made = ("-days", str(days), "-sha256", "-out", "authority.pem")
    _run("openssl", "req", "-x509", "-new", "-key", key, *subject, *made)
    return _read("authority.pem"), _read(key)


def current_authority(held: Mapping[str, str], platform: str, days: int, left_days: int) -> dict[str, str]:
    """Return the authority as its secret should hold it.

    ``cert`` and ``key`` sign, ``next_cert`` and ``next_key`` are its successor, and ``old`` is its
    predecessor as long as that is valid.

    held: What the secret holds.
    platform: `metadata.name`.
    days, left_days: Life of an authority, and what is left of it when its successor is made.
    """
    values = {name: held[name] for name in ("cert", "key", "next_cert", "next_key", "old") if held.get(name)}
    if "cert" not in values or not _lasts(values["cert"], 0):
        cert, key = _new_authority(platform, days)
        return {"cert": cert, "key": key}
    if "next_cert" not in values and not _lasts(values["cert"], left_days):
        values["next_cert"], values["next_key"] = _new_authority(platform, days)
    elif "next_cert" in values and _when(values["next_cert"], "startdate") < datetime.now(_UTC) - timedelta(
        days=TRUST_DAYS
    ):
        values["old"] = values["cert"]
        values["cert"], values["key"] = values.pop("next_cert"), values.pop("next_key")
    if "old" in values and not _lasts(values["old"], 0):
        del values["old"]
    return values


def bundle(authority: Mapping[str, str]) -> str:
    """Return the certificates that everybody trusts."""
    return "".join(authority[name] for name in ("cert", "next_cert", "old") if name in authority)


def _signed(authority: Mapping[str, str], wanted: Mapping[str, Any], days: int) -> tuple[str, str]:
    """Return a new certificate and its key."""
    names = ",".join([f"URI:{wanted['uri']}", *(f"DNS:{name}" for name in wanted["names"])])
    lines = [
        "basicConstraints=critical,CA:false",
        "keyUsage=critical,digitalSignature",
        f"extendedKeyUsage={_USAGES[wanted['usage']]}",
        # The subject is empty, so the name must be critical (RFC 5280, section 4.2.1.6).
        f"subjectAltName=critical,{names}",
    ]
    key = _new_key("own.key")
    _run("openssl", "req", "-new", "-key", key, "-subj", "/", "-out", "own.csr")
    by = ("-CA", _write("ca.pem", authority["cert"]), "-CAkey", _write("ca.key", authority["key"]))
    made = ("-CAcreateserial", "-days", str(days), "-sha256", "-out", "own.pem")
    _run(
        "openssl",
        "x509",
        "-req",
        "-in",
        "own.csr",
        *by,
        *made,
        "-extfile",
        _write("own.txt", "\n".join(lines)),
    )
    return _read("own.pem"), _read(key)


def _names(certificate: str) -> list[str]:
    """Return the names of a certificate, sorted, in the form of `_signed`."""
    text = _run(
        "openssl", "x509", "-in", _write("named.pem", certificate), "-noout", "-ext", "subjectAltName"
    )
    return sorted(each.strip() for each in text.splitlines()[-1].split(","))


def _is_fresh(
    held: Mapping[str, str], authority: Mapping[str, str], wanted: Mapping[str, Any], left_days: int
) -> bool:
    """Whether a secret holds a certificate of the authority that signs, with these names, that lasts."""
    if not held.get("cert") or not held.get("key") or not _lasts(held["cert"], left_days):
        return False
    names = sorted([f"URI:{wanted['uri']}", *(f"DNS:{name}" for name in wanted["names"])])
    if _names(held["cert"]) != names:
        return False
    try:
        _run(
            "openssl",
            "verify",
            "-CAfile",
            _write("ca.pem", authority["cert"]),
            _write("own.pem", held["cert"]),
        )
    except IssuingError:
        return False
    return True


def _envoy(name: str, **content: object) -> str:
    """Return a file of Envoy's secret discovery service (SDS) with one secret."""
    secret = {"@type": _ENVOY_TYPE, "name": name, **content}
    return json.dumps({"resources": [secret]}, separators=(",", ":"))


def _inline(text: str) -> dict[str, str]:
    return {"inline_string": text}


def values_of(cert: str, key: str, trusted: str) -> dict[str, str]:
    """Return what a secret holds: certificate, key and authorities, for programs and for Envoy."""
    return {
        "ca": trusted,
        "cert": cert,
        "key": key,
        "envoy_certificate": _envoy(
            "certificate", tls_certificate={"certificate_chain": _inline(cert), "private_key": _inline(key)}
        ),
        "envoy_authority": _envoy("authority", validation_context={"trusted_ca": _inline(trusted)}),
    }


def main(environment: Mapping[str, str]) -> int:
    """Make what is missing or ends soon, and return an exit code.

    environment: ``PLATFORM`` is `metadata.name`. ``AUTHORITY`` is the ARN of the authority's secret, with
        ``AUTHORITY_DAYS`` of life, and a successor when ``AUTHORITY_LEFT_DAYS`` are left. ``IDENTITIES`` is
        a list in JSON: ``secret`` is an ARN, ``uri`` and ``names`` are what the certificate certifies,
        ``usage`` is ``server`` or ``client``. Each lives ``DAYS``, and is renewed when ``LEFT_DAYS`` are
        left.
    """
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _issue(environment)
        except IssuingError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            os.chdir("/")
    return 0


def _issue(environment: Mapping[str, str]) -> None:
    held = _held(environment["AUTHORITY"])
    authority = current_authority(
        held,
        environment["PLATFORM"],
        int(environment["AUTHORITY_DAYS"]),
        int(environment["AUTHORITY_LEFT_DAYS"]),
    )
    if authority != held:
        _store(environment["AUTHORITY"], authority)
        print("the authority has changed")
    trusted = bundle(authority)
    identities: Sequence[Mapping[str, Any]] = json.loads(environment["IDENTITIES"])
    for wanted in identities:
        own = _held(wanted["secret"])
        if _is_fresh(own, authority, wanted, int(environment["LEFT_DAYS"])):
            cert, key = own["cert"], own["key"]
        else:
            cert, key = _signed(authority, wanted, int(environment["DAYS"]))
            print(f"new certificate of {wanted['uri']}, valid for {environment['DAYS']} days", flush=True)
        values = values_of(cert, key, trusted)
        if values != own:
            _store(wanted["secret"], values)


if __name__ == "__main__":
    sys.exit(main(os.environ))

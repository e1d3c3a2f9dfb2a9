"""Chart repositories of both kinds on loopback: an index over HTTP, an OCI registry over TLS."""

from __future__ import annotations

import hashlib
import io
import json
import ssl
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from inference_catalog.releases import shipped_releases
from inference_local.control_plane.certificates import Authority

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIGURATION = "application/vnd.cncf.helm.config.v1+json"
_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

#: Content and its type by path; a test may change what is served.
Content = dict[str, tuple[bytes, str]]


def index(name: str, version: str, archive: bytes) -> Content:
    """The files of an index repository that holds one chart."""
    file = f"{name}-{version}.tgz"
    entry = {"name": name, "version": version, "urls": [file], "apiVersion": "v2"}
    document = {"apiVersion": "v1", "entries": {name: [{**entry, "digest": _sha256(archive)}]}}
    return {
        "/index.yaml": (yaml.safe_dump(document).encode(), "text/yaml"),
        f"/{file}": (archive, "application/gzip"),
    }


def registry(repository: str, version: str, archive: bytes) -> Content:
    """What an OCI registry answers that holds one chart."""
    configuration = json.dumps({"name": repository, "version": version}).encode()
    blobs = {f"sha256:{_sha256(blob)}": blob for blob in (configuration, archive)}
    descriptors = [{"digest": digest, "size": len(blob)} for digest, blob in blobs.items()]
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIGURATION, **descriptors[0]},
        "layers": [{"mediaType": _CHART, **descriptors[1]}],
    }
    body = json.dumps(manifest).encode()
    prefix = f"/v2/{repository}"
    return {
        "/v2/": (b"{}", "application/json"),
        f"{prefix}/manifests/{version}": (body, _MANIFEST),
        f"{prefix}/manifests/sha256:{_sha256(body)}": (body, _MANIFEST),
        **{f"{prefix}/blobs/{digest}": (blob, "application/octet-stream") for digest, blob in blobs.items()},
    }


@contextmanager
def served(content: Content, authority: Authority | None = None) -> Iterator[str]:
    """Serve content on loopback, with TLS where there is an authority; yield host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, kind = content.get(self.path, (b"", ""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            if kind == _MANIFEST:
                self.send_header("Docker-Content-Digest", f"sha256:{_sha256(body)}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the server's name for it

        def log_message(self, *_arguments: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if authority:
        pair = authority.issue("registry")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def packed(name: str, version: str) -> bytes:
    """A chart of one template in an archive such as ``helm package`` writes."""
    files = {
        "Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version}),
        "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
    }
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as writer:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(text)
            writer.addfile(entry, io.BytesIO(text.encode()))
    return archive.getvalue()


def put_archives(folder: Path) -> dict[str, bytes]:
    """Put an archive of every chart from a registry into a folder; return them by name."""
    folder.mkdir()
    charts = shipped_releases().registry_charts
    archives = {name: packed(name, chart.version) for name, chart in charts.items()}
    for name, archive in archives.items():
        (folder / f"{name}-{charts[name].version}.tgz").write_bytes(archive)
    return archives


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""A stand-in for the Hugging Face Hub: tokenizer, configuration, and weights without tensors of each model.

``python -m … FOLDER PORT`` serves ``FOLDER/OWNER/NAME`` on loopback. Every revision is the same. Paths and
answers are those that huggingface_hub 2.4 asks for (``HfApi.list_repo_tree``, ``HfFileSystem``).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from inference_blueprints.measure.tokenizer import write_model_directory
from inference_catalog import Model

#: Port in the namespace of the emulator, in which nothing else listens on it.
PORT: Final = 8090
_API = re.compile(r"/api/models/([^/]+/[^/]+)/(revision|tree|paths-info)/([^/]+)")
_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
#: A safetensors file without tensors: the length of its header, and the header.
_NO_TENSORS = (2).to_bytes(8, "little") + b"{}"


def write_repository(folder: Path, name: str, shape: Model) -> None:
    """Write the files of a repository into the folder of all repositories."""
    write_model_directory(shape, folder / name)
    (folder / name / "model.safetensors").write_bytes(_NO_TENSORS)


def main(folder: Path, port: int) -> None:
    """Serve until a signal."""

    class _HubHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if (found := _FILE.fullmatch(path)) and (folder / found[1] / found[3]).is_file():
                self._send((folder / found[1] / found[3]).read_bytes(), "application/octet-stream")
            elif (found := _API.fullmatch(path)) and (folder / found[1]).is_dir():
                tree = _tree(folder / found[1])
                siblings = [{"rfilename": each["path"]} for each in tree]
                about = {"id": found[1], "sha": found[3], "siblings": siblings}
                self._send_json(tree if found[2] == "tree" else about)
            else:
                self._send_json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            wanted = parse_qs(sent).get("paths", [])
            found = _API.fullmatch(unquote(urlsplit(self.path).path))
            tree = _tree(folder / found[1]) if found else []
            self._send_json([each for each in tree if each["path"] in wanted])

        def _send_json(
            self, content: object, status: int = 200, headers: Mapping[str, str] | None = None
        ) -> None:
            self._send(json.dumps(content).encode(), "application/json", status, headers)

        def _send(
            self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    ThreadingHTTPServer(("127.0.0.1", port), _HubHandler).serve_forever()


def _tree(folder: Path) -> list[dict[str, Any]]:
    """Return the files as the Hub lists them: safetensors are in large file storage."""
    return [_entry(path.relative_to(folder), path.read_bytes()) for path in sorted(folder.rglob("*.*"))]


def _entry(path: Path, content: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    entry: dict[str, Any] = {"type": "file", "path": str(path), "size": len(content), "oid": blob}
    if path.suffix == ".safetensors":
        digest = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 134}
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

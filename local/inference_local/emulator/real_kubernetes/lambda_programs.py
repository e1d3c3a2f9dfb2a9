"""Lets a Lambda worker run the programs of its layers: aws, helm and kubectl.

On AWS, a layer is unpacked below ``/opt``. ministack unpacks it elsewhere, without executable permissions.
CDK's handler looks for its programs in ``/opt`` and then in ``PATH``, so the layers' folders are added to
``PATH``, in the handler's order. All workers would also share ``/tmp``, where the handler writes its
kubeconfig and manifests, so each worker gets its own folder through the handler's variable ``TEST_OUTDIR``.
"""

from __future__ import annotations

import hashlib
import io
import os
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from inference_local.emulator.real_kubernetes import without_registries

_EXECUTABLE_BITS = 0o111
#: Folders of ``/opt`` in the order in which CDK's handler looks for a program (aws-cdk-lib,
#: custom-resource-handlers, aws-eks-v2/kubectl-handler: each module puts its folders before the others').
_FOLDERS = ("kubectl", "awscli", "helm")
_PLAIN_CREDENTIALS = lambda_runtime.execution_credentials


class LambdaPrograms:
    """Creates the environment of Lambda workers.

    directory: Folder for layers and the workers' folders.
    charts: Folder of charts that replaces registries, see `without_registries`.
    """

    def __init__(self, directory: Path, charts: Path) -> None:
        self._directory = directory
        self._charts = charts

    def environment(self, function: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of one worker: credentials, and the programs of its layers."""
        credentials: dict[str, str] = _PLAIN_CREDENTIALS(function)
        # Layers that AWS publishes are left out: their packages are installed with this program.
        contents = [lambda_svc._resolve_layer_zip(layer) for layer in function.get("Layers", [])]
        layers = [self._unpacked(content) for content in contents if content is not None]
        if not layers:
            return credentials
        own = Path(tempfile.mkdtemp(prefix="worker-", dir=self._directory))
        path = [
            own / "bin",
            *(layer / folder for folder in _FOLDERS for layer in layers),
            os.environ["PATH"],
        ]
        self._write_program(own, "aws", layers, [sys.executable])
        self._write_program(own, "helm", layers, [])
        return {
            **credentials,
            "PATH": os.pathsep.join(str(folder) for folder in path),
            "HOME": str(own),
            "TEST_OUTDIR": str(own),
            # `aws eks get-token` signs a request to this address, and the API server's webhook checks it. It
            # sends nothing.
            "AWS_ENDPOINT_URL_STS": f"https://sts.{os.environ['MINISTACK_REGION']}.amazonaws.com",
        }

    def _unpacked(self, content: bytes) -> Path:
        target = self._directory / f"layer-{hashlib.sha256(content).hexdigest()[:12]}"
        if not target.is_dir():
            draft = Path(tempfile.mkdtemp(dir=self._directory))
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                archive.extractall(draft)
                for member in archive.infolist():
                    if member.external_attr >> 16 & _EXECUTABLE_BITS and not member.is_dir():
                        (draft / member.filename).chmod(0o755)
            draft.rename(target)
        return target

    def _write_program(self, own: Path, name: str, layers: list[Path], interpreter: list[str]) -> None:
        """Wrap a layer's program in a script, because its first line has a path that exists only on AWS."""
        places = [layer / folder / name for folder in _FOLDERS for layer in layers]
        found = [place for place in places if place.is_file()]
        if not found:
            return
        program, *behind = found
        if behind:
            # A script, which calls the program behind it by its place on AWS.
            text = program.read_text().replace(f"/opt/{behind[0].parent.name}/{name}", str(behind[0]))
            program = own / f"{name}.sh"
            program.write_text(text)
            program.chmod(0o755)
        words = [
            *(sys.executable, "-I", "-S", without_registries.__file__, name, str(self._charts)),
            *(*interpreter, str(program), "--"),
        ]
        caller = own / "bin" / name
        caller.parent.mkdir(exist_ok=True)
        caller.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        caller.chmod(0o755)


def apply(directory: Path, charts: Path) -> None:
    """Add the programs of their layers to workers.

    charts: Folder of charts that replaces registries.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lambda_runtime.execution_credentials = LambdaPrograms(directory, charts).environment

"""The patches for ministack do what they say: their tests pass on a ministack that has all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import ministack
import pytest

from inference_blueprints.resources import root

PATCHES = root() / "docs" / "upstream"
#: What stands for `conftest.py` of ministack: the same clients under the same names.
CONFTEST = """
import os

import boto3
import pytest
from botocore.config import Config

ENDPOINT = os.environ["MINISTACK_ENDPOINT"]
CLIENTS = {
    "autoscaling": "autoscaling", "cfn": "cloudformation", "cw": "cloudwatch", "dynamodb": "dynamodb",
    "eb": "events", "eks": "eks", "iam": "iam", "lam": "lambda", "logs": "logs", "s3": "s3",
    "sfn": "stepfunctions", "sm": "secretsmanager", "sns": "sns", "sqs": "sqs",
}


def make_client(service, options=None):
    return boto3.client(
        service, endpoint_url=ENDPOINT, region_name="us-east-1", aws_access_key_id="test",
        aws_secret_access_key="test", config=Config(**(options or {})))


def _fixture(service):
    return pytest.fixture(scope="session")(lambda: make_client(service))


for name, service in CLIENTS.items():
    globals()[name] = _fixture(service)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the installed release with all patches."""
    folder = tmp_path_factory.mktemp("upstream")
    shutil.copytree(ministack.__path__[0], folder / "ministack", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    # A patch that requires another one comes after it.
    for patch in sorted(
        PATCHES.glob("*.patch"), key=lambda patch: (b"\nRequires: " in patch.read_bytes(), patch)
    ):
        subprocess.run(["git", "apply", patch], cwd=folder, env=environment, check=True)
    (folder / "tests" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(sources: Path) -> Iterator[str]:
    """Return the URL of a ministack of these sources."""
    access = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    with create_server(("127.0.0.1", 0)) as listener, (sources / "log").open("w") as log:
        host, port = listener.getsockname()
        server = subprocess.Popen(
            [sys.executable, "-m", "hypercorn", "ministack.app:app", "--bind", f"fd://{listener.fileno()}"],
            pass_fds=[listener.fileno()],
            cwd=sources,
            env=os.environ | access | {"PYTHONPATH": str(sources), "GATEWAY_PORT": str(port)},
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://{host}:{port}"
        finally:
            server.terminate()
            server.wait()


def test_the_tests_of_all_patches_pass(sources: Path, address: str) -> None:
    """Red if a patch no longer does what its header says, or if two of them cannot be together."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    found = subprocess.run(
        [*command, "--rootdir", sources, sources / "tests"],
        cwd=sources,
        env=os.environ | {"PYTHONPATH": str(sources), "MINISTACK_ENDPOINT": address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout

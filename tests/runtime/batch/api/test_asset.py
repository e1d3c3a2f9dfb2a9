"""The functions need no more than Lambda has and the stack copies beside them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from inference_constructs.code_staging import stage_packages

#: In Lambda (https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html), or pure Python and copied.
PACKAGES = [
    *["boto3", "botocore", "s3transfer", "jmespath", "urllib3", "dateutil", "six"],
    *["aws_lambda_powertools", "typing_extensions", "multipart"],
]
COPIED = PACKAGES[-3:]


def place(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


@pytest.mark.parametrize("package", COPIED)
def test_what_is_copied_is_pure_python(package: str) -> None:
    where = place(package)
    files = where.rglob("*") if where.is_dir() else [where]
    assert [file for file in files if file.suffix in {".so", ".pyd"}] == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "module", ["batch.api.handler", "batch.authorizer.handler", "batch.submission.handlers"]
)
def test_a_function_is_imported_with_nothing_else(module: str, tmp_path: Path) -> None:
    for package in PACKAGES:
        where = place(package)
        (tmp_path / where.name).symlink_to(where)
    stage_packages((root() / "runtime" / "batch",), tmp_path)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {module}"

    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr

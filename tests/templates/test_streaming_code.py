"""The programs that the stack of streaming jobs brings: the sources of the jar, and its functions' code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

import inference_catalog as catalog
from inference_blueprints.resources import root
from inference_catalog.figures import regions_without_flink_logs
from inference_constructs.code_staging import stage_packages
from inference_constructs.streaming.job_program import JOB_MODULE, copy_sources

_POM = {"m": "http://maven.apache.org/POM/4.0.0"}


def test_the_build_has_the_sources_and_neither_tests_nor_former_output(tmp_path: Path) -> None:
    copy_sources(root() / "runtime" / "java", tmp_path)
    found = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*") if each.is_file()}
    assert "runtime/java/pom.xml" in found
    assert any(each.startswith("runtime/java/signal-reader/src/main/java/") for each in found)
    assert not [each for each in found if "/test/" in each or "target" in Path(each).parts]


def test_the_build_has_the_files_that_the_jar_shares_with_this_library(tmp_path: Path) -> None:
    """Maven skips resources that do not exist, so a jar would lack them silently."""
    copy_sources(root() / "runtime" / "java", tmp_path)
    here = root() / "runtime" / "java" / "endpoint-client" / "pom.xml"
    pom = ElementTree.parse(here)  # noqa: S314 - our own file
    [folder] = pom.iterfind(".//m:properties/m:contracts", _POM)
    [name] = pom.iterfind(".//m:properties/m:headers", _POM)
    shared = Path(f"{folder.text}/{name.text}".replace("${checkout}/", ""))
    assert (tmp_path / shared).read_bytes() == (root() / shared).read_bytes()


@pytest.mark.thorough
def test_the_code_of_the_functions_has_all_that_they_import(tmp_path: Path) -> None:
    """Lambda provides boto3, botocore and urllib3; whatever else they import has to be staged."""
    runtime = root() / "runtime"
    stage_packages((runtime / "streaming", runtime / "signals"), tmp_path)
    program = (
        "import sys, streaming.setup, streaming.probe, streaming.redrive, inference_contracts as l;"
        "print(l.__file__);"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'jinja2', 'pydantic', 'yaml'}))"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "AWS_DEFAULT_REGION": "us-west-2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [str(tmp_path / "inference_contracts" / "__init__.py"), ""]


def test_the_build_makes_the_module_that_the_sources_have() -> None:
    pom = (root() / "runtime" / "java" / "pom.xml").read_text("utf-8")
    assert f"<module>{JOB_MODULE}</module>" in pom
    assert (root() / "runtime" / "java" / JOB_MODULE / "pom.xml").is_file()


def test_flink_applications_have_logs_in_every_other_region() -> None:
    """The resource schemas of AWS, as cfn-lint has them, say which regions lack the type of resource."""
    kind = "AWS::KinesisAnalyticsV2::ApplicationCloudWatchLoggingOption"
    without = {
        region
        for region in catalog.regions()
        if kind not in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)
    }
    assert regions_without_flink_logs() == without

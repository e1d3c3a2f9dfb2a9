"""The code of each function is its own, also where two begin with the same package."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_

import app
from inference_blueprints.loading import load_blueprint
from inference_constructs.code_staging import function_code
from inference_runtime import runtime_directory
from tests.templates.conftest import BASE
from tests.templates.synthesis import CONTEXT
from tests.templates.test_batch_behind_a_door import with_queue


def files_of(assembly: Path, stack: str, logical_id: str) -> dict[str, bytes]:
    """Return the files of a function's code by their path."""
    template = json.loads((assembly / f"{stack}.template.json").read_text())
    key = template["Resources"][logical_id]["Properties"]["Code"]["S3Key"].removesuffix(".zip")
    assets = json.loads((assembly / f"{stack}.assets.json").read_text())["files"]
    folder = assembly / assets[key]["source"]["path"]
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_packages_and_documents_tell_the_code_of_functions_apart(tmp_path: Path) -> None:
    """Red if CDK takes the code of one function for that of another with the same first package."""
    folder = runtime_directory() / "watched_object"
    cdk_app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(cdk_app, "Code")
    codes = {
        "Plain": function_code(folder),
        "Packages": function_code(folder, packages=("tzdata",)),
        "Folders": function_code(folder, runtime_directory() / "image_build"),
        "First": function_code(folder, documents={"facts.json": "1"}),
        "Second": function_code(folder, documents={"facts.json": "2"}),
    }
    functions = {
        name: lambda_.Function(stack, name, code=code, handler="a.b", runtime=lambda_.Runtime.PYTHON_3_14)
        for name, code in codes.items()
    }
    ids = {
        name: stack.get_logical_id(cast("cdk.CfnElement", each.node.default_child))
        for name, each in functions.items()
    }
    cdk_app.synth()
    files = {name: files_of(tmp_path, "Code", each) for name, each in ids.items()}
    assert not any(each.startswith(("tzdata/", "image_build/", "facts")) for each in files["Plain"])
    assert "tzdata/zones" in files["Packages"]
    assert "image_build/handler.py" in files["Folders"]
    assert (files["First"]["facts.json"], files["Second"]["facts.json"]) == (b"1", b"2")


def test_the_functions_of_batch_have_their_configuration_behind_a_door(tmp_path: Path) -> None:
    """The door has a function of the same package, without it. Red if batch gets the code of that one."""
    document = copy.deepcopy(dict(BASE))
    with_queue(document["spec"])
    (tmp_path / "blueprint.yaml").write_text(json.dumps(document))
    loaded, outdir = load_blueprint(str(tmp_path / "blueprint.yaml")), tmp_path / "cdk.out"
    context = {**CONTEXT, "aws:cdk:bundling-stacks": ["try-Batch", "try-FrontDoor"]}
    app.synthesise(app.build_app(loaded, outdir=outdir, context=context))
    functions = [
        name
        for name, each in json.loads((outdir / "try-Batch.template.json").read_text())["Resources"].items()
        if each["Type"] == "AWS::Lambda::Function" and each["Properties"]["Handler"].startswith("batch.")
    ]
    assert functions
    for name in functions:
        found = files_of(outdir, "try-Batch", name)
        assert {"configuration.json", "aws_lambda_powertools/__init__.py", "tzdata/zones"} <= found.keys()

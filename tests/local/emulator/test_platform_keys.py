"""The life of the platform's own keys on the emulator: the first, a rotation, a step twice, and a failure."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import yaml

import app
from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.source import shipped
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import KeyRecord, key_hash, key_id
from inference_contracts.platform_keys import (
    OVERLAP_HOURS,
    OWNER_TAG,
    ROTATION_TABLE,
    read_keys,
    way_model,
)
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy

PLATFORM = "keys"


def put_up(emulator: Emulator, folder: Path, *models: str) -> None:
    """Deploy the stack of the keys for queues of these models, and the tables of the front door."""
    folder.mkdir()
    document = yaml.safe_load(shipped()["front-door"].read_text())
    spec = document["spec"]
    document["metadata"]["name"] = PLATFORM
    spec["environment"]["account"] = emulator.account
    del spec["observability"]
    principals = [f"arn:aws:iam::{emulator.account}:role/Red"]
    spec["teams"] = [{"name": "red", "monthlyBudgetUsd": 1, "principals": principals}]
    spec["frontDoor"] = {}
    spec["batch"] = {"queues": [{"name": f"of-{model}", "model": model} for model in models]}
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document))
    app.synthesise(app.build_app(load_blueprint(str(folder / "blueprint.yaml")), outdir=folder / "cdk.out"))
    deploy(
        emulator,
        folder / "cdk.out",
        log_path=folder / "deploy.log",
        on_line=lambda _: None,
        on_event=lambda _: None,
        stacks=[f"{PLATFORM}-PlatformKeys"],
    )


class Keys:
    """The secret of batch, and the table."""

    def __init__(self, emulator: Emulator) -> None:
        self.secrets, functions = emulator.client("secretsmanager"), emulator.client("lambda")
        [self.secret] = [
            each["ARN"]
            for each in self.secrets.list_secrets()["SecretList"]
            if {"Key": OWNER_TAG, "Value": "batch"} in each["Tags"]
        ]
        function = self.secrets.describe_secret(SecretId=self.secret)["RotationLambdaARN"]
        variables = functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        self.table = KeyTable(emulator.client("dynamodb"), variables[ROTATION_TABLE])
        self._functions, self._function = functions, function

    def step(self, step: str, version: str) -> None:
        """Call the function for a step, as Secrets Manager does."""
        event = {"Step": step, "SecretId": self.secret, "ClientRequestToken": version}
        answer = self._functions.invoke(FunctionName=self._function, Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()

    def now(self) -> dict[str, str]:
        """Return the keys that a program reads; none while the secret has the value that it was made with."""
        try:
            return dict(read_keys(self.secrets.get_secret_value(SecretId=self.secret)["SecretString"]))
        except ValueError:
            return {}

    def after(self, ready: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """Wait for other keys."""
        deadline = time.monotonic() + 300
        while not ready(found := self.now()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def record(self, key: str) -> KeyRecord:
        found = self.table.get(key_id(key) or "")
        assert found is not None
        return found

    def valid(self, key: str) -> bool:
        return key_hash(key) in self.record(key).hashes_at(time.time())

    def ended(self, key: str) -> bool:
        """Whether the last step has ended the old secret of a key after a day."""
        until = self.record(key).old_until
        return until is not None and until <= time.time() + OVERLAP_HOURS * 3600


def test_keys_are_made_rotated_and_stay_valid_over_failures(emulator: Emulator, tmp_path: Path) -> None:
    put_up(emulator, tmp_path / "first", "qwen3-8b")
    keys = Keys(emulator)
    first = keys.after(bool)["red"]
    assert keys.record(first).models == (way_model("batch", "qwen3-8b"),)

    version = keys.secrets.rotate_secret(SecretId=keys.secret)["VersionId"]
    second = keys.after(lambda found: found["red"] != first)["red"]
    assert keys.valid(first)
    assert keys.valid(second)
    keys.after(lambda found: keys.ended(found["red"]))

    before = keys.record(second)
    for step in ("createSecret", "finishSecret"):
        keys.step(step, version)
    assert (keys.now()["red"], keys.record(second)) == (second, before)

    # The function fails until somebody mends the secret's tag; programs have the old key meanwhile.
    keys.secrets.tag_resource(SecretId=keys.secret, Tags=[{"Key": OWNER_TAG, "Value": "nobody"}])
    keys.secrets.rotate_secret(SecretId=keys.secret)
    time.sleep(1)
    assert keys.now()["red"] == second
    assert keys.valid(second)
    keys.secrets.tag_resource(SecretId=keys.secret, Tags=[{"Key": OWNER_TAG, "Value": "batch"}])
    third = keys.after(lambda found: found["red"] != second)["red"]
    assert keys.valid(third)

    # Another model changes the function's version, and so starts a rotation.
    put_up(emulator, tmp_path / "second", "qwen3-8b", "qwen3-4b")
    fourth = keys.after(lambda found: found["red"] != third)["red"]
    assert keys.record(fourth).models == (way_model("batch", "qwen3-8b"), way_model("batch", "qwen3-4b"))
    assert keys.valid(third)

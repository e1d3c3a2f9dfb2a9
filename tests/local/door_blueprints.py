"""Shipped blueprints with a front door before their model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from inference_blueprints.spec.source import shipped
from tests.local.conftest import BLUEPRINTS

#: Public name of the model, and its price.
PUBLIC: Final = "chat"
RATES: Final = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1}


def cost(tokens_in: int, tokens_out: int) -> float:
    """Return the price of tokens in US dollars."""
    price_in, price_out = RATES.values()
    return (tokens_in * price_in + tokens_out * price_out) / 1e6


def behind_a_door(name: str, file: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    """Write a shipped blueprint with one model, to which a front door is added, and return the file.

    change: Changes the spec further.
    """
    document = yaml.safe_load(shipped()[name].read_text())
    spec = document["spec"]
    [model] = spec["models"]
    model["rates"] = RATES
    spec["network"] = yaml.safe_load(shipped()["front-door"].read_text())["spec"]["network"]
    spec["frontDoor"] = {"models": [{"name": PUBLIC, "to": [{"model": model["name"]}]}]}
    change(spec)
    file.write_text(yaml.safe_dump(document))
    return file


def usage(file: Path, variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what `blueprints usage` shows of each model.

    variables: Those of the run.
    """
    command = [*(str(BLUEPRINTS), "usage", str(file)), *("--by", "team", "--by", "model", "--output", "json")]
    shown = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return {each["model"]: each for each in json.loads(shown.stdout)["rows"]}

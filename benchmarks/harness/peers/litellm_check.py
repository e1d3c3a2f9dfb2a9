"""Imports what the benchmark runs of LiteLLM, and writes its version: ``litellm_check.py FILE``."""

import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

if __name__ == "__main__":
    importlib.import_module("litellm.proxy.proxy_server")
    Path(sys.argv[1]).write_text(json.dumps({"litellm": version("litellm")}), encoding="utf-8")

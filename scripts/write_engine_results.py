"""List the tests on real engines that exist in tests/engines/results.json and docs/real-engines.md.

``make generate`` runs this script. It runs no engine: new tests are listed as not run, and results of tests
that are gone are removed.
"""

from __future__ import annotations

import subprocess
import sys

from inference_blueprints.resources import root
from tests.plugins.engine_results import FOLDER


def main() -> None:
    """Write both files: pytest collects the tests, and its plugin writes."""
    options = ["-m", "engines", "--collect-only", "--engine-results", ".", "-p", "no:cacheprovider"]
    subprocess.run([sys.executable, "-m", "pytest", FOLDER, *options], cwd=root(), check=True)


if __name__ == "__main__":
    main()

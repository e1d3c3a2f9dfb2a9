#!/bin/sh
# Runs tests again and again, each time in a new process without repeats, and counts the runs that failed.
# Usage: PYTEST="pytest OPTIONS" sh scripts/deflake.sh RUNS FILE_OR_TEST...
set -eu
cd "$(dirname "$0")/.."
runs=$1
shift
case $runs in
  '' | *[!0-9]* | 0*) echo "deflake: N is the number of runs, a whole number above 0; got '$runs'" >&2; exit 2 ;;
esac
[ $# -gt 0 ] || { echo "deflake: name the tests: make deflake N=20 ONLY=tests/unit/spec/test_loader.py" >&2; exit 2; }
folder=build/deflake
mkdir -p "$folder"
failed=0
number=0
while [ "$number" -lt "$runs" ]; do
  number=$((number + 1))
  # The empty mark expression selects tests of every suite. PYTEST is a command with arguments.
  # shellcheck disable=SC2086
  if $PYTEST "$@" -m "" >"$folder/$number.log" 2>&1; then
    echo "run $number of $runs: $(tail -n 1 "$folder/$number.log")"
  else
    failed=$((failed + 1))
    echo "run $number of $runs: FAILED, see $folder/$number.log: $(tail -n 1 "$folder/$number.log")"
  fi
done
echo "$failed of $runs runs failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# Builds and tests the programs in Java (runtime/java), then tests them with real servers.
# Maven downloads from wherever the user's own settings say.
set -eu
cd "$(dirname "$0")/.."
missing=
for tool in javac mvn; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
if [ -n "$missing" ]; then
  echo "SKIPPED: the Java programs are neither built nor tested:$missing not found. Install a JDK of version 17 or newer, and Maven 3.8 or newer."
  exit 0
fi
# The job's tests start the Valkey server that Python's tests use.
program='from inference_local.emulator.serverless_cache.valkey_server import valkey_program; print(valkey_program())'
VALKEY_SERVER=$(.venv/bin/python -c "$program")
export VALKEY_SERVER
find runtime/java -name 'TEST-*.xml' -delete
# These tests start Kafka, Flink and servers: one that fails is repeated once, and named as pytest names it.
mvn --batch-mode --quiet --file runtime/java -Dsurefire.rerunFailingTestsCount=1 verify
find runtime/java -name 'TEST-*.xml' -exec grep -lE '<(flakyFailure|flakyError)' {} + | sed 's/^/RERUN /'
# ONLY has the names of files and tests, which are words.
# shellcheck disable=SC2086
"$@" ${ONLY:-tests/java}

#!/usr/bin/env bash
# engines.sh COMMAND...: runs the command with the variables that name servers of other engines to the tests
# (internal/testdb, Engine). A variable that is set stays. For the others a server is started and stopped
# around the command, where ENGINES names the script that can ("engines.sh start mysql9 PORT"), and without
# it the tests say what they skip. ISOTAP_TEST_ONLY=pg18 leaves one engine.
set -euo pipefail
port=${ENGINES_PORT:-25390}
only=${ISOTAP_TEST_ONLY:-}
started=()
stop() { for s in "${started[@]}"; do bash "$ENGINES" stop $s || true; done; }
trap stop EXIT
want() { # VARIABLE ENGINE NAME URL-BEGINNING OPTIONS
  [[ -n ${!1:-} || -z ${ENGINES:-} ]] && return
  [[ -n $only && $only != "$2" ]] && return
  EXTRA=$5 bash "$ENGINES" start "$3" "$port" >&2
  started+=("$3 $port")
  export "$1=$4@127.0.0.1:$port/"
  port=$((port + 1))
}
want ISOTAP_TEST_MYSQL_URL mysql mysql9 mysql://root --local-infile=1
want ISOTAP_TEST_MARIADB118_URL mariadb118 mariadb118 mysql://root --local-infile=1
for version in 12 14 16 17 18; do
  want "ISOTAP_TEST_PG${version}_URL" "pg$version" "pg$version" postgres://postgres "-c max_prepared_transactions=64 -c max_connections=200"
done
"$@"

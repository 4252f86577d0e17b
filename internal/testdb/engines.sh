#!/usr/bin/env bash
# engines.sh COMMAND...: runs the command with the variables that name servers of other engines to the tests
# (internal/testdb, Engine). A variable that is set stays. For the others a server is started and stopped
# around the command, where ENGINES names the script that can ("engines.sh start mysql9 PORT"), and without
# it the tests say what they skip.
set -euo pipefail
port=${ENGINES_PORT:-25390}
started=()
stop() { for s in "${started[@]}"; do bash "$ENGINES" stop $s || true; done; }
trap stop EXIT
want() { # VARIABLE NAME
  [[ -n ${!1:-} || -z ${ENGINES:-} ]] && return
  EXTRA=--local-infile=1 bash "$ENGINES" start "$2" "$port" >&2
  started+=("$2 $port")
  export "$1=mysql://root@127.0.0.1:$port/"
  port=$((port + 1))
}
want ISOTAP_TEST_MYSQL_URL mysql9
want ISOTAP_TEST_MARIADB118_URL mariadb118
"$@"

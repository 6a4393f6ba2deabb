#!/bin/sh
# Writes new passwords to .env, which docker compose reads. It replaces none.
set -eu
umask 077
cd -- "$(dirname -- "$0")"
[ ! -e .env ] || { echo ".env is there already" >&2; exit 1; }
secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
printf 'POSTGRES_PASSWORD=%s\nRPRIME_SESSION_SECRET=%s\n' "$(secret)" "$(secret)" >.env

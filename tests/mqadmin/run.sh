#!/bin/sh
# usage: run.sh LIB NAMESRV ADDR BROKER CLUSTER
# Runs the real mqadmin (the jars in LIB, with rocketmq-tools among them) over the commands of commands.txt against a broker,
# Bindery's or Apache's, and judges what it prints. Needs Java 17 or newer.
set -e
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
java -Xmx512m -Duser.home="$scratch" -Drocketmq.log.level=warn -cp "$1/*" "$here/Commands.java" \
  "$here/commands.txt" "$2" addr="$3" broker="$4" cluster="$5" run="$(date +%s)"

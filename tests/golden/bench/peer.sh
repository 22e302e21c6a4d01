#!/bin/sh
# This script stands for a program that times another library (bench --peer). It writes one right and one wrong result, and lines
# that are no results.
echo "arguments: $1 $2 $3 $4 $5 $6 $7 $8 $9 ${10} ${11}"
[ "$1" = allreduce ] || exit 3
for output; do :; done
cat >"$output" <<END
a library's own words
{"bytes": 1024, "mode": "eager", "place": "out-of-place", "us": 0.001, "wrong": 0}
{"bytes": 1024, "mode": "eager", "place": "out-of-place", "us": 0.0005, "wrong": 7}
{"bytes": 1024, "mode": "eager", "place": "in-place", "us": 0.002}
{"bytes": 2048, "mode": "eager", "place": "out-of-place", "us": 0.003, "wrong": 1}
{"bytes": 4096, "mode": "now", "place": "out-of-place", "us": 0.003}
{"bytes": 8192, "mode": "eager", "place": "out-of-place", "us": 0.003}
END

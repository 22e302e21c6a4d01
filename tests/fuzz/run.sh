#!/usr/bin/env bash
# Fuzzes the plan reader and the import of MSCCL's algorithms, from the shipped plans and schedules, those of MSCCL++ where
# they are, the algorithms of tests/msccl and the inputs kept in tests/fuzz, a certified plan among them: run.sh FUZZ_READ_PLAN FOLDER SECONDS [SEED], for example
#   cmake --preset asan && ninja -C build/asan fuzz_read_plan
#   tests/fuzz/run.sh build/asan/tests/fuzz_read_plan build/fuzz 3600 2
# The folder gets the corpus and what is found. Without a seed it has one of its own, so that a change is not judged by
# luck.
set -eu
fuzzer=$(realpath "$1") folder=$2 seconds=$3 seed=${4:-1}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder/corpus"
find "$root/plans/shipped" "$here" \( -name '*.json' -o -name '*.cbor' \) -size -40k -exec cp -u {} "$folder/corpus/" \;
theirs=$root/../shared/mscclpp-plans
[ ! -d "$theirs" ] || find "$theirs" -name '*.json' -size -16384c -exec cp -u {} "$folder/corpus/" \;
for name in $(python3 "$root/tests/msccl/algorithms.py" --names); do
  python3 "$root/tests/msccl/algorithms.py" "$name" 2 >"$folder/corpus/$name.xml"
done
cd "$folder" && exec "$fuzzer" -seed="$seed" -max_total_time="$seconds" -max_len=16384 -timeout=300 -rss_limit_mb=2048 \
  -print_final_stats=1 -verbosity=0 corpus

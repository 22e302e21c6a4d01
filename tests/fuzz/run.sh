#!/usr/bin/env bash
# This script runs a fuzzer from its seeds: run.sh FUZZER FOLDER OPTION OF LIBFUZZER...
# fuzz_read_plan fuzzes the plan reader, the compiler after it and the import of MSCCL's algorithms. Its seeds are the shipped
# plans and schedules, MSCCL++'s plans if they are there, the algorithms of tests/msccl and the inputs in tests/fuzz. fuzz_join
# fuzzes how ranks connect over TCP, from tests/fuzz/join. For example, an hour with a chosen seed:
#   cmake --preset asan && ninja -C build/asan fuzz_read_plan
#   tests/fuzz/run.sh build/asan/tests/fuzz_read_plan build/fuzz -max_total_time=3600 -seed=2
# The folder receives the seeds, the inputs that reached new code (corpus), from which the next run continues, and the findings. A
# run of -runs=N in a new folder is the same every time, with the same build.
set -eu
fuzzer=$(realpath "$1") folder=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder/seeds" "$folder/corpus"

seeds_of_plans() {
  find "$root/plans/shipped" "$here" \( -name '*.json' -o -name '*.cbor' \) -size -40k -exec cp -u {} "$folder/seeds/" \;
  theirs=$root/../shared/mscclpp-plans
  [ ! -d "$theirs" ] || find "$theirs" -name '*.json' -size -16384c -exec cp -u {} "$folder/seeds/" \;
  for name in $(python3 "$root/tests/msccl/algorithms.py" --names); do
    python3 "$root/tests/msccl/algorithms.py" "$name" 2 >"$folder/seeds/$name.xml"
  done
}
longest=16384
case $(basename "$fuzzer") in
  fuzz_join) cp -u "$here"/join/* "$folder/seeds/" && longest=1024 ;;
  *) seeds_of_plans ;;
esac
cd "$folder"
# The seeds are in the order of their names. libFuzzer would take them in the order of the folder, which differs between machines.
find seeds -type f | LC_ALL=C sort | paste -sd, >seeds.list
# The run has fixed addresses and ignores the clock, if the machine allows that.
same=$(setarch -R echo setarch -R 2>/dev/null) || same=
exec $same "$fuzzer" -seed=1 -reload=0 -seed_inputs=@seeds.list -max_len=$longest -timeout=300 -rss_limit_mb=2048 -print_final_stats=1 \
  -verbosity=0 "$@" corpus

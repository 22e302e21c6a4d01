#!/usr/bin/env bash
# Runs a fuzzer from its seeds. fuzz_read_plan fuzzes the plan reader, the compiler behind it and the import of MSCCL's
# algorithms, from the shipped plans and schedules, those of MSCCL++ where they are, the algorithms of tests/msccl and the inputs
# kept in tests/fuzz; fuzz_join how ranks meet over TCP, from tests/fuzz/join:
# run.sh FUZZER FOLDER OPTION OF LIBFUZZER..., for an hour with a seed of its own, for example
#   cmake --preset asan && ninja -C build/asan fuzz_read_plan
#   tests/fuzz/run.sh build/asan/tests/fuzz_read_plan build/fuzz -max_total_time=3600 -seed=2
# The folder gets what it begins from (seeds), the inputs that reached something new (corpus), from which the next run goes
# on, and what is found. A run of -runs=N in a new folder is the same every time, of the same build.
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
# In the order of their names: libFuzzer would take them in the order of the folder, which is another on every machine.
find seeds -type f | LC_ALL=C sort | paste -sd, >seeds.list
# At the same addresses and without looking at the clock, where the machine allows that.
same=$(setarch -R echo setarch -R 2>/dev/null) || same=
exec $same "$fuzzer" -seed=1 -reload=0 -seed_inputs=@seeds.list -max_len=$longest -timeout=300 -rss_limit_mb=2048 -print_final_stats=1 \
  -verbosity=0 "$@" corpus

#!/usr/bin/env bash
# Builds the fuzz target of the plan reader and of the import of MSCCL's algorithms with clang and its sanitizers, and
# runs it over the shipped plans, the algorithms of tests/msccl and the inputs kept in tests/fuzz:
# run.sh CLANG++ BUILD_DIR SECONDS [SEED]
# Without a seed it has one of its own, so that a change is not judged by luck.
set -eu
clang=$1 build=$2 seconds=$3 seed=${4:-1}
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$build/corpus"
sources=$(find "$root/compiler" -name '*.cpp')
flags="-std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I$root/compiler/include -I$root"
if [ ! -x "$build/read_plan" ] || [ -n "$(find "$root/compiler" "$here/read_plan.cpp" -newer "$build/read_plan" -type f)" ]; then
  # shellcheck disable=SC2086
  "$clang" $flags "$here/read_plan.cpp" $sources -lfmt -lpugixml -o "$build/read_plan"
fi
find "$root/plans/shipped" "$here" \( -name '*.json' -o -name '*.cbor' \) -size -40k -exec cp -u {} "$build/corpus/" \;
for name in $(python3 "$root/tests/msccl/algorithms.py" --names); do
  python3 "$root/tests/msccl/algorithms.py" "$name" 2 >"$build/corpus/$name.xml"
done
# What is found ends with 1: the code that libFuzzer would take, 77, says that a test was skipped.
cd "$build" && exec ./read_plan -seed="$seed" -max_total_time="$seconds" -max_len=16384 -timeout=300 -rss_limit_mb=2048 \
  -error_exitcode=1 -print_final_stats=1 -verbosity=0 corpus

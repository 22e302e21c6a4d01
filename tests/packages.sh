#!/usr/bin/env bash
# This script makes the packages of a build, unpacks those for Debian into a folder, and builds and runs projects that use only
# what is in them: packages.sh BUILD_DIR C++-COMPILER
set -eu
for program in dpkg-shlibdeps file; do
  command -v $program >/dev/null || { echo "skipped: no $program on this machine (apt-get install dpkg-dev file)"; exit 77; }
done
command -v make >/dev/null || export CMAKE_GENERATOR=Ninja
build=$1 compiler=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
# run <log> <command>: runs a command, and shows what it wrote if it fails.
run() {
  local log=$work/$1.log
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; fail "$*"; }
}

# The test packs fast and not small.
run cpack cpack --config "$build/CPackConfig.cmake" -B "$work/packages" \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -D CPACK_STRIP_FILES=OFF
packages=$work/packages
ls "$packages"/*.tar.gz >/dev/null || fail "there is no tarball"
declare -A files
for file in "$packages"/*.deb; do
  package=$(basename "$file")
  dpkg -x "$file" "$work/root"
  files[${package%%_*}]=$(dpkg -c "$file" | awk '!/^d/ { print $6 }')
done
# has <package> <file>
has() { grep -qE "^\./usr/$2( |\$)" <<<"${files[$1]:-}" || fail "package $1 has no $2"; }
has libchorale1 'lib/libchorale\.so\.1'
has libchorale1 'lib/chorale/nccl/libnccl\.so\.2'
has libchorale1 'share/chorale/plans/shipped/allreduce_ring_2\.json'
has libchorale-dev 'include/chorale/executor\.hpp'
has libchorale-dev 'lib/libchorale\.so'
has libchorale-dev 'lib/libchorale_executor\.a'
has libchorale-dev 'lib/cmake/Chorale/ChoraleConfig\.cmake'
has chorale 'bin/chorale'
has chorale 'share/bash-completion/completions/chorale'
has chorale 'share/zsh/site-functions/_chorale'
twice=$(printf '%s\n' "${files[@]}" | sort | uniq -d)
[ -z "$twice" ] || fail "several packages have these files: $twice"
# The tarball has the same files.
tar -tzf "$packages"/*.tar.gz | sed -n 's|^[^/]*/\(.*[^/]\)$|./usr/\1|p' | sort >"$work/tarball"
printf '%s\n' "${files[@]}" | sort | diff - "$work/tarball" >"$work/difference" || { cat "$work/difference"; fail "the tarball has other files"; }

# depends <package> <what>: checks a dependency. Those on shared libraries come from dpkg-shlibdeps.
depends() {
  dpkg -f "$packages/$1"_*.deb Depends | tr ',' '\n' | grep -qE "^ *$2( |\$)" || fail "$1 does not depend on $2"
}
version=$(dpkg -f "$packages"/chorale_*.deb Version)
depends libchorale1 libc6
depends libchorale1 'libfmt[0-9]+'
depends chorale "libchorale1 \(= $version\)"
depends chorale 'libfmt[0-9]+'
depends libchorale-dev "libchorale1 \(= $version\)"
# The package depends on everything that find_package(Chorale) looks for.
for found in nlohmann-json3-dev libfmt-dev libpugixml-dev libspdlog-dev libsodium-dev libboost-context-dev libboost-program-options-dev; do
  depends libchorale-dev "$found"
done

root=$work/root/usr
run configure cmake -S "$here/consumer" -B "$work/consumer" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$root"
grep -q "^Chorale_DIR:PATH=$root/" "$work/consumer/CMakeCache.txt" || fail "find_package(Chorale) finds another Chorale"
run build cmake --build "$work/consumer" --target app_threads author
"$work/consumer/author" >"$work/plan.json"
run check "$root/bin/chorale" check "$work/plan.json"
run compile "$root/bin/chorale" compile "$root/share/chorale/plans/allreduce_ring.cpp" --set ranks=4 -o "$work/ring.json"
run threads "$work/consumer/app_threads" "$work/ring.json"
run list "$root/bin/chorale" list allreduce_ring_2
grep -q "file: .*root/usr/.*/share/chorale/plans" "$work/list.log" || fail "the command does not use the plans of its package"
printf '#include <chorale/chorale.h>\nint main(void) { return chorale_abi() != CHORALE_ABI; }\n' >"$work/abi.c"
run c cc -I"$root/include" "$work/abi.c" -L"$root/lib" -lchorale -o "$work/abi"
LD_LIBRARY_PATH=$root/lib run abi "$work/abi"
echo "packages $(cd "$packages" && echo *.deb *.tar.gz)"

# tools/quickstart and tools/test source this file. It installs what is missing, configures and builds. It sets $root (the
# repository) and $build (the build folder). Each step that can take long prints its purpose and its duration.

set -u
failed_steps=()
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$root/build/dev}

say() { printf '%s\n' "$*"; }
die() {
  printf 'error: %s\n' "$1" >&2
  [ $# -gt 1 ] && printf 'help: %s\n' "$2" >&2
  exit 1
}

# Without a terminal, a running step prints a line every this many seconds.
tell_every=${tell_every:-30}

# tell_progress <log> <start>: prints the progress of a step every half minute, if its log reports any. It ends with the script.
tell_progress() {
  local log=$1 start=$2 next=$(($2 + tell_every)) count
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    [ "$SECONDS" -ge "$next" ] || continue
    next=$((SECONDS + tell_every))
    count=$(grep -oE '^\[ *[0-9]+/[0-9]+' "$log" 2>/dev/null | tail -n 1 | tr -d '[ ')
    printf '\n... %safter %d s' "${count:+${count%/*} of ${count#*/} }" $((SECONDS - start))
  done
}

# step <what> <log> <command...>: runs the command with its output in a log, and prints a line before and after. If it fails, it
# prints the end of the log and where the rest is.
step() {
  local what=$1 log=$2 start=$SECONDS teller="" status=0
  shift 2
  printf '%s ...' "$what"
  : >"$log"
  if [ ! -t 1 ]; then
    tell_progress "$log" "$start" &
    teller=$!
  fi
  "$@" >"$log" 2>&1 || status=1
  [ -n "$teller" ] && { kill "$teller"; wait "$teller"; } 2>/dev/null
  if [ $status != 0 ]; then
    printf ' failed after %d s\n' $((SECONDS - start))
    failed_steps+=("$log")
    tail -n 25 "$log" >&2
    printf 'the whole log: %s\n' "$log" >&2
    return 1
  fi
  # The last progress that was printed may be half a minute old.
  local all=$(grep -oE '^\[ *[0-9]+/[0-9]+' "$log" 2>/dev/null | tail -n 1 | cut -d/ -f2)
  printf ' done%s (%d s)\n' "${all:+, $all of $all}" $((SECONDS - start))
}

# The build needs these packages, here by their names in Debian 12.
packages="g++ cmake ninja-build python3 nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libpugixml-dev
  libboost-context-dev libboost-program-options-dev libsodium-dev libgtest-dev"

# missing_packages <packages...>: prints the packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf ' %s' "$package"
  done
}

# optional_packages: prints the packages of Debian that the rows of cmake/optional_parts.cmake name.
optional_packages() {
  sed -n 's/^chorale_part(/\n/; s/.*DEBIAN \([^)]*\)).*/\1/p' "$root/cmake/optional_parts.cmake"
}

# optional_packages_of <part>: prints the packages of Debian that one row names.
optional_packages_of() {
  sed -n "/^chorale_part($1 /,/)\$/s/.*DEBIAN \([^)]*\)).*/\1/p" "$root/cmake/optional_parts.cmake"
}

install_packages() {
  local missing
  missing=$(missing_packages $packages "$@")
  [ -z "$missing" ] && return
  command -v apt-get >/dev/null ||
    die "these packages are missing and there is no apt-get to install them:$missing" \
        "install them (or their equivalents) and run this again"
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing and need root to install:$missing" \
      "as root: apt-get install$missing"
    as_root=sudo
  fi
  local log=${TMPDIR:-/tmp}/chorale-setup.$$.log
  step "updating the package lists" "$log" $as_root apt-get update ||
    die "apt-get update failed" "check that there is a network, and that /etc/apt/sources.list* name a reachable mirror"
  step "installing$missing" "$log" $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing ||
    die "apt-get install failed" "a full disk? ($(df -h --output=avail / | tail -1 | tr -d ' ') free on /)"
  rm -f "$log"
}

# install_optional_packages [--only] [<packages>]: installs the packages, and without --only those that optional parts need, as far
# as this machine allows. The tests run without the others and name them.
install_optional_packages() {
  local missing package as_root="" log=${TMPDIR:-/tmp}/chorale-setup-optional.$$.log
  if [ "${1:-}" = --only ]; then shift; else set -- $(optional_packages) "$@"; fi
  missing=$(missing_packages "$@")
  [ -z "$missing" ] && return
  [ "$(id -u)" = 0 ] || as_root=sudo
  command -v apt-get >/dev/null && { [ -z "$as_root" ] || command -v sudo >/dev/null; } || {
    say "not installed, and what needs it is left out of the tests:$missing"
    return
  }
  step "updating the package lists" "$log" timeout 120 $as_root apt-get update || missing=""
  for package in $missing; do
    step "installing $package" "$log" timeout 600 $as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$package" || say "$package is not installed: what needs it is left out of the tests"
  done
  failed_steps=()  # the tests run anyway
  rm -f "$log"
}

check_machine() {
  local free_mb
  mkdir -p "$build" || die "the build folder $build cannot be made" "set BUILD_DIR to a writable folder"
  free_mb=$(df -m --output=avail "$build" | tail -1)
  [ "$free_mb" -ge 1500 ] || die "only $free_mb MB are free where $build is; the build needs about 1500 MB" \
    "free some space, or set BUILD_DIR to a folder on another disk"
  local version
  version=$("${CXX:-c++}" -dumpversion 2>/dev/null) || die "the C++ compiler '${CXX:-c++}' does not run" \
    "install g++ 12 or newer, or set CXX"
  printf 'int main() { auto f = []<class T>(T) requires(sizeof(T) > 0) {}; f(1); }\n' |
    "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null ||
    die "the C++ compiler '${CXX:-c++}' (version $version) does not know C++20" \
        "install g++ 12 or newer, or set CXX to one"
}

# parts_of <target>: prints what Ninja builds for the target, one per line.
parts_of() {
  ninja -C "$build" -t query "$1" | awk '/^  input:/ { inputs = 1; next } /^  outputs:/ { inputs = 0 } inputs { print $NF }'
}

# targets_of_label <label>: prints the targets that the tests of a label need, from the table that the configuration has written.
targets_of_label() {
  awk -v label="$1" '$1 ~ label { print $2 }' "$build/test_targets.txt" | sort -u
}

# build_project [<targets...> | --without <tests...> | --label <label>]: configures and builds the targets, or everything, or
# everything except these tests, or what the tests of a label need. A folder that was configured before keeps its settings. It is
# configured again, so that it gets the parts that were installed since then.
build_project() {
  local settings=()
  if [ ! -f "$build/build.ninja" ]; then
    # The build has line tables only and -O1, because full debug information and -O2 would each add a third of the compiler's
    # time.
    settings=(-G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"
      -DCHORALE_PRECOMPILED=ON -DCHORALE_UNITY=ON)
    # No kernel runs without a GPU. These types compile every branch of the kernels; the others only repeat it. The kernels end as
    # PTX, which halves the compiler's time; the test device_headers_ptx assembles some.
    [ -e /dev/nvidiactl ] || settings+=("-DCHORALE_CUDA_DTYPES=f32;bf16;fp8_e4m3;i32" -DCMAKE_CUDA_ARCHITECTURES=90-virtual)
  fi
  step "configuring" "$build/configure.log" cmake -S "$root" -B "$build" "${settings[@]}" ||
    die "cmake could not configure the project" "rm -r $build, if it is of another checkout or another generator"
  if [ "${1:-}" = --without ]; then
    shift
    local left_out="^tests/($(echo "$@" | tr ' ' '|'))\$"
    # These are the parts of "all". A name that ends in "/all" stands for a folder, so the folder of the tests is replaced by its
    # targets.
    set -- $({ parts_of all | grep -v '^tests/all$' && parts_of tests/all; } | grep -vE "$left_out")
  fi
  local label=
  if [ "${1:-}" = --label ]; then
    label=$2
    set -- $(targets_of_label "$label")
    [ $# -gt 0 ] || die "no test has a label like '$label'" "$build/test_targets.txt lists the labels"
    case " $* " in *" all "*) set -- ;; esac
  fi
  local what="building without the CUDA backend: no nvcc" minutes=seven
  grep -q '^CHORALE_CUDA:BOOL=OFF' "$build/CMakeCache.txt" && what="building without the CUDA backend: it is off"
  grep -q chorale_kernels "$build/build.ninja" && what="building with the CUDA backend" minutes="six to twelve"
  [ -n "$label" ] && minutes=seven
  [ $# -gt 0 ] || minutes=fifteen  # for the tests and all the rest
  [ -x "$build/tools/chorale" ] || what+=" (about $minutes minutes on two cores)"
  if [ -t 1 ]; then
    say "$what"
    ninja -C "$build" "$@" || die "the build failed"
  else
    step "$what" "$build/build.log" ninja -C "$build" "$@" || die "the build failed"
  fi
}

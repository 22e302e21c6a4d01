#!/usr/bin/env bash
# This script installs the build into a separate folder, builds the consumer project against it and runs the result: run.sh
# BUILD_DIR C++-COMPILER
set -eu
# The user's CMake has its default generator, which needs make. Without make use -G Ninja.
command -v make >/dev/null || export CMAKE_GENERATOR=Ninja
build=$1 compiler=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An incomplete build installs nothing.
sed "s|/libchorale_compiler\.a|/libchorale_not_built.a|" "$build/cmake_install.cmake" >"$work/cmake_install.cmake"
! cmake -DCMAKE_INSTALL_PREFIX="$work/half" -P "$work/cmake_install.cmake" >"$work/half.log" 2>&1 &&
  grep -q "libchorale_not_built.a" "$work/half.log" && grep -q "help: cmake --build .* --target chorale_installed" "$work/half.log" &&
  [ ! -e "$work/half" ] || { cat "$work/half.log"; echo "FAILED: half a build is installed"; exit 1; }
cmake --install "$build" --prefix "$work/installed" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
cmake -S "$here" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/installed" >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/build" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
cmake -S "$here/author_only" -B "$work/author_only" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$work/installed" >"$work/author_only.log" 2>&1 || { cat "$work/author_only.log"; exit 1; }
cmake --build "$work/author_only" >"$work/author_only.log" 2>&1 || { cat "$work/author_only.log"; exit 1; }
# If a component does not exist, the message lists those that do.
cmake -S "$here/author_only" -B "$work/author_only" -DCMAKE_PREFIX_PATH="$work/installed" -DCOMPONENT=exekutor 2>&1 |
  grep -q "there is no component exekutor" || { echo "FAILED: an unknown component is not named"; exit 1; }
# With nvcc's default language the headers say which language they need.
! "$compiler" -std=c++17 -fsyntax-only -I"$work/installed/include" -x c++ - <<<'#include <chorale/executor.hpp>' \
  2>"$work/old.log" && grep -q "needs C++20" "$work/old.log" || { echo "FAILED: C++20 is not asked for"; exit 1; }
[ -s "$work/installed/share/chorale/LICENSE" ] || { echo "FAILED: the license is not installed"; exit 1; }
"$work/build/author" >"$work/plan.json"
"$work/installed/bin/chorale" check "$work/plan.json"
"$work/installed/bin/chorale" run "$work/plan.json" --ranks 2 --bytes 4K --no-times
"$work/installed/bin/chorale" compile "$here/../../plans/allreduce_ring.cpp" --set ranks=4 -o "$work/ring.json"
"$work/build/app_threads" "$work/ring.json"
"$work/build/app_survivors"
"$work/build/app_sanitized"
if [ -x "$work/build/app_mpi" ] && command -v mpirun >/dev/null; then
  plan=$work/installed/share/chorale/plans/shipped/allreduce_ring_2.json
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 "$work/build/app_mpi" "$plan"
  if "$work/installed/bin/chorale" doctor | grep -q "built in, UCX .* loads"; then
    "$work/installed/bin/chorale" compile "$here/../../plans/allreduce_two_level.cpp" --set ranks=4 --set gpus_per_node=2 \
      -o "$work/two_hosts.json"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe \
      -n 2 env CHORALE_HOST=a "$work/build/app_mpi" "$work/two_hosts.json" : \
      -n 2 env CHORALE_HOST=b "$work/build/app_mpi" "$work/two_hosts.json"
  else
    echo "skipped: app_mpi on two hosts, there is no UCX on this machine"
  fi
  # Ranks that share no memory receive an error, even if their hosts have the same name.
  printf '#!/bin/sh\nmount -t tmpfs tmpfs /dev/shm && exec "$@"\n' >"$work/apart"
  chmod +x "$work/apart"
  if unshare -m "$work/apart" true 2>/dev/null; then
    ! OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --mca btl tcp,self --oversubscribe \
      -n 1 env CHORALE_HOST=a "$work/build/app_mpi" "$plan" : \
      -n 1 unshare -m "$work/apart" env CHORALE_HOST=a "$work/build/app_mpi" "$plan" >"$work/apart.log" 2>&1
    grep -q "share no memory" "$work/apart.log" || { cat "$work/apart.log"; exit 1; }
  else
    echo "skipped: app_mpi with memory apart, this user may not mount"
  fi
else
  echo "skipped: app_mpi, there is no MPI on this machine"
fi
"$work/installed/bin/chorale" bench allgather --ranks 2 --bytes 4K --no-times
# If MPI is missing, the message says whether this machine or the installed Chorale lacks it.
asks_for_mpi() {
  cmake -S "$here" -B "$work/build" -DNEEDS_MPI=ON "$@" >"$work/mpi.log" 2>&1
}
mpi_targets=$(find "$work/installed" -name ChoraleMpiTargets.cmake)
if [ -n "$mpi_targets" ]; then
  ! asks_for_mpi -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON && tr -s ' \n' '  ' <"$work/mpi.log" | grep -q "find_package(MPI) does not find it" ||
    { cat "$work/mpi.log"; echo "FAILED: that this machine has no MPI is not said"; exit 1; }
  rm "$mpi_targets"
fi
! asks_for_mpi && tr -s ' \n' '  ' <"$work/mpi.log" | grep -q "was built without MPI" ||
  { cat "$work/mpi.log"; echo "FAILED: that this Chorale was built without MPI is not said"; exit 1; }

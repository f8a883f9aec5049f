#!/usr/bin/env bash
# Builds a program and a plugin against an installed prefix, by pkg-config and by CMake, with both compilers.
# usage: run.sh <prefix>. The last line is `N passed, N failed`.
set -uo pipefail
source=$(cd "$(dirname "$0")" && pwd)
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name trellis-sdk.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir trellis)
unset TRELLIS_PLUGIN_PATH
export XDG_DATA_HOME=$work/empty XDG_CONFIG_HOME=$work/empty
passed=0 failed=0
warnings='-Wall -Wextra -Wpedantic -Werror'

check() {
  local name=$1
  shift
  if "$@" >log 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $name: $*"
    cat log
  fi
}

one_export() {
  [ "$(nm --dynamic --defined-only "$1" | awk '{ print $3 }')" = trl_plugin_entry_v1 ]
}

# shellcheck disable=SC2046,SC2086
by_pkg_config() {
  local cc=$1 cxx=$2
  "$cxx" -std=c++20 $warnings "$source/consumer.cpp" -o consumer $(pkg-config --cflags --libs trellis) &&
    LD_LIBRARY_PATH=$libdir ./consumer &&
    "$cc" -std=c11 $warnings -shared "$source/minimal.c" -o minimal.so $(pkg-config --cflags --libs trellis-sdk) &&
    one_export minimal.so
}

by_cmake() {
  cmake -G Ninja -S "$source" -B "cmake-$1" -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_COMPILER="$2" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "cmake-$1" && "cmake-$1/consumer" && one_export "cmake-$1/minimal.so"
}

for compilers in 'gcc g++' 'clang clang++'; do
  # shellcheck disable=SC2086
  check "pkg-config, $compilers" by_pkg_config $compilers
  # shellcheck disable=SC2086
  check "cmake, $compilers" by_cmake $compilers
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]

#!/usr/bin/env bash
# Every project that `trellis plugin new` writes, untouched, with both compilers: it builds without a warning and passes its
# own tests, the validator among them.
# usage: new.sh <prefix>. The last line is `N passed, N failed`.
set -uo pipefail
prefix=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name trellis-sdk.pc)")
export PKG_CONFIG_PATH PATH=$prefix/bin:$PATH XDG_DATA_HOME=$work/empty XDG_CONFIG_HOME=$work/empty
unset TRELLIS_PLUGIN_PATH
passed=0 failed=0

# project <name> <kind> <language>: made and built with $CC and $CXX, and its tests pass.
project() {
  trellis plugin new "$1" --kind "$2" --lang "$3" && cd "$1" && meson setup build && meson compile -C build &&
    trellis plugin check build/"$1".trellis.toml && meson test -C build --print-errorlogs
}

for compilers in 'gcc g++' 'clang clang++'; do
  export CC=${compilers% *} CXX=${compilers#* }
  for what in 'operator c++' 'operator c' 'builder c++' 'softmax c++' 'trainer c++' 'trainer c' 'initializer c++'; do
    # shellcheck disable=SC2086
    if (project "acme-$CC-${what%% *}-$([ "${what#* }" = c ] && echo c || echo cpp)" $what) >log 2>&1; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "failed: $CC $what"
      cat log
    fi
  done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]

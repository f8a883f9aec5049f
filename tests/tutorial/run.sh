#!/usr/bin/env bash
# Does what docs/first-op-pack.md says, from the text itself, with an installed prefix in an empty folder.
# usage: run.sh <prefix> [text]. The last line is `N passed, N failed`.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd)
text=$(realpath "${2:-$here/../../docs/first-op-pack.md}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name trellis-sdk.pc)")
export PKG_CONFIG_PATH PATH=$prefix/bin:$PATH XDG_DATA_HOME=$work/data XDG_CONFIG_HOME=$work/config
unset TRELLIS_PLUGIN_PATH
mkdir "$work/empty" && cd "$work/empty" && python3 "$here/steps.py" "$text"

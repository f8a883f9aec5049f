#!/usr/bin/env bash
# The op pack of examples/ as its author builds it: against an installed prefix, outside the tree, with both compilers;
# then a tagger with its operators, builder and trainer. Nothing of the sources is seen.
# usage: run.sh <prefix>. The last line is `N passed, N failed`.
set -uo pipefail
pack=$(cd "$(dirname "$0")/../../examples/op-pack" && pwd)
prefix=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name trellis-sdk.pc)")
export PKG_CONFIG_PATH
export PATH=$prefix/bin:$PATH XDG_DATA_HOME=$work/empty XDG_CONFIG_HOME=$work/empty
unset TRELLIS_PLUGIN_PATH CC CXX
passed=0 failed=0

# check <name> <command>...: the command succeeds; its output is in the file `log`.
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

# refused <exit code> <text> <command>...: that exit code, and the text on standard error alone.
refused() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" >out 2>err || got=$?
  cat out err
  [ "$got" = "$code" ] && grep -qF -e "$text" err
}

one_export() {
  [ "$(nm --dynamic --defined-only build/acme-pack.so | awk '{ print $3 }')" = trl_plugin_entry_v1 ]
}

# Compilers are told of the prefix only: a path into the tree would be a way around the SDK.
no_path_into_the_tree() {
  ! sed "s|$prefix||g" build/compile_commands.json build/build.ninja | grep -F -e "$(dirname "$(dirname "$pack")")"
}

build_pack() {
  CC=$1 CXX=$2 meson setup build --werror && meson compile -C build
}

describes() {
  trellis op describe "$1" --plugins trellis.toml --json >described &&
    grep -qF -e "\"plugin\": \"acme-pack\"" described && grep -qF -e "\"kind\": \"$2\"" described
}

corpus() {
  for _ in $(seq 40); do
    echo 'I|PRON saw|VERB the|DET saw|NOUN'
    echo 'the|DET saw|NOUN saw|VERB you|PRON'
  done
}

train() {
  trellis train tagger --plugins trellis.toml --train corpus.txt --dev corpus.txt --out model.safetensors \
    --embedding 8 --hidden 8 --mlp 8 --dropout 0 "$@"
}

learns() {
  train --builder acme.mgu --activation "$1" --trainer acme.lion --lr 0.01 --epochs 10 >trained && cat trained &&
    [ "$(tail -n 1 trained)" = 'dev accuracy 100.00 %' ]
}

predicts() {
  [ "$(echo 'I saw the saw' | trellis predict tagger --model model.safetensors "$@")" = \
    'I|PRON saw|VERB the|DET saw|NOUN' ]
}

for compilers in 'gcc g++' 'clang clang++'; do
  place="$work/a place of its own/${compilers#* }"
  mkdir -p "$place"
  cp -r "$pack/." "$place"
  cd "$place" || exit 1
  corpus >corpus.txt
  # shellcheck disable=SC2086
  check "$compilers: builds" build_pack $compilers
  check "$compilers: sees the prefix only" no_path_into_the_tree
  check "$compilers: one export" one_export
  check "$compilers: can be inspected" trellis plugin inspect build/acme-pack.trellis.toml
  check "$compilers: operator in C++" describes acme.swish operator
  check "$compilers: operator in C" describes acme.hard_tanh operator
  check "$compilers: trainer" describes acme.lion trainer
  check "$compilers: builder" describes acme.mgu builder
  check "$compilers: keeps every contract" trellis --quiet plugin validate build/acme-pack.trellis.toml --level 10
  check "$compilers: learns with swish" learns acme.swish
  check "$compilers: predicts" predicts --plugins trellis.toml
  check "$compilers: learns with hard_tanh" learns acme.hard_tanh
done

# What an experiment names and what there is must agree.
check 'a model needs its plugins' refused 1 "was trained with plugin acme-pack 1.0.0, which is not loaded" \
  trellis predict tagger --model model.safetensors
check 'beside the shipped ones' predicts --plugin build/acme-pack.trellis.toml
sed -i 's/^trainers = .*/missing-pack = "^1.0"/' trellis.toml
check 'a plugin that is missing' refused 1 "missing-pack" trellis op list --plugins trellis.toml
sed -i '/^missing-pack/d' trellis.toml
check 'a plugin that nobody named is not there' refused 2 "no trainer 'adam'" train
sed -i 's/\^1\.0/^2.0/' trellis.toml
check 'a version that does not fit' refused 1 "^2.0" trellis op list --plugins trellis.toml
echo "$passed passed, $failed failed"
[ $failed = 0 ]

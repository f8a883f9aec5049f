# Shared by ./run, ./test and .ci/run, which source it from the root of the tree.

# install_packages <need>...: the packages of packages.txt that are missing, with apt-get.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: packages.txt lists what is needed" >&2
    return 0
  fi
  local need package missing=()
  for need in "$@"; do
    for package in $(awk -v need="$need" '$1 == need { print $2 }' packages.txt); do
      [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "installing ${missing[*]}"
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get -q update </dev/null
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null
}

# configure <build folder> <option>...: sets the folder up, or only the options when it exists.
configure() {
  local folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then
    [ $# -eq 0 ] || meson configure "$folder" "$@"
  else
    meson setup "$folder" "$@"
  fi
}

# run_tests <build folder> <argument of meson test>...: the last line is `N passed, N failed`.
# `layout` may hold a command to run it under.
run_tests() {
  local folder=$1 status=0
  shift
  rm -f "$folder"/meson-logs/testlog*.json
  ${layout:-} meson test -C "$folder" --print-errorlogs "$@" </dev/null || status=$?
  python3 .ci/count.py "$folder" || status=1
  return $status
}

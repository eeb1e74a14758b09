#!/usr/bin/env bash
# Installs what is missing, builds the example for this CPU and trains a transformer on a text:
#   examples/run.sh [--quick] [--text FILE] [--tokens N] [--budget 80MiB] ...    (--help says all)
# Status 0: it learned, within the bytes that were planned, by gradients with the bits of plain
# backpropagation.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/examples

# shellcheck source=cmake/packages.sh
source "$root/cmake/packages.sh"

build_example() {
  local generator=()
  if [[ ! -e $build/CMakeCache.txt ]] && has_command ninja; then generator=(-G Ninja); fi
  cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DSTREAMBP_MARCH=native -DSTREAMBP_BUILD_TESTS=OFF -DSTREAMBP_BUILD_BENCH=OFF
  cmake --build "$build" --target example_train_text
}

require g++ cmake ninja-build libeigen3-dev libcli11-dev
mkdir -p "$build"
# The reader waits for the training, not for these lines; they are shown when something fails.
echo "building train_text (about a minute)"
build_example > "$build/build.log" 2>&1 || { cat "$build/build.log" >&2; exit 1; }
exec "$build/examples/train_text" --text "$root/examples/text/king_james.txt" \
  --losses "$build/losses.tsv" "$@"

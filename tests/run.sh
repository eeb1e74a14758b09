#!/usr/bin/env bash
# Installs what is missing, builds every test and runs it: for AVX2 all of them, for AVX-512 those
# that compare bits. Needs no option; ends with ctest's closing lines and status 0 if all passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

has_header() {
  local root
  for root in ${CPATH//:/ } ${CMAKE_PREFIX_PATH//[:;]/ } /usr /usr/local; do
    [[ -e $root/$1 || -e $root/include/$1 ]] && return 0
  done
  return 1
}

missing_packages() {
  command -v g++ > /dev/null || echo g++
  command -v cmake > /dev/null || echo cmake
  command -v ninja > /dev/null || echo ninja-build
  has_header eigen3/Eigen/Core || echo libeigen3-dev
  has_header doctest/doctest.h || echo doctest-dev
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header benchmark/benchmark.h || echo libbenchmark-dev
}

# Root, or root by sudo.
as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

install_missing() {
  local packages
  mapfile -t packages < <(missing_packages)
  [[ ${#packages[@]} == 0 ]] && return
  echo "missing: ${packages[*]}"
  if command -v apt-get > /dev/null && { [[ $(id -u) == 0 ]] || command -v sudo > /dev/null; }; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -qq -y --no-install-recommends "${packages[@]}"
  fi
  mapfile -t packages < <(missing_packages)
  # Make serves where there is no Ninja.
  if [[ ${packages[*]/ninja-build/} =~ [a-z] ]]; then
    echo "tests/run.sh: install these first (names as in Debian): ${packages[*]}" >&2
    exit 1
  fi
}

cpu_has_avx512() {
  local flag
  for flag in avx512f avx512bw avx512cd avx512dq avx512vl; do
    grep -qsw "$flag" /proc/cpuinfo || return 1
  done
}

jobs=$(nproc)
results=()

# configure FOLDER [OPTION...]
configure() {
  local folder=$1 generator=()
  shift
  if [[ ! -e $folder/CMakeCache.txt ]] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
  cmake -S . -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "$@"
}

# run_tests NAME FOLDER [OPTION...]: a failure is remembered, the rest still runs.
run_tests() {
  local name=$1 folder=$2 log=$2/ctest.log
  shift 2
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout 300 -j "$jobs" "$@" 2>&1 |
    tee "$log" || failed=1
  results+=("$name: $(grep -E '^[0-9]+% tests passed' "$log" || echo 'no tests')")
}

failed=0
install_missing

configure build/tests -DSTREAMBP_BUILD_EXAMPLES=OFF -DSTREAMBP_BUILD_BENCH=OFF
cmake --build build/tests -j "$jobs"
run_tests "all tests ($(sed -n 's/^STREAMBP_MARCH:STRING=//p' build/tests/CMakeCache.txt))" build/tests

# The flags decide the bits: what compares them is compiled for AVX-512 everywhere, and run where
# the CPU has it.
if [[ $(uname -m) == x86_64 ]]; then
  configure build/tests-avx512 -DSTREAMBP_MARCH=x86-64-v4 \
    -DSTREAMBP_BUILD_EXAMPLES=OFF -DSTREAMBP_BUILD_BENCH=OFF
  cmake --build build/tests-avx512 -j "$jobs" --target bit_tests
  if cpu_has_avx512; then
    run_tests "tests of bits (x86-64-v4)" build/tests-avx512 -L bits
  else
    results+=("tests of bits (x86-64-v4): compiled, not run, since this CPU has no AVX-512")
  fi
fi

if command -v clang++-19 > /dev/null; then
  if clang++-19 -std=c++20 -Wall -Wextra -march=x86-64-v3 -fsyntax-only -Iinclude \
    -isystem /usr/include/eigen3 -x c++ - <<< '#include <streambp/streambp.hpp>'; then
    results+=("clang++-19: reads the headers")
  else
    results+=("clang++-19: refuses the headers")
    failed=1
  fi
fi

echo
printf '%s\n' "${results[@]}"
exit $failed

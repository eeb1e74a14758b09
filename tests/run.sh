#!/usr/bin/env bash
# Installs what is missing, builds every test for AVX2 and runs it; with --all those that compare bits
# for AVX-512 as well. Ends with ctest's closing lines and status 0 if all passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source cmake/packages.sh

cpu_has_avx512() {
  local flag
  for flag in avx512f avx512bw avx512cd avx512dq avx512vl; do
    grep -qsw "$flag" /proc/cpuinfo || return 1
  done
}

# A compiler takes up to 2 GiB.
jobs=$(nproc)
gibibytes=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2> /dev/null || true)
if [[ -n $gibibytes ]] && ((jobs * 2 > gibibytes)); then jobs=$((gibibytes / 2)); fi
if ((jobs < 1)); then jobs=1; fi

results=()

# configure FOLDER [OPTION...]
configure() {
  local folder=$1 generator=()
  shift
  if [[ ! -e $folder/CMakeCache.txt ]] && has_command ninja; then generator=(-G Ninja); fi
  cmake -S . -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "$@"
}

# run_tests NAME FOLDER [OPTION...]: a failure is remembered, the rest still runs.
run_tests() {
  local name=$1 folder=$2 log=$2/ctest.log
  shift 2
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "$@" 2>&1 |
    tee "$log" || failed=1
  results+=("$name: $(grep -E '^[0-9]+% tests passed' "$log" || echo 'no tests')")
}

failed=0
require g++ python3 cmake ninja-build libeigen3-dev doctest-dev nlohmann-json3-dev libcli11-dev

configure build/tests -DSTREAMBP_BUILD_EXAMPLES=OFF -DSTREAMBP_BUILD_BENCH=OFF
cmake --build build/tests -j "$jobs"
run_tests "all tests ($(sed -n 's/^STREAMBP_MARCH:STRING=//p' build/tests/CMakeCache.txt))" build/tests

# The flags decide the bits: with --all what compares them is compiled for AVX-512, too, and run where
# the CPU has it.
if [[ ${1:-} == --all && $(uname -m) == x86_64 ]]; then
  configure build/tests-avx512 -DSTREAMBP_MARCH=x86-64-v4 \
    -DSTREAMBP_BUILD_EXAMPLES=OFF -DSTREAMBP_BUILD_BENCH=OFF
  cmake --build build/tests-avx512 -j "$jobs" --target bit_tests
  if cpu_has_avx512; then
    run_tests "tests of bits (x86-64-v4)" build/tests-avx512 -L bits
  else
    results+=("tests of bits (x86-64-v4): compiled, not run, since this CPU has no AVX-512")
  fi
fi

if has_command clang++-19; then
  if clang++-19 -std=c++20 -Wall -Wextra -march=x86-64-v3 -fsyntax-only -Iinclude \
    -isystem /usr/include/eigen3 -x c++ - <<< '#include <streambp/streambp.hpp>'; then
    results+=("clang++-19: reads the headers")
  else
    results+=("clang++-19: refuses the headers")
    failed=1
  fi
fi

if tests/rooms.sh; then
  results+=("rooms: includes point one way, tests stand where their headers do")
else
  failed=1
fi

if tests/refusals.sh; then
  results+=("refusals: each has a test of its sentence")
else
  failed=1
fi

if tests/quotes.sh && tests/options.sh && tests/commands.sh; then
  results+=("documentation: quotes the tested files, its tables of options are those of the headers")
else
  failed=1
fi

if mutants=$(tests/mutants/run.py --list); then
  results+=("mutants: $mutants, each text stands once in its header")
else
  echo "$mutants" >&2
  failed=1
fi

echo
printf '%s\n' "${results[@]}"
exit $failed

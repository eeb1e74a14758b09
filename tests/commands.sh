#!/usr/bin/env bash
# Every command that a README or a page of docs names stands in the list below: what continuous
# integration runs for it, word by word, or why it runs nothing. A command is an indented line, a line
# of a fence of the shell, or a piece of `code` that begins with a program's name. The same for the
# presets. New commands, list entries that no document has, and lines that .ci/run or tests/run.sh
# lost are errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

documents=(README.md examples/README.md bench/README.md docs/*.md)
scripts=(.ci/run tests/run.sh)

# COMMAND => run: LINE      it, or the same in little, is a line of .ci/run or tests/run.sh
# COMMAND => not run: WHY
list=$(
  cat << 'END'
tests/run.sh => run: tests/run.sh
examples/run.sh => run: examples/run.sh --quick
cmake --preset install => run: cmake --preset "$preset" > /dev/null
cmake --preset native => run: cmake --preset "$preset" > /dev/null
cmake --install build/install => run: cmake --install build/install --prefix build/install/prefix > /dev/null
cmake --build --preset native --target examples => run: cmake --build --preset native -j "$jobs" --target examples benches
g++ -std=c++20 -O3 -march=native -Iinclude -isystem /usr/include/eigen3 examples/first_gradient.cpp -o first_gradient -pthread => run: g++ $flags examples/first_gradient.cpp -o build/first_gradient
g++ -std=c++20 -O3 -march=native -Iinclude -isystem /usr/include/eigen3 examples/NAME.cpp -pthread => run: g++ $flags examples/first_gradient.cpp -o build/first_gradient
find_package(streambp REQUIRED) => not run: CMake's language; tests/consumer has it
target_link_libraries(research PRIVATE streambp::streambp) => not run: CMake's language; tests/consumer has it
mkdir -p build/bench => run: mkdir -p build/bench
flags="-std=c++20 -O3 -march=native -Iinclude -isystem /usr/include/eigen3 -pthread" => run: flags="-std=c++20 -O3 -march=native -Iinclude -isystem /usr/include/eigen3 -pthread"
g++ $flags bench/long_sequence.cpp -o build/bench/long_sequence => not run: minutes of compiling; the preset native builds it
g++ $flags bench/primitives.cpp -o build/bench/primitives -lbenchmark => not run: minutes of compiling; the preset native builds it
g++ $flags bench/recurrent_memory.cpp -o build/bench/recurrent_memory => not run: minutes of compiling; the preset native builds it
g++ $flags bench/shared_prompt.cpp -o build/bench/shared_prompt => not run: minutes of compiling; the preset native builds it
gcc -O2 -shared -fPIC bench/peers/peak_counter.c -o build/bench/libpeak_counter.so => run: gcc -O2 -shared -fPIC bench/peers/peak_counter.c -o build/bench/libpeak_counter.so
build/bench/long_sequence --tokens 8192 --budget 250MiB --profile => run: build/native/bench/long_sequence "${small[@]}" --tokens 512 --budget 64MiB --profile > /dev/null
build/bench/primitives --benchmark_filter='project.*threads:1$' --benchmark_format=json => run: build/native/bench/primitives --benchmark_filter='project.*threads:1$' --benchmark_format=json \
build/bench/recurrent_memory => run: build/native/bench/recurrent_memory > /dev/null
build/bench/recurrent_memory --train --text text.txt --tokens 1000000 => run: build/native/bench/recurrent_memory --train --text examples/text/king_james.txt --tokens 20000 \
build/bench/shared_prompt --prompt 4000 --completions 8 --length 200 => run: build/native/bench/shared_prompt --prompt 300 --completions 2 --length 40 > /dev/null
perf record -e cpu-clock build/bench/long_sequence ... => not run: a tool of the kernel's
python3 bench/side_by_side.py --python venv/bin/python --tokens 1024 2048 4096 8192 --peers plain checkpoint streambp --ours budget=200MiB budget=400MiB plain --rounds 3 --limit-gib 16 => not run: wants PyTorch, and hours
python3 bench/side_by_side.py --tokens 2048 --peers --ours budget=80MiB 'budget=80MiB chunk=512 stage=1' 'budget=80MiB chunk=512 stage=2' 'budget=80MiB no-keep' => run: python3 bench/side_by_side.py --long-sequence build/native/bench/long_sequence --tokens 512 \
END
)

programs='(sudo |cmake |ctest |g\+\+ |gcc |clang\+\+|python3? |pip |apt|make |ninja|git |perf |bash |sh |\./|[a-z]+/run\.sh|build/[^ `]+ -)'

# The commands of a document, one a line: continued lines joined, comments left out, `a && b` as two.
commands_of() {
  {
    awk '/^```/ { shell = !fence && /^```(sh|bash|shell|console)$/; fence = !fence; next }
         /─/ { next }  # a picture
         (fence && shell) || (!fence && /^    [^ ]/) || more { sub(/^ +/, ""); more = /\\$/
           sub(/ *\\$/, ""); sub(/ +# .*/, ""); printf "%s%s", $0, more ? " " : "\n" }' "$1"
    awk '/^```/ { fence = !fence; next } !fence && !/^    / { text = text " " $0 }
         END { gsub(/ +/, " ", text); n = split(text, part, "`")
               for (i = 2; i <= n; i += 2) print part[i] }' "$1" |
      grep -E "^$programs" || true
  } | sed 's/ && /\n/g'
}

failed=0
complain() {
  echo "tests/commands.sh: $*" >&2
  failed=1
}

lines=$(sed 's/^ *//' "${scripts[@]}")
declare -A how=() used=()
while IFS= read -r line; do how[${line%% => *}]=${line#* => }; done <<< "$list"

for document in "${documents[@]}"; do
  while IFS= read -r command; do
    if [[ -z $command ]]; then continue; fi
    used[$command]=1
    [[ -n ${how[$command]:-} ]] ||
      complain "$document names '$command'; let .ci/run run it, and say so in this script's list"
  done < <(commands_of "$document")
done
for command in "${!how[@]}"; do
  [[ -n ${used[$command]:-} ]] || complain "no document names '$command' any more"
  if [[ ${how[$command]} == "run: "* ]]; then
    grep -qxF -- "${how[$command]#run: }" <<< "$lines" ||
      complain "no line of ${scripts[*]} is '${how[$command]#run: }'"
  fi
done

presets=$(sed -n '/"configurePresets"/,/"buildPresets"/p' CMakePresets.json |
  tr '\n' ' ' | sed 's/"name"/\n"name"/g' | grep -v '"hidden": true' |
  sed -n 's/^"name": "\([^"]*\)".*/\1/p')
for preset in $presets; do
  grep -qE "^for preset in .*\b$preset\b" .ci/run || complain ".ci/run leaves out the preset '$preset'"
done
exit $failed

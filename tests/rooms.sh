#!/usr/bin/env bash
# Rooms point one way. ARCHITECTURE.md has a table of them, from the ground up; its column "includes"
# says which of the rooms above its row a room's headers include. Here every #include of a header is
# held against that table, both ways, so that no circle of rooms is possible; Eigen and cpu:: are named
# where the table says; and a test stands where the header stands that it tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
complain() {
  echo "tests/rooms.sh: $*" >&2
  status=1
}

# Tests that mirror no header. FILES => WHY
elsewhere=$(
  cat << 'END'
autodiff/attention.cpp => derived layers that read memory: derived.hpp, compiled apart
autodiff/recurrence.cpp => derived layers that carry a state: derived.hpp, compiled apart
autodiff/rows.cpp => derived layers that see their own row: derived.hpp, compiled apart
autodiff/kinks.cpp => one function in all forms that are derived: numbers, entries, rows
laws/wrong_*.cpp => layers and losses that each break one of the laws
END
)
# Folders whose tests are of no header: whole programs and what several rooms do together.
whole='behaviour|consumer|diagnostics|models'

mapfile -t headers < <(find include/streambp -name '*.hpp' | sort)
awk '
  function complain(what) {
    print "tests/rooms.sh: " what > "/dev/stderr"
    failed = 1
  }
  # The folder of a file, or the file itself where it stands in none.
  function room(path) {
    return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : path
  }
  # The names in a cell, each in backticks: name[1 .. returned].
  function names_in(cell,   n) {
    n = 0
    delete name
    while (match(cell, /`[^`]+`/)) {
      name[++n] = substr(cell, RSTART + 1, RLENGTH - 2)
      cell = substr(cell, RSTART + RLENGTH)
    }
    return n
  }

  FILENAME ~ /\.md$/ {
    if (!/^\|/) inside = 0
    else if (/^\| room \| includes \|/) inside = 1
    else if (inside && !/^\|-/) {
      split($0, cell, "|")
      if (names_in(cell[2]) != 1) complain(FILENAME ":" FNR ": a row is of one room")
      here = name[1]
      if (cell[3] ~ /every room above/) everything[here] = 1
      count = names_in(cell[3])
      for (i = 1; i <= count; ++i) {
        if (!(name[i] in row)) complain(FILENAME ":" FNR ": " name[i] " has no row above this one")
        allowed[here, name[i]] = FILENAME ":" FNR
      }
      row[here] = ++rows
    }
    next
  }

  FNR == 1 {
    file = FILENAME
    sub(/^include\/streambp\//, "", file)
    from = room(file)
    if (!(from in row) && !(from in seen))
      complain(FILENAME ": the table of rooms in ARCHITECTURE.md has no row for " from)
    seen[from] = 1
  }
  /^ *# *include *[<"]/ {
    target = $0
    sub(/^[^<"]*/, "", target)
    local = target ~ /^"/
    target = substr(target, 2)
    sub(/[>"].*/, "", target)
    if (target ~ /Eigen\// && from != "cpu")
      complain(FILENAME ":" FNR ": includes " target ": only cpu names Eigen")
    if (!local && !sub(/^streambp\//, "", target)) next
    if (local && file ~ /\//) {
      folder = file
      sub(/[^\/]+$/, "", folder)
      target = folder target
      while (sub(/[^\/]+\/\.\.\//, "", target)) continue
    }
    to = room(target)
    ++includes
    if (to == from) next
    if ((from, to) in allowed)
      used[from, to] = 1
    else if (!(from in everything && to in row && row[to] < row[from]))
      complain(FILENAME ":" FNR ": includes " target ": in the table of rooms in ARCHITECTURE.md, " \
               from " does not include " to)
  }
  /(^|[^a-z_])cpu::/ && from != "cpu" && !((from, "cpu") in allowed) {
    complain(FILENAME ":" FNR ": names cpu::, and does not include cpu")
  }
  END {
    for (key in allowed)
      if (!(key in used)) {
        split(key, part, SUBSEP)
        complain(allowed[key] ": no header of " part[1] " includes " part[2])
      }
    for (here in row)
      if (!(here in seen)) complain("the table of rooms has a row for " here ", which has no header")
    if (rows < 15 || includes < 500) complain("finds too little to have looked everywhere")
    exit failed
  }' ARCHITECTURE.md "${headers[@]}" || status=1

for test in tests/*/*.cpp; do
  name=${test#tests/}
  if [[ ${name%/*} =~ ^($whole)$ || -e include/streambp/${name%.cpp}.hpp ]]; then continue; fi
  known=
  while read -r files _; do
    # shellcheck disable=SC2053
    if [[ $name == $files ]]; then known=1; fi
  done <<< "$elsewhere"
  if [[ -z $known ]]; then
    complain "$test: there is no include/streambp/${name%.cpp}.hpp; what several headers do together" \
      "stands in tests/behaviour"
  fi
done
while read -r files _; do
  compgen -G "tests/$files" > /dev/null || complain "lists $files, and there is no such test"
done <<< "$elsewhere"

exit $status

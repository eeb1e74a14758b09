#!/usr/bin/env bash
# Tables of options name what the headers have: every table that begins with | `STRUCT` | lists, in its
# first column, the data members of that struct, all of them and no other; and every struct of options
# has a table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Members of all structs: lines "STRUCT MEMBER".
members() {
  find include/streambp -name '*.hpp' -print0 | xargs -0 awk '
    FNR == 1 { of = "" }
    /^struct [a-z_]+ \{/ { of = $2 }
    /^};/ { of = "" }
    of != "" && /^  [a-zA-Z]/ {
      sub(/ *\/\/.*/, "")
      if (!/;$/ || /\(/ || /^  (static|using|friend) /) next
      sub(/;$/, ""); sub(/ = .*/, ""); sub(/\{.*/, "")
      count = split($0, word, " ")
      for (i = 1; i <= count; ++i)  # of "double beta1, beta2" both
        if (word[i] ~ /,$/ || i == count) { sub(/,/, "", word[i]); print of, word[i] }
    }' | sort -u
}

# What tables list: lines "STRUCT MEMBER"; "STRUCT -" says that there is a table.
listed() {
  awk '
    FNR == 1 || !/^\|/ { inside = 0; of = "" }
    /^\|/ && !inside++ && /^\| `[a-z_]+` \|/ { of = $2; gsub(/`/, "", of); print of, "-"; next }
    of != "" && !/^\|[-|]+$/ {
      cell = $0; sub(/^\| /, "", cell); sub(/ \|.*/, "", cell)
      while (match(cell, /`[a-z_0-9]+`/)) {
        print of, substr(cell, RSTART + 1, RLENGTH - 2)
        cell = substr(cell, RSTART + RLENGTH)
      }
    }' README.md docs/*.md examples/README.md include/streambp/*/README.md | sort -u
}

have=$(members)
say=$(listed)
status=0
for struct in $( (awk '$2 == "-" { print $1 }' <<< "$say"; awk '$1 ~ /_options$/ { print $1 }' <<< "$have") | sort -u); do
  if ! difference=$(diff <(grep "^$struct " <<< "$have" || true) \
    <(grep "^$struct [^-]" <<< "$say" || true)); then
    printf 'the table of %s and its header differ (< only in the header, > only in the table):\n%s\n' \
      "$struct" "$difference" >&2
    status=1
  fi
done
exit $status

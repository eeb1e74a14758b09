#!/usr/bin/env bash
# Documentation quotes tested files: every fenced block below a line
#   <!-- quote FILE NAME -->
# must be what stands in FILE between `// [NAME]` and `// [/NAME]` (all of it for the name `file`).
# With --write the blocks are brought up to date; otherwise a difference is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

part_of() {  # FILE NAME
  if [[ $2 == file ]]; then
    cat "$1"
  else
    awk -v from="// [$2]" -v to="// [/$2]" '{ bare = $0; sub(/^ +/, "", bare) } bare == to { on = 0 }
      on { print } bare == from { on = 1; found = 1 } END { exit !found }' "$1"
  fi
}

with_quotes() {  # DOCUMENT
  local line file name fence
  while IFS= read -r line || [[ -n $line ]]; do
    printf '%s\n' "$line"
    if [[ $line =~ ^\<!--\ quote\ ([^ ]+)\ ([^ ]+)\ --\>$ ]]; then
      file=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
      IFS= read -r fence
      printf '%s\n' "$fence"
      part_of "$file" "$name" | sed '/^\/\/ \[.*\]$/d'
      while IFS= read -r line && [[ $line != '```' ]]; do :; done
      printf '```\n'
    fi
  done < "$1"
}

status=0
for document in README.md docs/*.md examples/README.md include/streambp/*/README.md; do
  [[ -e $document ]] || continue
  fresh=$(mktemp)
  with_quotes "$document" > "$fresh"
  if ! cmp -s "$fresh" "$document"; then
    if [[ ${1:-} == --write ]]; then
      cat "$fresh" > "$document"
    else
      diff "$document" "$fresh" || true
      echo "$document does not quote the tested files; run tests/quotes.sh --write" >&2
      status=1
    fi
  fi
  rm -f "$fresh"
done
exit $status

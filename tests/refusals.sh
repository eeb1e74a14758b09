#!/usr/bin/env bash
# Every refusal has a test: of each sentence that a header may throw or return, or that a static_assert
# or an #error says, the first five words stand somewhere in tests, and so do those of every longer part
# of it behind a value. Sentences that no test can provoke are listed below, each with the reason. A
# sentence without a test, and a line of the list that has no sentence any more or has a test by now,
# are errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# FIRST WORDS => WHY
unprovoked=$(
  cat << 'END'
cannot be looked at => an open file that the system knows nothing of
cannot be emptied => a file that was just opened for writing, and cannot be cut
is written, but its folder => a folder that cannot be brought to disk
safetensors files are little-endian => a big-endian machine
more bytes than 64 bits => compilers do not show it; tests/core/bytes.cpp sees that the program is refused
END
)

# What tests say, on one line, with literals in several pieces joined.
said() {
  find tests \( -name '*.[ch]pp' -o -name '*.sh' \) ! -name refusals.sh -print0 | sort -z |
    xargs -0 cat | tr '\n' ' ' | sed 's/"  *"//g'
}

mapfile -t headers < <(find include/streambp -name '*.hpp' | sort)
UNPROVOKED=$unprovoked awk '
  function first_words(text,   n, word, i) {
    gsub(/^[ :;,.)]+|[ :;,(]+$/, "", text)
    n = split(text, word, " ")
    text = word[1]
    for (i = 2; i <= n && i <= 5; ++i) text = text " " word[i]
    return text
  }
  # Ends the sentence that began at line `began`: its literals are part[1 .. parts].
  function finish(   i, words, first) {
    first = ""
    for (i = 1; i <= parts; ++i) {
      words = first_words(part[i])
      if (words == "" || (first != "" || weak) && split(words, word, " ") < 4) continue
      if (words in why) {
        used[words] = 1
        if (index(said, words) > 0)
          complain("is listed as one that no test can provoke, and has a test", words)
      } else if (index(said, words) == 0 && !(first in why))
        complain("no test says", words)
      if (first == "") first = words
    }
    if (first != "") ++sentences
    began = parts = joined = weak = 0
  }
  function complain(what, words) {
    print "tests/refusals.sh: " FILENAME ":" began ": " what ": " words > "/dev/stderr"
    failed = 1
  }
  BEGIN {
    lines = split(ENVIRON["UNPROVOKED"], line, "\n")
    for (i = 1; i <= lines; ++i) why[substr(line[i], 1, index(line[i], " => ") - 1)] = line[i]
  }
  NR == FNR { said = said $0; next }
  FNR == 1 {
    began = parts = joined = weak = 0
    starts = "throw |static_assert\\(|[^a-z_](fail|fail_by_system|give_up|refuse|refuse_tensor)\\("
    # Laws report, and plans are printed: what these put together refuses nothing.
    if (FILENAME !~ /\/laws\/|\/print\.hpp$/)
      starts = starts "|[^+]= sentence\\(|[?:] sentence\\(|^ *sentence\\(|return \"|[?:=] \""
  }
  {
    rest = $0
    if (!began && match(rest, /^ *#error "/)) {
      began = FNR
      part[parts = 1] = substr(rest, RLENGTH + 1, length(rest) - RLENGTH - 1)
      finish()
      next
    }
    while (rest != "") {
      if (!began) {
        if (!match(rest, starts) || index(substr(rest, 1, RSTART), "//")) next
        began = FNR
        weak = substr(rest, RSTART, RLENGTH) ~ /"/
        rest = substr(rest, RSTART)
      }
      letter = substr(rest, 1, 1)
      rest = substr(rest, 2)
      if (letter == "\"") {
        match(rest, /^([^"\\]|\\.)*"/)
        text = substr(rest, 1, RLENGTH - 1)
        rest = substr(rest, RLENGTH + 1)
        if (joined) part[parts] = part[parts] text
        else part[++parts] = text
        joined = 1
      } else if (letter == "/" && substr(rest, 1, 1) == "/")
        next
      else if (letter == ";" || letter == "{")
        finish()
      else if (letter != " ")
        joined = 0
    }
  }
  END {
    for (words in why)
      if (words != "" && !(words in used)) {
        print "tests/refusals.sh: the list has a sentence that no header says: " words > "/dev/stderr"
        failed = 1
      }
    if (sentences < 250) complain("finds too few sentences to have looked everywhere", sentences)
    exit failed
  }' <(said) "${headers[@]}"

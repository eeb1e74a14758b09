#!/bin/sh
# Whatever header of the library a program includes first: under an older standard than C++20 the
# first error is the sentence that says so. A compiler that is too old, if there is one, gets its own.
#
# first_error.sh COMPILER INCLUDE-DIR EIGEN-INCLUDE-DIR
set -u
compiler=$1 include=$2 eigen=$3

failed=0 ran=0

# says SENTENCE HEADER COMPILER [FLAGS...]
says() {
  sentence=$1 header=$2
  shift 2
  first=$(printf '#include <%s>\n' "$header" |
    "$@" -Wfatal-errors -fsyntax-only -I"$include" -isystem "$eigen" -x c++ - 2>&1 |
    grep -m 1 'error:')
  ran=$((ran + 1))
  printf '%s\n' "$first" | grep -qF -- "$sentence" && return
  echo "$header: the first error of $* is: $first"
  failed=$((failed + 1))
}

for header in $(cd "$include" && find streambp -name '*.hpp' | sort); do
  says 'streambp: the headers are C++20; compile with -std=c++20 or later' "$header" \
    "$compiler" -std=c++17
done
for old in clang++-14 clang++-15; do
  command -v $old > /dev/null || continue
  says 'streambp: this clang is too old' streambp/streambp.hpp $old -std=c++20
done
for old in g++-10 g++-11; do
  command -v $old > /dev/null || continue
  says 'streambp: this g++ is too old' streambp/streambp.hpp $old -std=c++20
done

echo "$ran headers, $failed wrong"
[ $ran -gt 0 ] && [ $failed -eq 0 ]

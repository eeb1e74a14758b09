#!/bin/sh
# Compiles every program of this folder. Its first line says what must come of it:
#   // expect: SENTENCE   it does not compile, and the first error holds the sentence
#   // compiles           it compiles
# A second line `// flags: FLAG` adds one of the host compiler.
#
# check.sh COMPILER INCLUDE-DIR EIGEN-INCLUDE-DIR [FLAGS...]; STREAMBP_ONLY=name runs one program,
# STREAMBP_SHARD=2/4 every fourth one, from the second.
set -u
compiler=$1 include=$2 eigen=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)

case $compiler in
  *nvcc*) pass=-Xcompiler; set -- -x cu -std=c++20 --cuda -o /dev/null "$@" ;;
  *) pass=; set -- -std=c++20 -fsyntax-only "$@" ;;
esac

shard=${STREAMBP_SHARD:-1/1}
failed=0 ran=0 number=0
for program in "$here"/${STREAMBP_ONLY:-*}.cpp; do
  number=$((number + 1))
  [ $(((number - ${shard%/*}) % ${shard#*/})) -eq 0 ] || continue
  name=$(basename "$program" .cpp)
  flags=$(sed -n "2s|^// flags: |$pass |p" "$program")
  sentence=$(sed -n '1s|^// expect: ||p' "$program")
  # shellcheck disable=SC2086
  output=$("$compiler" "$@" $flags -I"$include" -isystem "$eigen" "$program" 2>&1)
  status=$?
  first=$(printf '%s\n' "$output" | grep -m 1 'error:' || true)
  ran=$((ran + 1))
  if [ -z "$sentence" ]; then
    [ $status -eq 0 ] && continue
    echo "$name: does not compile: $first"
  elif [ $status -eq 0 ]; then
    echo "$name: compiles, but should say: $sentence"
  elif printf '%s\n' "$first" | grep -qF -- "$sentence"; then
    continue
  else
    echo "$name: the first error is: $first"
    echo "  and should say: $sentence"
  fi
  failed=$((failed + 1))
done
echo "$ran programs, $failed wrong"
[ $ran -gt 0 ] && [ $failed -eq 0 ]

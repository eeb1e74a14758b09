#!/bin/sh
# The laws of every layer and loss with other data: a right one keeps them with every seed. By hand:
#   tests/seeds.sh BUILD [FIRST [LAST]]
# runs the layers', losses', models', derived and wrong layers' tests of a build once a seed, 1 to 20
# unless told otherwise, and the examples that hold the laws. Ends in status 1 if any fails.
build=${1:?which build directory?}
first=${2:-1} last=${3:-20}
failed=0
for seed in $(seq "$first" "$last"); do
  for program in test_layers test_losses test_model test_autodiff test_laws; do
    path=$(find "$build" -name "$program" -type f | head -n 1)
    [ -n "$path" ] || { echo "no $program in $build"; exit 2; }
    STREAMBP_LAWS_SEED=$seed "$path" --minimal > "$build/seed.log" 2>&1 && continue
    failed=1
    echo "seed $seed, $program:"
    cat "$build/seed.log"
  done
  for program in custom_layer custom_loss hand_written_layers recurrent_layer; do
    path=$(find "$build" -name "$program" -type f | head -n 1)
    [ -n "$path" ] || continue
    STREAMBP_LAWS_SEED=$seed "$path" > "$build/seed.log" 2>&1 && continue
    failed=1
    echo "seed $seed, $program:"
    cat "$build/seed.log"
  done
done
exit $failed

# Two pictures from the tables that side_by_side.py leaves in its folder; run there.
set terminal pngcairo size 900,600 font "sans,11"
set datafile separator "\t"
set datafile missing "nan"
set key left top reverse Left
set grid
set logscale x 2
set logscale y
set xlabel "tokens"

columns(file) = int(system("head -n 1 ".file." | tr '\\t' '\\n' | wc -l"))

set output "seconds.png"
set ylabel "seconds of a step"
plot for [i=2:columns("seconds.tsv")] "seconds.tsv" using 1:i with linespoints \
  linewidth 2 pointtype 7 title columnheader(i)

set output "mebibytes.png"
set ylabel "MiB beyond weights and gradients"
plot for [i=2:columns("mebibytes.tsv")] "mebibytes.tsv" using 1:i with linespoints \
  linewidth 2 pointtype 7 title columnheader(i)

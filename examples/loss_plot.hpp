// Losses as a file of numbers and, where gnuplot is installed, as a picture.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

inline void write_losses(const std::string& path, const std::vector<double>& losses) {
  std::ofstream file(path);
  file << "# step\tloss in nats a byte\n";
  for (std::size_t i = 0; i < losses.size(); ++i) file << i + 1 << '\t' << losses[i] << '\n';
  if (!file.flush()) throw std::runtime_error("the losses cannot be written to '" + path + "'");
}

// Draws the file of write_losses and a line at `entropy`. False where there is no gnuplot.
inline bool draw_losses(const std::string& path, const std::string& picture, double entropy) {
  if (path.find('\'') != std::string::npos || std::system("command -v gnuplot > /dev/null") != 0)
    return false;
  std::FILE* gnuplot = ::popen("gnuplot", "w");
  if (gnuplot == nullptr) return false;
  std::fprintf(gnuplot,
               "set terminal pngcairo size 800,500\nset output '%s'\nset xlabel 'step'\n"
               "set ylabel 'loss (nats a byte)'\nset grid\n"
               "plot '%s' using 1:2 with lines linewidth 2 title 'training loss', "
               "%.6f with lines dashtype 2 title 'entropy of single bytes'\n",
               picture.c_str(), path.c_str(), entropy);
  return ::pclose(gnuplot) == 0;
}

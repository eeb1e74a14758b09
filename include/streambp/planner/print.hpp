// A plan as a table that a person can read.
#pragma once

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/bytes.hpp"
#include "fastest_plan.hpp"
#include "table.hpp"

namespace streambp {

namespace printing {

// What happens to a stage, in words; stages in a row with the same words share a line.
struct stage_words {
  position first = 0, last = 0;  // stages
  position begin = 0, end = 0;   // sections
  std::string from{}, cut{}, memories{}, outputs{}, chunk{};

  position count() const { return last - first; }
  position length() const { return (end - begin) / count(); }
  // "blocks.0.attention, 3 x 2": three stages of two sections, the first of them named.
  std::string sections() const {
    return end - begin == 1 ? from : sentence(from, ", ", count(), " x ", length());
  }
  bool like(const stage_words& o) const {
    return std::pair(length(), cut) == std::pair(o.length(), o.cut) && memories == o.memories &&
           outputs == o.outputs && chunk == o.chunk;
  }
};

inline bool has_sweep(const step_plan& p, sweep_kind kind, position stage) {
  return std::find(p.sweeps.begin(), p.sweeps.end(), sweep{kind, stage}) != p.sweeps.end();
}

inline stage_words words_of(const step_plan& p, position index) {
  const stage_plan& s = p.choice.stages[std::size_t(index)];
  const bool is_last = index + 1 == position(p.choice.stages.size());
  const bool with_head = is_last && p.choice.fuses_head;
  stage_words w{.first = index, .last = index + 1, .begin = s.first, .end = s.last};
  w.from = s.first < position(p.names.size()) ? p.names[std::size_t(s.first)]
                                              : sentence("section ", s.first);
  w.cut = s.first == 0                     ? "the input"
          : p.forced[std::size_t(s.first)] ? "a forced cut"
                                           : "a chosen cut";
  if (!has_sweep(p, sweep_kind::descend, index)) {
    w.memories = w.outputs = w.chunk = "no backward";
    return w;
  }
  w.memories = s.keeps_memory      ? "kept"
               : p.rebuilds(index) ? "recomputed"
               : is_last           ? "used at once"
                                   : "none";
  const bool all_kept = s.keeps_chunk && p.chunk_count() == 1;
  w.outputs = s.keeps_outputs || all_kept ? "kept" : with_head ? "used at once" : "recomputed";
  w.chunk = s.keeps_chunk ? "kept" : with_head ? "used at once" : "recomputed";
  return w;
}

inline void print_stages(std::ostream& out, const step_plan& p) {
  std::vector<stage_words> lines;
  for (position s = 0; s < position(p.choice.stages.size()); ++s) {
    stage_words w = words_of(p, s);
    if (!lines.empty() && lines.back().like(w)) {
      lines.back().last = w.last;
      lines.back().end = w.end;
    } else {
      lines.push_back(std::move(w));
    }
  }
  int widest = 26;
  for (const stage_words& w : lines) widest = std::max(widest, int(w.sections().size()));
  const auto line = [&](const char* label, const std::string& sections, const stage_words& w) {
    out << table_row(
        label, {{sections, widest}, {w.cut, 12}, {w.memories, 12}, {w.outputs, 12}, {w.chunk, 12}});
  };
  const position sections = p.choice.stages.empty() ? 0 : p.choice.stages.back().last;
  line("stages", sentence(p.choice.stages.size(), " over ", counted(sections, "section")),
       {.cut = "begins at", .memories = "memories", .outputs = "outputs", .chunk = "last chunk"});
  for (const stage_words& w : lines) line("", w.sections(), w);
}

struct byte_item {
  const char* name;
  std::size_t bytes;
  const char* what;
};

inline std::array<byte_item, 6> items_of(const byte_table& b) {
  return {{{"checkpoints", b.checkpoints, "rows where stages begin"},
           {"gradient stream", b.stream, "gradient of the rows between stages"},
           {"kept", b.kept, "memories, outputs and last chunks, until backward"},
           {"largest stage", b.region, "memories, gradients and one chunk, or the head's"},
           {"packing", b.packing, "operands of products, by thread"},
           {"sums", b.sums, "of losses, on the host: by row, grain and sample"}}};
}

inline void print_bytes(std::ostream& out, const step_plan& p) {
  const char* label = "bytes";
  const auto line = [&](const char* name, std::size_t bytes, const std::string& share,
                        const std::string& what) {
    out << table_row(std::exchange(label, ""),
                     {{name, 16}, {bytes_in_words(bytes), -10}, {share, -8}, {what, 0}});
  };
  for (const byte_item& item : items_of(p.bytes))
    if (item.bytes > 0) line(item.name, item.bytes, percent(item.bytes, p.peak()), item.what);
  line("peak", p.peak(), "",
       p.budget == 0 ? "no budget was set" : "of a budget of " + bytes_in_words(p.budget));
}

inline void print_limit(std::ostream& out, const step_plan& p) {
  const length_limit& l = p.limit;
  if (l.fits == 0) return;
  if (l.next == 0) {
    out << table_row("longer", sentence(l.fits, " tokens fit this budget too"));
    return;
  }
  const auto items = items_of(l.bytes);
  const byte_item& largest =
      *std::max_element(items.begin(), items.end(),
                        [](const byte_item& a, const byte_item& b) { return a.bytes < b.bytes; });
  out << table_row("longer", sentence("up to ", l.fits, " tokens fit this budget; ", l.next,
                                      " do not: they need ", bytes_in_words(l.bytes.total()), ","))
      << table_row("", sentence(bytes_in_words(largest.bytes), " of it (",
                                percent(largest.bytes, l.bytes.total()), ") ", largest.name));
}

inline std::string recomputation(const step_plan& p) {
  if (p.least_flops == 0) return "";
  return sentence(", ", percent(double(p.flops - p.least_flops), double(p.flops)),
                  " of them recomputation (plain backpropagation: ", flops_in_words(p.least_flops),
                  ")");
}

// A single head goes without saying.
inline void print_heads(std::ostream& out, const step_plan& p) {
  if (p.heads.size() < 2) return;
  std::string all;
  for (const std::string& name : p.heads) all += (all.empty() ? "" : ", ") + name;
  out << table_row("heads", all);
}

inline void print(std::ostream& out, const step_plan& p, const char* precision) {
  const packed& samples = p.shape.samples;
  out << table_row("plan", sentence(counted(samples.tokens(), "token"), " in ",
                                    counted(samples.segments(), "sample"), precision, ", ",
                                    counted(p.shape.threads, "thread")))
      << table_row("chunks",
                   sentence(p.chunk_count(), " of at most ", p.largest_chunk(), " rows; the head ",
                            p.choice.fuses_head ? "inside them, " : "", p.head_chunks.parts(),
                            " of at most ", p.largest_head_chunk()));
  print_heads(out, p);
  print_stages(out, p);
  print_bytes(out, p);
  out << table_row("FLOPs", flops_in_words(p.flops) + " a step" + recomputation(p));
  if (const std::size_t n = p.uncounted.size(); n > 0)
    out << table_row("", sentence("not counted: ", p.uncounted[0],
                                  n > 1 ? sentence(" and ", n - 1, " more layers") : "",
                                  ", whose own loops touch data"));
  print_limit(out, p);
}

}  // namespace printing

inline std::ostream& operator<<(std::ostream& out, const step_plan& p) {
  printing::print(out, p, "");
  return out;
}

template <class Scalar>
std::ostream& operator<<(std::ostream& out, const typed_plan<Scalar>& p) {
  printing::print(out, p, std::is_same_v<Scalar, double> ? ", fp64" : ", fp32");
  return out;
}

}  // namespace streambp

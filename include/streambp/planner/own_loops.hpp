// Layers that say counts_flops = true are sent rows without data. One whose own loop looks at them
// is refused in a sentence, where it would otherwise end the process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "cost.hpp"

namespace streambp {

namespace detail {

// Addresses that nobody has read or written, of which the system remembers whether somebody has.
class untouched_pages {
 public:
  // Looks at those of the first `looked_at` bytes.
  untouched_pages(std::size_t bytes, std::size_t looked_at) : size_(bytes) {
    if (size_ > most) return;
    start_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
    looked_at_ = std::min(size_, looked_at);
    in_core_.resize((looked_at_ + page - 1) / page);
  }
  ~untouched_pages() {
    if (mapped()) ::munmap(start_, size_);
  }
  untouched_pages(const untouched_pages&) = delete;
  untouched_pages& operator=(const untouched_pages&) = delete;

  bool mapped() const { return start_ != MAP_FAILED; }
  arena memory() const { return {static_cast<std::byte*>(start_), size_}; }
  bool touched() {
    return ::mincore(start_, looked_at_, in_core_.data()) == 0 &&
           std::any_of(in_core_.begin(), in_core_.end(), [](unsigned char c) { return c & 1; });
  }

 private:
  static constexpr std::size_t most = std::size_t(1) << 44;

  void* start_ = MAP_FAILED;
  std::size_t size_, looked_at_ = 0;
  std::vector<unsigned char> in_core_;
};

}  // namespace detail

// Sends one row through every type of section, as counting does, but with addresses. Throws error
// if a layer reads or writes there. (A system that maps no such pages, or calls all of them
// touched, lets every layer pass.)
template <class Device>
void expect_no_own_loops(const section_runner<Device>& sections, const plan_shape& shape) {
  const section_list& model = sections.list();
  plan_shape one_row = shape;
  one_row.samples = packed::one(1);
  one_row.prefix = 0;
  one_row.threads = 1;
  if (model.crosses()) one_row.context = packed::one(1);
  arena nothing;
  const flop_counts<Device> without_data(sections, one_row, nothing);
  detail::untouched_pages pages(nothing.high(), without_data.parameters_at() + 1);
  if (!pages.mapped() || pages.touched()) return;

  arena memory = pages.memory();
  flop_counts<Device> counts(sections, one_row, memory);
  const auto expect_untouched = [&](const section_instance& s) {
    if (!pages.touched()) return;
    std::string names;
    for (const std::string& name : s.counted) names += (names.empty() ? "" : ", ") + name;
    throw error(sentence(
        "plan: ", s.counted.size() > 1 ? "one of " : "", names,
        " says counts_flops = true, but its own loop looks at rows or parameters, and FLOPs are "
        "counted without data: loop by for_rows, or leave counts_flops out"));
  };
  std::set<int> types;
  for (position i = 0; i < position(model.count()); ++i) {
    if (!types.insert(model[i].type).second) continue;
    for (const purpose why : {purpose::forward, purpose::forward_kept, purpose::first_state,
                              purpose::rebuild, purpose::replay, purpose::backward})
      counts.of(i, {0, 1}, {.why = why});
    for (const bool backward : {false, true}) counts.context(i, backward);
    expect_untouched(model[i]);
  }
  for (position h = 0; h < model.head_count(); ++h) {
    for (const bool backward : {false, true}) counts.head(h, backward);
    expect_untouched(model.heads[std::size_t(h)]);
  }
}

}  // namespace streambp

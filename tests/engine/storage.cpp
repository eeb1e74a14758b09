// The bytes of a plan against a formula written by hand, and who shares addresses with whom.
#include <streambp/engine/storage.hpp>

#include <doctest/doctest.h>

#include <streambp/streambp.hpp>

#include "../core/lengths.hpp"

using namespace streambp;

namespace {

// Rows of doubles, in whole lines of 64 bytes.
constexpr std::size_t room(position rows, position cols) {
  return std::size_t(round_up(rows * cols * 8, 64));
}

const packed samples = packed_lengths({1, 29, 0, 131});  // 161 tokens
constexpr position T = 161, d = 8, C = 16;               // chunk
const auto model = residual(linear(d, d)) |
                   residual(rms_norm(d) | causal_attention({.features = d, .heads = 2})) |
                   linear(d, 5);
using planner_type = planner<cpu::device<double>, std::decay_t<decltype(model)>, cross_entropy>;

step_plan complete(const plan_choice& choice) {
  return planner_type(model, samples, {.threads = 2, .features = d, .grains = {8, 16}})
      .complete(choice);
}

// Of the attention block's stage, with d values a row everywhere but in two columns.
constexpr std::size_t memories = 2 * room(T, d);  // k, v
constexpr std::size_t saved_rows = room(C, d)     // the norm's output
                                   + room(C, 1)   // 1 / rms
                                   + room(C, d)   // q
                                   + room(C, d)   // o
                                   + room(C, 2);  // lse of two heads
constexpr std::size_t stand_ins = room(C, d);     // input rows of samples that count nothing
std::size_t working() {
  const attention_shape shape{2, 2, 4, 4, 1, 0, 0, false, 64};
  return 2 * room(C, d)                          // the attention's output, and the sum
         + room(C, d)                            // gradient of the norm's output
         + 2 * room(C, d)                        // dq, d_o
         + room(2, attention_workspace(shape));  // of two threads
}

// The host's: what each grain adds, a scale of each of four samples, and where the targets of a
// head chunk's 16 rows are.
std::size_t ledger_of(const step_plan& p) {
  const auto lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  return room(p.head_grains.size(), 1) + room(4, 1)  //
         + lines(17 * 4)                             // the first target of each row
         + lines(16 * 4)                             // labels
         + lines(16 * 24)                            // row, sample, place in it
         + lines(16 * 8)                             // weights
         + lines(16 * 32)                            // statistics
         + lines(16 * 24);                           // slopes
}

}  // namespace

TEST_CASE("bytes by hand: two stages, nothing kept") {
  const step_plan p = complete({{{0, 1}, {1, 2}}, C, 8, false});
  // Of two threads: 192 columns and 64 rows of depth 256, and 8 last rows of x and y. No parameter
  // has a side longer than that.
  CHECK(p.bytes.packing == 2 * 8 * (256 * (192 + 64) + 8 * (256 + 192)));
  CHECK(p.bytes.checkpoints == room(T, d));
  CHECK(p.bytes.stream == room(T, d));
  CHECK(p.bytes.kept == 0);
  CHECK(p.bytes.sums == ledger_of(p));
  CHECK(p.bytes.region == stand_ins + 2 * memories + saved_rows + working());
}

TEST_CASE("bytes by hand: what is kept leaves the region, one stage needs no checkpoint") {
  const step_plan p = complete({{{0, 2, true, true, false}}, C, 8, false});
  CHECK(p.bytes.checkpoints == 0);
  CHECK(p.bytes.kept == memories + room(T, d) + room(T, 2));  // o and lse of all tokens
  // The first residual's result stays in the chunk for the second one.
  CHECK(p.bytes.region ==
        stand_ins + memories + room(C, d) + saved_rows - room(C, d) - room(C, 2) + working());
}

TEST_CASE("bytes by hand: a single sample needs no stand-in, nor do tokens") {
  const plan_choice choice{{{0, 2}}, C, 8, true};
  const auto spared = [&](const packed& of) {
    const step_plan p =
        planner_type(model, of, {.features = d, .grains = {8, 16}}).complete(choice);
    const instance_list<std::decay_t<decltype(model)>> list(model, d);
    storage<cpu::device<double>> places(list);
    arena nothing;
    places.place_stand_ins(nothing, list, p);
    return nothing.used();
  };
  CHECK(spared(samples) == room(C, d));
  CHECK(spared(packed::one(T)) == 0);
  const auto of_tokens = embedding(5, d) | linear(d, 5);
  const instance_list<std::decay_t<decltype(of_tokens)>> list(of_tokens, 0);
  storage<cpu::device<double>> places(list);
  step_plan p;
  p.shape.samples = samples;
  p.chunks = {0, T};
  arena nothing;
  places.place_stand_ins(nothing, list, p);
  CHECK(nothing.used() == 0);
}

TEST_CASE("bytes by hand: a fused head alone needs no stream, only one chunk of it") {
  const step_plan p = complete({{{0, 2}}, C, 8, true});
  CHECK(p.bytes.stream == 0);
  CHECK(p.bytes.checkpoints == 0);
  // The last result stays, too, but is not computed into working rows.
  CHECK(p.bytes.region == stand_ins + 2 * memories + room(C, d) + 2 * room(C, d) + saved_rows +
                              working() - room(C, d));
}

namespace {

struct scratch_tag {
  static constexpr const char* name = "scratch";
};
template <int Cols>
struct scribbling {
  static constexpr bool backward_reads_output = false;
  auto slots() const { return std::tuple{scratch(scratch_tag{}, Cols)}; }
  void forward(auto&, auto, auto) const {}
  void backward(auto&, auto, auto, auto, auto) const {}
};

template <class Item>
std::size_t working_bytes(const Item& item) {
  const instance_list<Item> list(item, 0);
  section_cell<double> cell(list[0]);
  layout_shape shape;
  shape.chunk = C;
  arena nothing;
  place_working(nothing, list[0], shape, true, cell);
  return nothing.used();
}

}  // namespace

TEST_CASE("bytes by hand: operators of a section share their scratch") {
  CHECK(working_bytes(residual(scribbling<3>{} | scribbling<9>{} | scribbling<5>{})) == room(C, 9));
  CHECK(working_bytes(residual(scribbling<3>{} | scribbling<5>{} | scribbling<9>{})) == room(C, 9));
}

namespace {

struct held_tag {
  static constexpr const char* name = "held";
};
struct handed_tag {
  static constexpr const char* name = "handed";
};
struct holding {
  static constexpr reach sees = past;
  static constexpr bool backward_reads_output = false;
  auto slots() const { return std::tuple{memory(held_tag{}, 4), carry(handed_tag{}, 2, 3)}; }
  void remember(auto&, auto) const {}
  void forward(auto&, auto, auto) const {}
  void backward(auto&, auto, auto, auto, auto) const {}
  void release(auto&, auto, auto) const {}
};

}  // namespace

TEST_CASE("bytes by hand: memories of a prefix and all tokens, carries and their two gradients") {
  const instance_list<holding> list(holding{}, 0);
  section_cell<double> cell(list[0]);
  layout_shape shape;
  shape.tokens = 37;
  shape.prefix = 30;
  shape.states = {20, 1};
  shape.parents = 11;
  const auto bytes = [&](bool values, bool gradients) {
    arena nothing;
    place_state(nothing, list[0], shape, values, gradients, cell);
    return nothing.used();
  };
  CHECK(bytes(true, false) == room(67, 4) + room(21, 6) + room(11, 6));
  CHECK(bytes(false, true) == room(67, 4) + room(2, 6) + room(11, 6));
  CHECK(bytes(true, true) == bytes(true, false) + bytes(false, true));
}

namespace {

struct extent {
  const std::byte* first;
  const std::byte* last;
};
template <class T>
extent extent_of(view<T> v) {
  const auto* at = reinterpret_cast<const std::byte*>(v.data);
  return {at, at + std::size_t(v.rows * v.cols) * sizeof(T)};
}
bool disjoint(const std::vector<extent>& all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j)
      if (all[i].first < all[j].last && all[j].first < all[i].last) return false;
  return true;
}

}  // namespace

TEST_CASE("what lives together shares no address; stages share theirs") {
  const instance_list<std::decay_t<decltype(model)>> list(model, d);
  storage<cpu::device<double>> places(list);
  const step_plan p = complete({{{0, 1}, {1, 2}}, C, 8, false});
  const cpu::mapped_block block(p.peak());
  arena from(block.data(), block.size());
  places.place(from, list, p);
  CHECK(from.high() == p.peak() - ledger_of(p));

  std::vector<extent> lasting{extent_of(places.packing), extent_of(places.checkpoints[1]),
                              extent_of(places.stream)};
  const auto of_section = [&](position i) {
    std::vector<extent> own = lasting;
    auto& cell = places.cells[std::size_t(i)];
    for (const auto& v : cell.value)
      if (v.rows > 0) own.push_back(extent_of(v));
    for (const auto& v : cell.gradient)
      if (v.rows > 0) own.push_back(extent_of(v));
    for_each_slot(list[i], cell, [&](const slot_info& slot, const slot_cell<double>& at) {
      if (!slot.is_parameter() && slot.kind != slot_kind::workspace)
        own.push_back(extent_of(at.value));
      if (slot.kind == slot_kind::memory) own.push_back(extent_of(at.gradient));
    });
    return own;
  };
  const auto first = of_section(0), second = of_section(1);
  CHECK(first.size() > lasting.size() + 2);
  CHECK(second.size() > lasting.size() + 8);
  CHECK(disjoint(first));
  CHECK(disjoint(second));
  std::vector<extent> both = first;
  both.insert(both.end(), second.begin() + position(lasting.size()), second.end());
  CHECK_FALSE(disjoint(both));
}

TEST_CASE("a fused head stands on no row that its chunk's backward reads again") {
  const instance_list<std::decay_t<decltype(model)>> list(model, d);
  storage<cpu::device<double>> places(list);
  const step_plan p = complete({{{0, 2}}, C, 8, true});
  const cpu::mapped_block block(p.peak());
  arena from(block.data(), block.size());
  places.place(from, list, p);
  std::vector<extent> lasting{extent_of(places.chunk_gradient), extent_of(places.heads[0].result)};
  for (position i = 0; i < 2; ++i)
    for_each_slot(list[i], places.cells[std::size_t(i)],
                  [&](const slot_info& slot, const slot_cell<double>& at) {
                    if (slot.kind == slot_kind::saved || slot.kind == slot_kind::keepable ||
                        slot.kind == slot_kind::memory)
                      lasting.push_back(extent_of(at.value));
                    if (slot.kind == slot_kind::memory) lasting.push_back(extent_of(at.gradient));
                  });
  CHECK(lasting.size() >= 10);
  CHECK(disjoint(lasting));
}

TEST_CASE("bytes by hand: a checkpoint holds its stage's input") {
  const auto widening = residual(linear(d, d)) | linear(d, 24) | gated_recurrence(24, 5);
  const instance_list<std::decay_t<decltype(widening)>> list(widening, d);
  storage<cpu::device<double>> places(list);
  step_plan p;
  p.shape.samples = samples;
  p.grains = p.head_grains = p.chunks = p.head_chunks = {0, T};
  p.choice.stages = {{0, 1}, {1, 3}};
  arena nothing;
  CHECK(places.place(nothing, list, p).checkpoints == room(T, d));
  p.choice.stages = {{0, 2}, {2, 3}};
  arena again;
  CHECK(places.place(again, list, p).checkpoints == room(T, 24));
}

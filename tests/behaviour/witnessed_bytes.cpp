// A plan's peak against witnesses that know nothing of the layout: pages without access on both
// sides of the block, lines of it that no step wrote, and what the system says the process holds.
#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <streambp/streambp.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../core/lengths.hpp"

using namespace streambp;

namespace {

constexpr std::size_t page = 4096, line = 64;

// Exactly as many bytes as are asked for, up to the next line: what comes after them, and what
// stands a page before them, has no access. All of them hold a mark at first.
class fenced_block {
 public:
  static constexpr unsigned char mark = 0xa7;

  fenced_block() = default;
  explicit fenced_block(std::size_t bytes) : size_((bytes + line - 1) / line * line) {
    inside_ = (size_ + page - 1) / page * page;
    void* const at =
        ::mmap(nullptr, inside_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw error("fenced_block: no address space");
    start_ = static_cast<std::byte*>(at);
    ::madvise(start_, inside_ + 2 * page, MADV_NOHUGEPAGE);
    ::mprotect(start_ + page, inside_, PROT_READ | PROT_WRITE);
    if (marks) std::memset(start_ + page, mark, inside_);
  }
  fenced_block(fenced_block&& other) noexcept { *this = std::move(other); }
  fenced_block& operator=(fenced_block&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(size_, other.size_);
    std::swap(inside_, other.inside_);
    return *this;
  }
  ~fenced_block() {
    if (start_ == nullptr) return;
    written += lines_written();
    below_written += std::any_of(start_ + page, data(), [](std::byte b) { return !marked(b); });
    ::munmap(start_, inside_ + 2 * page);
  }

  std::byte* data() const { return start_ + page + (inside_ - size_); }
  std::size_t size() const { return size_; }

  // Of all blocks that came to their end; set before a trial.
  inline static bool marks = true;
  inline static std::size_t written = 0;
  inline static int below_written = 0;

 private:
  static bool marked(std::byte b) { return !marks || b == std::byte(mark); }
  std::size_t lines_written() const {
    std::size_t n = 0;
    for (const std::byte* at = data(); at < data() + size_; at += line)
      n += !std::all_of(at, at + line, marked);
    return n;
  }

  std::byte* start_ = nullptr;
  std::size_t size_ = 0, inside_ = 0;
};

template <class Scalar>
class fenced_device : public cpu::device<Scalar> {
 public:
  using memory = fenced_block;
  using cpu::device<Scalar>::device;
};

auto model_of(position d, position vocabulary) {
  const attention_options heads{.features = d, .heads = 4, .kv_heads = 2, .rotary = 1e4};
  return embedding(vocabulary, d) |
         repeat(2, residual(rms_norm(d) | causal_attention(heads)) |
                       residual(rms_norm(d) | gated_recurrence(d, d)) |
                       residual(rms_norm(d) | swiglu(d, 2 * d))) |
         rms_norm(d) | linear(d, vocabulary);
}
using model_type = decltype(model_of(8, 8));

// A step under the plan, and the loss alone; then `look`, while the engine lives.
template <class Device, class Look>
void run(const model_type& model, const step_plan& p, position vocabulary, const Look& look) {
  using scalar = typename Device::scalar;
  basic_engine<Device, model_type, cross_entropy> step(p, model, {});
  const auto parameters = initial_parameters<scalar>(step.parameters(), 1);
  std::vector<scalar> gradient(std::size_t(step.parameters().gradients));
  std::vector<std::int32_t> tokens;
  for (position t = 0; t < p.shape.samples.tokens(); ++t)
    tokens.push_back(std::int32_t((7 * t * t + 3 * t) % vocabulary));
  batch<scalar> data;
  data.tokens = data.labels = tokens;
  step.value(parameters, data);
  step.add_gradient(parameters, data, gradient);
  look(step);
}

template <class Device>
std::vector<step_plan> plans_of(const model_type& model, const packed& samples) {
  std::vector<step_plan> all;
  planner<Device, model_type, cross_entropy> open(model, samples, {.threads = 2});
  all.push_back(open.plain());
  all.push_back(*open.search(true));
  planner<Device, model_type, cross_entropy> between(
      model, samples, {.budget = (all[0].peak() + 2 * all[1].peak()) / 3, .threads = 2});
  all.push_back(*between.search(false));
  return all;
}

template <class Scalar>
void expect_every_byte(const packed& samples) {
  using device = fenced_device<Scalar>;
  const auto model = model_of(32, 160);
  for (const step_plan& p : plans_of<device>(model, samples)) {
    CAPTURE(p.peak());
    fenced_block::marks = true;
    fenced_block::written = 0;
    fenced_block::below_written = 0;
    std::size_t of_host = 0;  // the ledger's bytes
    run<device>(model, p, 160, [&](const auto& step) { of_host = step.ledger_block().size(); });
    CHECK(fenced_block::below_written == 0);
    // Packing buffers take the largest product that may come; lines end a few rows, and stand-ins
    // wait for samples that count nothing.
    CHECK(of_host == p.bytes.sums);
    CHECK(p.peak() - of_host - fenced_block::written * line <= p.bytes.packing);
  }
}

// Bytes that the process has written and holds; of its code and other files, nothing.
std::size_t resident() {
  std::ifstream status("/proc/self/status");
  std::size_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "RssAnon:") status >> kib;
  return kib * 1024;
}

// By how much the process grows from the engine's construction to the end of a step: in a process
// of its own, whose heap no earlier step has widened.
std::size_t growth(const model_type& model, const step_plan& p) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::size_t before = resident();
    run<fenced_device<float>>(model, p, 512, [&](const auto&) {
      const std::size_t grown = resident() - before;
      ::_exit(::write(pipe[1], &grown, sizeof grown) != sizeof grown);
    });
  }
  std::size_t grown = 0;
  CHECK(::read(pipe[0], &grown, sizeof grown) == sizeof grown);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]), ::close(pipe[1]);
  return grown;
}

}  // namespace

TEST_CASE("a step writes every line that its plan counts, and none outside") {
  expect_every_byte<double>(packed_lengths({1, 300, 0, 211}));
  expect_every_byte<float>(packed::one(700));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own memory grows, too
TEST_CASE("a process grows by its plan's peak, whatever the plan") {
  const auto model = model_of(64, 512);
  const auto parameters =  // and their gradient
      std::ptrdiff_t(2 * 4 * instance_list<model_type>(model, 0).table.parameters);
  constexpr std::ptrdiff_t small = 1 << 18;  // tokens, views, what the allocator keeps
  fenced_block::marks = false;               // a page that nothing writes is none of the process
  std::vector<std::ptrdiff_t> all;
  for (const step_plan& p : plans_of<fenced_device<float>>(model, packed::one(6000))) {
    const auto beside = std::ptrdiff_t(growth(model, p)) - std::ptrdiff_t(p.peak()) - parameters;
    CAPTURE(p.peak());
    CHECK(beside > -std::ptrdiff_t(p.bytes.packing) - small);  // packing may stay unused
    CHECK(beside < small);
    all.push_back(beside);
  }
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  CHECK(*most - *least < small);
}
#endif

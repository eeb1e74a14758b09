#include <streambp/io/training_state.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <streambp/streambp.hpp>

#include "../unreachable_device.hpp"
#include "folder.hpp"

using namespace streambp;

namespace {

// Half of it is frozen, and dropout draws by seed and step.
auto small_model(position inner = 12) {
  return embedding(11, 8) |
         residual(rms_norm(8) | dropout(0.3) | named("up", linear(8, inner)) | gelu() |
                  linear(inner, 8)) |
         frozen(named("still", linear(8, 8))) | named("out", linear(8, 11));
}
const packed samples({0, 30, 53});
using model_type = decltype(small_model());

// A training whose whole state is in `parameters`, `optimizer` and `own`.
struct training {
  engine<float, model_type, cross_entropy> step;
  std::vector<float> parameters, gradient;
  adamw<float> optimizer;
  progress own;

  explicit training(const model_type& model = small_model(), position grain = 16,
                    adamw_options options = {.decay = 0.1})
      : step(plan(model, cross_entropy{}, samples, {.grains = {.tile = 8, .grain = grain}}), model,
             cross_entropy{}),
        parameters(initial_parameters<float>(step.parameters(), 5)),
        gradient(std::size_t(step.parameters().gradients)),
        optimizer(step.parameters(), options) {
    own.counts["next"] = 1;
    own.bytes["losses"] = "";
  }
  void once() {
    std::uint64_t& next = own.counts["next"];
    std::vector<std::int32_t> tokens;
    for (position t = 0; t < samples.tokens(); ++t)
      tokens.push_back(std::int32_t((t * t + position(next)) % 11));
    batch<float> data;
    data.tokens = tokens;
    data.labels = tokens;
    data.seed = 3;
    data.step = next++;
    std::fill(gradient.begin(), gradient.end(), 0.f);
    const double loss = step.add_gradient(parameters, data, gradient);
    own.bytes["losses"].append(reinterpret_cast<const char*>(&loss), sizeof loss);
    own.numbers["last"] = loss;
    optimizer.update(parameters, gradient, 1e-2);
  }
  void save(const std::string& path) const {
    save_training(path, step, parameters, optimizer, own);
  }
  std::string load(const std::string& path, from_build build = from_build::same) {
    loaded_training found = load_training(path, step, parameters, optimizer, build);
    own = std::move(found.progress);
    return found.other_build;
  }
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
bool same(const training& a, const training& b) {
  return same_bits(a.parameters, b.parameters) &&
         same_bits(a.optimizer.first_moments(), b.optimizer.first_moments()) &&
         same_bits(a.optimizer.second_moments(), b.optimizer.second_moments()) &&
         a.optimizer.steps() == b.optimizer.steps() && a.own == b.own;
}
std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

using tensors = std::vector<tensor_source>;
using facts = std::map<std::string, std::string>;

// A saved state with one thing changed, written again.
template <class Change>
std::string changed(const std::string& from, Change change) {
  const tensor_file file(from);
  std::vector<std::vector<std::uint64_t>> kept;
  std::vector<tensor_source> tensors;
  const std::string bytes = get(from);
  std::uint64_t place = 8;
  std::memcpy(&place, bytes.data(), 8);
  place += 8;
  for (const tensor_entry& t : file.tensors()) {
    kept.emplace_back((t.bytes() + 7) / 8 + 1);
    std::memcpy(kept.back().data(), bytes.data() + place + t.first, t.bytes());
    tensors.push_back({t.name, t.type.name, t.shape, kept.back().data(), t.bytes()});
  }
  auto metadata = file.metadata();
  change(tensors, metadata);
  const std::string path = folder() + "/changed";
  write_tensors(path, tensors, metadata);
  return path;
}
tensor_source& named_in(std::vector<tensor_source>& tensors, const std::string& name) {
  for (tensor_source& t : tensors)
    if (t.name == name) return t;
  throw std::logic_error("no " + name);
}

}  // namespace

TEST_CASE("training goes on with the bits of one that never stopped") {
  const std::string path = folder() + "/state";
  training whole, half;
  for (int i = 0; i < 6; ++i) whole.once();
  for (int i = 0; i < 3; ++i) half.once();
  half.save(path);
  training rest;
  CHECK(!same(rest, half));
  CHECK(rest.load(path) == "");
  CHECK(same(rest, half));
  for (int i = 0; i < 3; ++i) rest.once();
  CHECK(rest.own.bytes["losses"].size() == 6 * sizeof(double));
  CHECK(same(rest, whole));
}

TEST_CASE("a state in memory that the host cannot touch is the same file") {
  using far = unreachable::device<float>;
  const std::string path = folder() + "/near", there = folder() + "/far";
  training source;
  for (int i = 0; i < 2; ++i) source.once();
  source.save(path);
  adamw<float, far> optimizer(source.step.parameters(), {.decay = 0.1});
  const unreachable::buffer<float> parameters(source.parameters.size());
  const auto found = load_training(path, source.step, parameters.span(), optimizer);
  CHECK(found.progress == source.own);
  CHECK(same_bits(parameters.copy(), source.parameters));
  save_training(there, source.step, parameters.span(), optimizer, source.own);
  CHECK(get(there) == get(path));
}

TEST_CASE("a state of something else is refused, and nothing changes") {
  const std::string path = folder() + "/mine";
  training source;
  source.once();
  source.save(path);
  training target;
  const training untouched;
  const auto refused = [&](const std::string& file, const std::string& why) {
    std::string said;
    try {
      target.load(file);
    } catch (const error& problem) {
      said = problem.what();
    }
    CHECK_MESSAGE(said.find(why) != said.npos, said);
    CHECK(same(target, untouched));
  };
  const std::string out = "out.linear.weight";
  REQUIRE(source.step.parameters()[out].rows == 11);

  training wider(small_model(13));
  CHECK_THROWS_WITH_AS(wider.load(path),
                       doctest::Contains(": is of another model: 'parameter.up.linear.weight' is "
                                         "12 x 8, here it is 13 x 8"),
                       file_error);
  refused(changed(path, [&](tensors& t, facts&) { named_in(t, "parameter." + out).name += "2"; }),
          ": is of another model: it holds no 'parameter." + out +
              "', which is 11 x 8 here; tensor_file reads what the two share, name by name");
  refused(
      changed(path, [&](tensors& t, facts&) { t.push_back(t[0]), t.back().name = "parameter.x"; }),
      ": is of another model: it holds 'parameter.x', and there is none here; tensor_file reads "
      "what "
      "the two share, name by name");
  refused(changed(path,
                  [&](tensors& t, facts&) {
                    t.push_back(named_in(t, "adamw.first." + out));
                    t.back().name = "adamw.first.still.linear.weight";
                  }),
          "'adamw.first.still.linear.weight', which is frozen here; tensor_file reads");
  refused(changed(path, [&](tensors& t, facts&) { t.push_back(t[0]), t.back().name = "x"; }),
          "holds 'x', which no training's state does");
  refused(changed(path, [&](tensors& t, facts&) { named_in(t, "parameter." + out).type = "I32"; }),
          "is I32, wanted F32");
  const std::vector<float> wrong(88, -1.f), nan(88, NAN);
  refused(changed(path, [&](tensors& t,
                            facts&) { named_in(t, "adamw.second." + out).data = wrong.data(); }),
          "restore's moments of " + out);
  refused(changed(path,
                  [&](tensors& t, facts&) { named_in(t, "adamw.first." + out).data = nan.data(); }),
          "restore's moments of " + out);
  refused(
      changed(path, [&](tensors& t, facts&) { named_in(t, "parameter." + out).data = nan.data(); }),
      out + " is nan at entry 0");
  const std::uint64_t many = ~std::uint64_t(0);
  refused(changed(path, [&](tensors& t, facts&) { named_in(t, "adamw.steps").data = &many; }),
          "holds 18446744073709551615 steps of the optimizer, at most 68719476736 can be");
  refused(changed(path, [&](tensors&, facts& f) { f.clear(); }),
          ": is no training's state: it does not say streambp.");

  const std::string other =
      changed(path, [](tensors&, facts& f) { f["streambp.precision"] = "F64"; });
  for (const from_build build : {from_build::same, from_build::any})
    CHECK_THROWS_WITH_AS(target.load(other, build),
                         doctest::Contains("was saved by an engine of F64, this one is of F32; "
                                           "make the engine and the optimizer of that type"),
                         file_error);

  const std::string avx = changed(path, [](tensors&, facts& f) { f["streambp.lanes"] = "3"; });
  refused(avx, "saved by another build: streambp.lanes was '3', here it is");
  refused(avx, "; from_build::any goes on all the same, with other roundings");
  std::vector<float> few(3);
  CHECK_THROWS_WITH_AS(save_training(path, target.step, few, target.optimizer),
                       sentence("save_training: 3 parameters and ", target.gradient.size(),
                                " moments, the engine has ", target.parameters.size(), " and ",
                                target.gradient.size())
                           .c_str(),
                       shape_error);
  CHECK_THROWS_WITH_AS(
      load_training(path, target.step, few, target.optimizer),
      sentence("load_training: 3 parameters, the engine has ", target.parameters.size()).c_str(),
      shape_error);
  CHECK(target.load(avx, from_build::any).find("another build") != std::string::npos);
  CHECK(same(target, source));
  training coarse(small_model(), 32);
  CHECK_THROWS_WITH_AS(coarse.load(path),
                       doctest::Contains("streambp.grain was '16', here it is '32'"), file_error);
}

TEST_CASE("an optimizer of other options goes on with its own, and a warning says so") {
  const std::string path = folder() + "/options";
  training source;
  source.once();
  source.save(path);
  std::vector<std::string> said;
  const warning_sink before =
      set_warning_sink([&](std::string_view text) { said.emplace_back(text); });
  training same_options, others(small_model(), 16, {.beta2 = 0.95, .decay = 0.1 + 1e-16});
  same_options.load(path);
  CHECK(said.empty());
  const std::string reported =
      load_training(path, others.step, others.parameters, others.optimizer).other_options;
  CHECK(said == std::vector{reported});
  CHECK(reported == path +
                        ": was saved by an optimizer of other options: adamw.beta2 was '0.999', "
                        "here it is '0.95', adamw.decay was '0.1', here it is "
                        "'0.1000000000000001'; training goes on with those of here");
  CHECK(others.optimizer.steps() == 1);
  // A file that does not say has none.
  const std::string silent = changed(path, [](tensors&, facts& f) {
    for (const char* option : {"beta1", "beta2", "epsilon", "decay"})
      REQUIRE(f.erase(std::string("adamw.") + option) == 1);
  });
  others.load(silent);
  CHECK(said.size() == 1);
  set_warning_sink(before);
}

// A process trains, saves after every step, and is killed at any moment; the next goes on.
TEST_CASE("killed at any moment, resumed, and the end is the same file") {
  const std::string quiet = folder() + "/quiet", killed = folder() + "/killed";
  constexpr std::uint64_t steps = 60;
  const auto train = [](const std::string& path) {
    training t;
    if (::access(path.c_str(), F_OK) == 0) t.load(path);
    while (t.own.counts["next"] <= steps) {
      t.once();
      t.save(path);
    }
  };
  train(quiet);
  unsigned wait = 12345;
  int kills = 0;
  for (int round = 0;; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        train(killed);
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    if (round < 20) {
      wait = wait * 1103515245 + 12345;
      ::usleep(1000 + (wait >> 16) % 30000);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) {
      ++kills;
      continue;
    }
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    if (round >= 20) break;
  }
  CHECK(kills > 0);
  CHECK(get(killed) == get(quiet));
}

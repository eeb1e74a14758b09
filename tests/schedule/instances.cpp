#include <streambp/schedule/instances.hpp>

#include <doctest/doctest.h>

#include <streambp/layers/activation.hpp>
#include <streambp/layers/attention.hpp>
#include <streambp/layers/embedding.hpp>
#include <streambp/layers/gated_mlp.hpp>
#include <streambp/layers/gated_recurrence.hpp>
#include <streambp/layers/linear.hpp>
#include <streambp/layers/norm.hpp>

using namespace streambp;

namespace {

template <class Model>
instance_list<Model> list_of(const Model& model, position features = 0) {
  return {model, features};
}
template <class Model>
std::vector<std::string> names_of(const Model& model, position features = 0) {
  std::vector<std::string> names;
  for (const auto& e : list_of(model, features).table.entries) names.push_back(e.name);
  return names;
}
template <class Model>
std::string complaint(const Model& model, position features = 0) {
  try {
    list_of(model, features);
  } catch (const shape_error& e) {
    return e.what();
  }
  return "";
}
// Entries of the table that a section's layers use.
std::vector<int> parameters_of(const section_instance& s) {
  std::vector<int> all;
  for (const slot_info& slot : s.slots)
    if (slot.parameter >= 0) all.push_back(slot.parameter);
  return all;
}

template <class List>
std::vector<bool> cuts_of(const List& list) {
  std::vector<bool> cuts;
  for (const auto& s : list.sections) cuts.push_back(s.forced_cut);
  return cuts;
}

const auto attend = residual(rms_norm(8) | causal_attention({.features = 8, .heads = 2}));
const auto attend_all =
    residual(rms_norm(8) | bidirectional_attention({.features = 8, .heads = 2}));
const auto recur = residual(rms_norm(8) | gated_recurrence(8, 4));
const auto mlp = residual(rms_norm(8) | swiglu(8, 12));

}  // namespace

TEST_CASE(
    "instances: names tell the place, repetitions are numbered, options that are off have none") {
  CHECK(names_of(embedding(19, 8) | repeat(2, attend | mlp) | rms_norm(8) | linear(8, 19)) ==
        std::vector<std::string>{
            "embedding.table",          "blocks.0.rms_norm.gain", "blocks.0.attention.wq",
            "blocks.0.attention.wk",    "blocks.0.attention.wv",  "blocks.0.attention.wo",
            "blocks.0.rms_norm_2.gain", "blocks.0.mlp.gate",      "blocks.0.mlp.up",
            "blocks.0.mlp.down",        "blocks.1.rms_norm.gain", "blocks.1.attention.wq",
            "blocks.1.attention.wk",    "blocks.1.attention.wv",  "blocks.1.attention.wo",
            "blocks.1.rms_norm_2.gain", "blocks.1.mlp.gate",      "blocks.1.mlp.up",
            "blocks.1.mlp.down",        "rms_norm.gain",          "linear.weight"});
}

TEST_CASE("instances: layers of one name in a row are told apart") {
  CHECK(names_of(linear(8, 8) | linear(8, 8, true) | repeat(1, attend) | repeat(1, recur), 8) ==
        std::vector<std::string>{
            "linear.weight", "linear_2.weight", "linear_2.bias", "blocks.0.rms_norm.gain",
            "blocks.0.attention.wq", "blocks.0.attention.wk", "blocks.0.attention.wv",
            "blocks.0.attention.wo", "blocks_2.0.rms_norm.gain", "blocks_2.0.recurrence.wf",
            "blocks_2.0.recurrence.bf", "blocks_2.0.recurrence.wc", "blocks_2.0.recurrence.bc",
            "blocks_2.0.recurrence.wo"});
}

TEST_CASE("instances: a name of the caller's begins its layers' names, which count by themselves") {
  const auto trunk = named("trunk", linear(8, 8) | repeat(2, named("mixer", attend) | mlp));
  const auto names = names_of(trunk | frozen(named("last", linear(8, 8))) | linear(8, 5), 8);
  CHECK(names == std::vector<std::string>{"trunk.linear.weight",
                                          "trunk.blocks.0.mixer.rms_norm.gain",
                                          "trunk.blocks.0.mixer.attention.wq",
                                          "trunk.blocks.0.mixer.attention.wk",
                                          "trunk.blocks.0.mixer.attention.wv",
                                          "trunk.blocks.0.mixer.attention.wo",
                                          "trunk.blocks.0.rms_norm.gain",
                                          "trunk.blocks.0.mlp.gate",
                                          "trunk.blocks.0.mlp.up",
                                          "trunk.blocks.0.mlp.down",
                                          "trunk.blocks.1.mixer.rms_norm.gain",
                                          "trunk.blocks.1.mixer.attention.wq",
                                          "trunk.blocks.1.mixer.attention.wk",
                                          "trunk.blocks.1.mixer.attention.wv",
                                          "trunk.blocks.1.mixer.attention.wo",
                                          "trunk.blocks.1.rms_norm.gain",
                                          "trunk.blocks.1.mlp.gate",
                                          "trunk.blocks.1.mlp.up",
                                          "trunk.blocks.1.mlp.down",
                                          "last.linear.weight",
                                          "linear.weight"});
  const auto after = names_of(linear(8, 8) | repeat(1, mlp) | trunk | linear(8, 5), 8);
  CHECK(std::equal(names.begin(), names.begin() + 19, after.begin() + 5));
  CHECK(names_of(named("in", embedding(19, 8)) |
                 residual(rms_norm(8) | named("inner", linear(8, 8))) | tied_linear{8, 19}) ==
        std::vector<std::string>{"in.embedding.table", "rms_norm.gain", "inner.linear.weight"});
}

TEST_CASE("instances: the schedule of a model does not see names") {
  const auto with =
      named("m", named("in", embedding(19, 8)) | named("a", attend_all) |
                     repeat(2, residual(named("r", rms_norm(8))) | named("b", mlp)) |
                     frozen(named("c", mlp | attend)) | named("d", rms_norm(8) | linear(8, 19)));
  const auto without = embedding(19, 8) | attend_all | repeat(2, residual(rms_norm(8)) | mlp) |
                       frozen(mlp | attend) | (rms_norm(8) | linear(8, 19));
  static_assert(std::is_same_v<split_model<std::decay_t<decltype(with)>>::trunk_types,
                               split_model<std::decay_t<decltype(without)>>::trunk_types>);
  static_assert(std::is_same_v<split_model<std::decay_t<decltype(with)>>::head_types,
                               split_model<std::decay_t<decltype(without)>>::head_types>);
  CHECK(list_of(with).fingerprint() == list_of(without).fingerprint());
  CHECK(cuts_of(list_of(with)) == cuts_of(list_of(without)));
}

TEST_CASE("instances: a name stands once where it stands, and is a name") {
  CHECK(complaint(named("a", mlp) | attend | named("a", mlp) | linear(8, 5), 8) ==
        "named: two parts of the model are named 'a'; give one another name");
  CHECK(complaint(named("a", named("a", mlp)) | repeat(2, named("a", mlp)) | linear(8, 5), 8) ==
        "");
  CHECK_THROWS_WITH_AS(named("a.b", mlp),
                       "named: 'a.b' is no name; one has letters, digits, _ and -", shape_error);
  CHECK_THROWS_WITH_AS(named("", mlp), "named: '' is no name; one has letters, digits, _ and -",
                       shape_error);
}

TEST_CASE("instances: offsets follow one another, frozen ones have no gradient") {
  const auto list = list_of(embedding(19, 8) | frozen(attend) | recur | linear(8, 5), 0);
  const auto& table = list.table;
  position parameters = 0, gradients = 0;
  for (const auto& e : table.entries) {
    CHECK(e.offset == parameters);
    parameters += e.size();
    const bool frozen = e.name == "rms_norm.gain" || e.name.starts_with("attention.");
    CHECK(e.gradient == (frozen ? -1 : gradients));
    if (!frozen) gradients += e.size();
  }
  CHECK(table.parameters == parameters);
  CHECK(table.gradients == gradients);
  CHECK(table["embedding.table"].rows == 19);
  CHECK(table["attention.wq"].cols == 8);
  CHECK(table["rms_norm.gain"].initial.mean == 1);
}

TEST_CASE("instances: a repeated block is one type, its instances are numbered") {
  const auto list = list_of(embedding(19, 8) | repeat(3, attend | mlp) | linear(8, 19));
  REQUIRE(list.count() == 7);
  for (std::size_t i = 1; i < 7; ++i) {
    const auto& s = list.sections[i];
    CHECK(s.type == 1 + int(i - 1) % 2);
    CHECK(s.repetition == position(i - 1) / 2);
    CHECK(s.element == 1);
    CHECK(s.in() == 8);
    CHECK(s.out == 8);
    CHECK(s.holds_state == (i % 2 == 1));
  }
  CHECK(list.heads.front().in() == 8);
  CHECK(list.heads.front().out == 19);
  CHECK(list.trunk_width() == 8);
  CHECK(list.widest() == 8);
  CHECK(list.takes_tokens());
  CHECK(cuts_of(list) == std::vector<bool>(7, false));
}

TEST_CASE(
    "instances: a read that sees all begins a stage, and shares its other half's parameters") {
  const auto list = list_of(attend_all | repeat(2, recur | attend_all) | linear(8, 5), 8);
  CHECK(cuts_of(list) == std::vector<bool>{false, true, false, false, true, false, false, true});
  for (const std::size_t read : {1, 4, 7}) {
    CHECK(list.sections[read].part == half::read);
    CHECK(list.sections[read - 1].part == half::remember);
    CHECK(parameters_of(list.sections[read]) == parameters_of(list.sections[read - 1]));
    CHECK(list.sections[read - 1].in() == 8);
    CHECK(list.sections[read].out == 8);
    CHECK_FALSE(list.sections[read].holds_state);
  }
  CHECK_FALSE(list.takes_tokens());
}

TEST_CASE("instances: the width of the trunk's rows, within and at the end") {
  const auto list = list_of(linear(3, 20) | gelu() | linear(20, 8) | attend | linear(8, 30), 3);
  CHECK(list.sections[0].in() == 3);
  CHECK(list.sections[1].in() == 20);
  CHECK(list.sections[2].out == 8);
  CHECK(list.widest() == 20);
  CHECK(list.trunk_width() == 8);
}

TEST_CASE(
    "instances: a tied head uses the embedding's table, a second use in the trunk is cut off") {
  const auto tied = list_of(embedding(19, 8) | mlp | attend | tied_linear{8, 19});
  CHECK(tied.shared_with_head == 0);
  CHECK_FALSE(tied.heads_share);
  CHECK(tied.table.entries.size() == 10);
  CHECK(parameters_of(tied.heads.front()) == std::vector<int>{0});
  CHECK(tied.heads.front().owned.empty());
  CHECK(list_of(embedding(19, 8) | attend | linear(8, 19)).shared_with_head == -1);

  const auto trunk =
      list_of(embedding(8, 8) | mlp | residual(tied_linear{8, 8}) | attend | linear(8, 5));
  CHECK(trunk.shared_with_head == -1);
  CHECK(list_of(embedding(8, 8) | mlp | residual(tied_linear{8, 8}) | attend | tied_linear{8, 8})
            .shared_with_head == 2);
  CHECK(cuts_of(trunk) == std::vector<bool>{false, false, true, false});
}

TEST_CASE("instances: heads are sections behind the trunk's, all as wide as its rows") {
  const auto list = list_of(embedding(19, 8) | attend | rms_norm(8) |
                            heads(named("policy", rms_norm(8) | linear(8, 19)), linear(8, 5)));
  CHECK(list.count() == 3);
  CHECK(list.head_count() == 2);
  CHECK(list.section_of_head(1) == 4);
  CHECK(&list[4] == &list.heads[1]);
  CHECK(&list[2] == &list.sections[2]);
  CHECK(list.heads[0].name == "policy.linear");
  CHECK(list.heads[1].name == "linear");
  CHECK(list.heads[0].type == -1);
  CHECK(list.heads[1].type == -2);
  CHECK(list.heads[1].in() == 8);
  CHECK(list.heads[1].out == 5);
  CHECK(list.widest_of_heads() == 19);
  CHECK(list_of(embedding(19, 8) | attend).widest_of_heads() == 8);
  CHECK_FALSE(list.heads_share);
  CHECK(list.fingerprint() !=
        list_of(embedding(19, 8) | attend | rms_norm(8) |
                heads(named("policy", rms_norm(8) | linear(8, 19)), frozen(linear(8, 5))))
            .fingerprint());

  const auto tied = list_of(embedding(19, 8) | attend |
                            heads(tied_linear{8, 19}, linear(8, 4), frozen(tied_linear{8, 19})));
  CHECK(tied.shared_with_head == 0);
  CHECK(tied.heads_share);
  CHECK_FALSE(
      list_of(embedding(19, 8) | attend | heads(tied_linear{8, 19}, linear(8, 4))).heads_share);
}

TEST_CASE("instances: the lowest section with a trained parameter") {
  CHECK(list_of(embedding(19, 8) | attend | linear(8, 5)).lowest_trained() == 0);
  CHECK(list_of(frozen(embedding(19, 8) | attend) | mlp | attend | linear(8, 5)).lowest_trained() ==
        2);
  CHECK(list_of(frozen(embedding(19, 8) | attend) | linear(8, 5)).lowest_trained() == 2);
}

TEST_CASE("instances: layers that do not fit together are refused in words") {
  CHECK(complaint(linear(8, 7) | attend | linear(8, 5), 8) ==
        "rms_norm: x has 7 features, the layer takes 8");
  CHECK(complaint(attend | linear(8, 5), 9) == "rms_norm: x has 9 features, the layer takes 8");
  CHECK(complaint(residual(linear(8, 9)) | attend, 8) ==
        "residual: its input has 8 features, its branch gives 9");
  CHECK(complaint(embedding(19, 8) | attend | tied_linear{8, 18}) ==
        "tied_linear is 18 x 8 but shares embedding.table, which is 19 x 8");
  CHECK(complaint(embedding(8, 8) | residual(tied_linear{8, 8} | gelu() | tied_linear{8, 8}) |
                  attend) ==
        "tied_linear_2: shares embedding.table with a layer of the same residual or head; give "
        "each a "
        "residual of its own before the head");
  CHECK(complaint(attend | tied_linear{8, 18}, 8) ==
        "tied_linear: shares a parameter that no layer before it owns");
  CHECK(complaint(repeat_of<linear>{0, linear(8, 8)} | linear(8, 5), 8) ==
        "repeat: 0 blocks; a model has at least one");
  CHECK(complaint(gelu(), position(1) << 40) ==
        "activate: rows of 1099511627776 and 1099511627776 features; at most 68719476736, and none "
        "below 0");
  CHECK(
      complaint(linear(1 << 20, 1 << 20), 1 << 20) ==
      "linear.weight: a slot of 1048576 x 1048576 entries; at most 68719476736, and none below 0");
}

TEST_CASE("instances: models that one plan fits have one fingerprint") {
  const auto own = list_of(embedding(19, 8) | mlp | linear(8, 19)).fingerprint();
  CHECK(own == list_of(embedding(19, 8) | mlp | linear(8, 19)).fingerprint());
  CHECK(own != list_of(embedding(19, 8) | mlp | linear(8, 18)).fingerprint());
  CHECK(own != list_of(embedding(20, 8) | mlp | linear(8, 19)).fingerprint());
  CHECK(own != list_of(embedding(19, 8) | mlp | mlp | linear(8, 19)).fingerprint());
  CHECK(own != list_of(frozen(embedding(19, 8)) | mlp | linear(8, 19)).fingerprint());
}

TEST_CASE("a section is called by its layer with the most parameters, and where that stands") {
  const auto labels = [](const auto& list) {
    std::vector<std::string> all;
    for (const auto& s : list.sections) all.push_back(s.label());
    return all;
  };
  CHECK(labels(list_of(embedding(19, 8) | repeat(2, attend | named("thought", mlp)) | attend_all |
                       linear(8, 19))) ==
        std::vector<std::string>{"embedding", "blocks.0.attention", "blocks.0.thought.mlp",
                                 "blocks.1.attention", "blocks.1.thought.mlp",
                                 "attention (remember)", "attention (read)"});
}

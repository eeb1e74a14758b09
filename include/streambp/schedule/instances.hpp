// The sections of a model, made from its type and value.
#pragma once

#include <string>

#include "scopes.hpp"
#include "section.hpp"
#include "section_builder.hpp"

namespace streambp {

template <class Model>
struct instance_list : section_list {
  using split = split_model<Model>;

  typename split::trunk_types trunk;
  typename split::head_types head_sections;

  // `features`: width of the input rows; ignored when the model takes tokens. Throws shape_error.
  instance_list(const Model& model, position features)
      : instance_list(elements_of(unnamed(model)), features, scopes_of(model)) {}

 private:
  instance_list(const typename split::elements& elements, position features,
                const std::vector<layer_scope>& scopes)
      : trunk(split::trunk(elements)), head_sections(split::heads(elements)) {
    section_builder build(*this, features, scopes);
    for_each_index<split::trunk_elements>([&](auto e) {
      const auto& element = std::get<e>(elements);
      const position count = count_of(element);
      build.begin_element(count, is_repeat<std::decay_t<decltype(element)>>);
      for (position r = 0; r < count; ++r) {
        build.begin_repetition(r);
        for_each_index<split::trunk_count>([&](auto t) {
          using type = std::tuple_element_t<t, typename split::trunk_types>;
          if constexpr (type::element == e) add(build, std::get<t>(trunk), t);
        });
      }
    });
    build.begin_heads();
    for_each_index<split::head_count>(
        [&](auto h) { describe(build, std::get<h>(head_sections), -1 - h); });
    build.finish();
  }

  template <class Section>
  static void add(section_builder& build, const Section& s, int type) {
    if constexpr (Section::part == half::read)
      build.add_read(Section::steps, type);
    else
      describe(build, s, type);
  }

  // A remember half knows the widths of the whole item, which its read half takes over.
  template <class Section>
  static void describe(section_builder& build, const Section& s, int type) {
    static constexpr program whole = Section::whole();
    section_instance& into = build.begin_section(Section::steps, type, Section::element);
    for_each_index<whole.size>([&](auto i) {
      constexpr step st = whole.steps[i];
      if constexpr (st.op < 0) {
        build.add_sum(st);
      } else {
        const auto& own = std::get<st.op>(s.leaves);
        using placed_type = std::decay_t<decltype(own)>;
        using traits = layer_traits<typename placed_type::layer_type>;
        const position in = into.widths[st.in];
        build.add_layer(st, traits::name(), traits::features(own.layer, in), placed_type::trains);
        build.set_counted(traits::counts_flops);
        if constexpr (traits::takes_tokens && requires { own.layer.vocabulary; })
          build.set_vocabulary(own.layer.vocabulary);
        std::apply(
            [&](const auto&... slot) {
              (build.add_slot({std::decay_t<decltype(slot)>::kind, st.op, slot.rows, slot.cols},
                              std::decay_t<decltype(slot)>::tag::name,
                              &tag_identity<typename std::decay_t<decltype(slot)>::tag>,
                              slot.initial),
               ...);
            },
            traits::slots(own.layer, in));
      }
    });
    build.finish_section();
  }
};

}  // namespace streambp

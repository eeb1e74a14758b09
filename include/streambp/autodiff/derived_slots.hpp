// The slots that a layer with a derived backward has beside its own.
#pragma once

#include <tuple>

#include "../core/grain.hpp"
#include "../primitives/attention_shape.hpp"
#include "../split/slot.hpp"
#include "tape.hpp"

namespace streambp::autodiff {

// Tags of their own: the layer may have slots of the same names.
struct tape_tag {
  static constexpr const char* name = "tape";
};
struct attended_tag {
  static constexpr const char* name = "attended";
};
struct working_tag {
  static constexpr const char* name = "working";
};
struct tiles_tag {
  static constexpr const char* name = "tiles";
};

// `tile`: query rows, the plan's. q_cols and v_cols: of all heads.
inline attention_shape shape_of(const attend_options& o, position q_cols, position y_cols,
                                bool sees_all, position tile) {
  return {o.heads,  o.kv_heads, q_cols / o.heads, y_cols / o.heads, o.scale, o.softcap, o.window,
          sees_all, tile};
}

// Scalars a thread that attention needs.
inline position tile_workspace(const graph& g) {
  position most = 0;
  for (int n = 0; n < g.size; ++n)
    if (g[n].op == operation::attend)
      most = std::max(most, attention_workspace(shape_of(g[n].heads, g[g[n].a].cols, g[n].cols,
                                                         false, largest_tile)));
  return most;
}

inline auto slots_for(const tape_columns& c, position workspace_cols) {
  return std::tuple{saved(tape_tag{}, c.saved), keepable(attended_tag{}, c.kept),
                    scratch(working_tag{}, c.scratch), workspace(tiles_tag{}, workspace_cols)};
}

}  // namespace streambp::autodiff

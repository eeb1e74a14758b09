// Whether a product replaces what it is written to, or adds to it.
#pragma once

#include "../core/language.hpp"

namespace streambp {

enum class write : bool { assign, add };

}  // namespace streambp

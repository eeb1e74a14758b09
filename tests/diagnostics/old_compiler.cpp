// expect: is too old; use
// flags: -D__GNUC__=11 -D__clang_major__=15
#include <streambp/core/language.hpp>

// expect: streambp: exact gradients need IEEE arithmetic; compile without -ffast-math
// flags: -ffast-math
#include <streambp/cpu/isa.hpp>

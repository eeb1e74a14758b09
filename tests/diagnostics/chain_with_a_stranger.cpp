// expect: this type is no layer: give it forward(at, x, y) and backward(at, x, y, dy, dx)
#include <streambp/layers/compose.hpp>
#include <streambp/layers/norm.hpp>

struct stranger {};

int main() { streambp::rms_norm(8) | stranger{}; }

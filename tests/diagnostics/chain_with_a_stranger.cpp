// expect: this type is no layer: give it forward(at, x, y) and backward(at, x, y, dy, dx)
#include <streambp/layers/norm.hpp>
#include <streambp/model/compose.hpp>

struct stranger {};

int main() { streambp::rms_norm(8) | stranger{}; }

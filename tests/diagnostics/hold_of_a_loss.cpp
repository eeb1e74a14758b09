// expect: laws::hold is for layers, and this is a loss: write laws::hold_loss(loss, setting)
#include <streambp/laws/hold.hpp>

using namespace streambp;

int main() { laws::hold(cross_entropy{}, laws::rows(37, 6)); }

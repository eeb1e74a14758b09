// An encoder and a decoder that reads it: learn to write a sequence backwards.
#include <streambp/streambp.hpp>

#include <iostream>

using namespace streambp;

int main() {
  constexpr position letters = 12, width = 48, length = 24, samples = 64, start = letters;

  // [encoder_decoder]
  const auto mlp = residual(rms_norm(width) | swiglu(width, 2 * width));
  const auto encoder =
      embedding(letters, width) |
      repeat(2, residual(rms_norm(width) |
                         bidirectional_attention({.features = width, .heads = 4, .rotary = 100})) |
                    mlp) |
      rms_norm(width);
  const auto decoder =
      embedding(letters + 1, width) |
      repeat(2, residual(rms_norm(width) |
                         causal_attention({.features = width, .heads = 4, .rotary = 100})) |
                    residual(rms_norm(width) | cross_attention({.features = width, .heads = 4})) |
                    mlp) |
      rms_norm(width) | linear(width, letters);
  // [/encoder_decoder]

  // Source: letters. Target: a start token, then the source from its end.
  std::vector<position> source_offsets{0}, target_offsets{0};
  std::vector<std::int32_t> source, target, labels;
  for (position s = 0; s < samples; ++s) {
    const random_key key{1, 0, std::uint64_t(s), 0};
    const position n = 1 + length * (s + 1) / samples;
    for (position i = 0; i < n; ++i)
      source.push_back(std::int32_t(random_bits(key, i, 0) % std::uint64_t(letters)));
    target.push_back(start);
    labels.push_back(-100);  // nothing predicts a sample's first token
    for (position i = 0; i < n; ++i) target.push_back(source[source.size() - 1 - std::size_t(i)]);
    labels.insert(labels.end(), target.end() - n, target.end());
    source_offsets.push_back(position(source.size()));
    target_offsets.push_back(position(target.size()));
  }

  const auto p =
      plan_encoder_decoder(encoder, decoder, cross_entropy{}, packed(source_offsets),
                           packed(target_offsets), width, {.budget = 16_MiB, .threads = 2});
  encoder_decoder step(p, encoder, decoder, cross_entropy{});
  std::cout << "peak " << bytes_in_words(p.peak()) << " of 16 MiB\n";

  std::vector<float> parameters = initial_parameters<float>(step.encoder_parameters(), 1);
  const auto above = initial_parameters<float>(step.decoder_parameters(), 2);
  adamw<float> below(step.encoder_parameters()), upper(step.decoder_parameters());
  const auto own = parameters.size();
  parameters.insert(parameters.end(), above.begin(), above.end());
  std::vector<float> gradient(parameters.size());

  batch<float> from, to;
  from.tokens = source;
  to.tokens = target;
  to.labels = labels;
  double first = 0, loss = 0;
  for (int i = 0; i < 120; ++i) {
    std::fill(gradient.begin(), gradient.end(), 0.f);
    loss = step.add_gradient(parameters, from, to, gradient);
    if (i == 0) first = loss;
    if (i % 20 == 0) std::cout << "step " << i << "  loss " << loss << "\n";
    const std::span<float> all(parameters), slopes(gradient);
    below.update(all.first(own), slopes.first(own), 3e-3);
    upper.update(all.subspan(own), slopes.subspan(own), 3e-3);
  }
  std::cout << "loss " << first << " -> " << loss << "\n";
  return loss < first / 2 ? 0 : 1;
}

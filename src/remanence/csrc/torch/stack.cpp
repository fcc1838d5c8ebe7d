// Drawing tokens and single steps of a stack of layers as torch ops. Called through ops/generation.py and ops/stream.py.
#include <tuple>

#include "stack.h"

namespace remanence {
namespace {

using Out = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Out with_state(const Tensor &made, const StackState &f) {
  return {made, f.s, f.c, f.h, f.recent, f.recent_score, f.relevant, f.relevant_score, f.relevant_step, f.step};
}

struct Ends {  // what stands before and behind the layers
  Tensor before;
  Tensor head;
  Maybe head_bias;
  Maybe embedding;
  Maybe uniforms;
};

template <class T> Generation<T> read_ends(const Stack &s, const Ends &e, double temperature) {
  Generation<T> g{};
  ScalarType dtype = e.head.scalar_type();
  g.steps = s.steps;
  g.batch = s.batch;
  g.classes = e.head.size(0);
  g.temperature = temperature;
  g.features = s.features();
  g.tokens = e.embedding ? e.embedding->size(0) : s.inputs();
  STD_TORCH_CHECK(g.classes >= 1 && g.classes <= g.tokens, "remanence: the head draws tokens that cannot be read");
  expect(e.before, "tokens", ScalarType::Long, {g.batch});
  expect(e.head, "head", dtype, {g.classes, g.features});
  expect(e.head_bias, "head_bias", dtype, {g.classes});
  expect(e.embedding, "embedding", dtype, {g.tokens, s.inputs()});
  expect(e.uniforms, "uniforms", ScalarType::Double, {g.steps, g.batch});
  g.embedding = in<T>(e.embedding);
  g.head = in<T>(e.head);
  g.head_bias = in<T>(e.head_bias);
  g.uniforms = in<double>(e.uniforms);
  g.before = in<int64_t>(e.before);
  for (Index row = 0; row < g.batch; ++row)
    STD_TORCH_CHECK(g.before[row] >= 0 && g.before[row] < g.tokens,
                    "remanence: `tokens` holds one that cannot be read");
  return g;
}

template <class T> Out generate_typed(const Stack &s, const Ends &e, double temperature) {
  Generation<T> g = read_ends<T>(s, e, temperature);
  std::vector<Scan<T>> layers = read_layers<T>(s);
  Tensor drawn = fresh({s.steps, s.batch}, ScalarType::Long);
  g.drawn = out<int64_t>(drawn);
  bool numbers = run_generate(g, layers, torch::stable::get_num_threads(), TorchParallel());
  STD_TORCH_CHECK(numbers, "the logits are not finite: there is nothing to draw from");
  return with_state(drawn, s.final);
}

Out generate(Tensor tokens, std::vector<Tensor> weights, Tensor s, Tensor c, Tensor h, Tensor recent,
             Tensor recent_score, Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step,
             Tensor head, Maybe head_bias, Maybe embedding, Maybe uniforms, int64_t steps, double temperature,
             Config config) {
  StackState state{s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step};
  Ends ends{dense(tokens), dense(head), dense(head_bias), dense(embedding), dense(uniforms)};
  STD_TORCH_CHECK(tokens.dim() == 1 && head.dim() == 2, "remanence: `tokens` must be a row and `head` a matrix");
  STD_TORCH_CHECK(!embedding || embedding->dim() == 2, "remanence: `embedding` must be a matrix");
  Stack stack = read_stack(weights, state, config, tokens.size(0), true, steps, head.scalar_type());
  if (head.scalar_type() == ScalarType::Float) return generate_typed<float>(stack, ends, temperature);
  return generate_typed<double>(stack, ends, temperature);
}

template <class T> Out step_typed(const Stack &s, const Tensor &x) {
  std::vector<Scan<T>> layers = read_layers<T>(s);
  Tensor output = fresh(s.batched ? Shape{s.batch, s.features()} : Shape{s.features()}, x.scalar_type());
  run_step(layers, in<T>(x), out<T>(output), torch::stable::get_num_threads(), TorchParallel());
  return with_state(output, s.final);
}

Out step_stack(Tensor x, std::vector<Tensor> weights, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score,
               Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, Config config) {
  StackState state{s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step};
  bool batched = x.dim() == 2;
  STD_TORCH_CHECK(batched || x.dim() == 1, "remanence: `x` must be one step, with or without rows");
  ScalarType dtype = x.scalar_type();
  Stack stack = read_stack(weights, state, config, batched ? x.size(0) : 1, batched, 1, dtype);
  STD_TORCH_CHECK(x.size(batched) == stack.inputs(), "remanence: `x` has an unexpected number of features");
  Tensor input = dense(x);
  STD_TORCH_CHECK(input.is_cpu(), "remanence: `x` must be on the CPU");
  return dtype == ScalarType::Float ? step_typed<float>(stack, input) : step_typed<double>(stack, input);
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(remanence, m) {
  m.def(
      "generate(Tensor tokens, Tensor[] weights, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score, "
      "Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, Tensor head, Tensor? head_bias, "
      "Tensor? embedding, Tensor? uniforms, int steps, float temperature, int[] config) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "step(Tensor x, Tensor[] weights, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score, "
      "Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, int[] config) -> (Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(remanence, CPU, m) {
  m.impl("generate", TORCH_BOX(&generate));
  m.impl("step", TORCH_BOX(&step_stack));
}

}  // namespace remanence

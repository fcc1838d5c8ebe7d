// Drawing tokens as a torch op: schema, checks, allocation. Called through ops/generation.py.
#include <array>
#include <tuple>

#include "generate_dispatch.h"
#include "tensors.h"

namespace remanence {
namespace {

constexpr int WEIGHTS = 8;  // tensors of one layer, an empty one where there is none: see `Weights` in ops/_types.py
constexpr int FIELDS = 9;   // tensors of the state, without `chain`: see `State`
using Fields = std::array<Tensor, FIELDS>;
using GenerateOut = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

struct Model {  // contiguous tensors, kept alive
  std::vector<Tensor> weights;
  Fields state;  // s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step: (depth, batch, ...)
  Tensor before, head;
  Maybe head_bias, embedding, uniforms;
};

// Fields of the final state: those of the first, but for a ring that grows.
Fields make_final(const Model &m, const Spec &spec, Index steps) {
  Fields made;
  for (int i = 0; i < FIELDS; ++i) {
    std::vector<int64_t> shape;
    for (int64_t j = 0; j < m.state[i].dim(); ++j) shape.push_back(m.state[i].size(j));
    if (i == 3 && spec.memory == BUFFER && spec.recent < 0) shape[2] += steps;
    made[i] = torch::stable::new_empty(m.state[i], shape);
  }
  return made;
}

void check_layer(const Model &m, const Spec &spec, Index layer, Index n, Index inputs) {
  const Tensor *w = &m.weights[layer * WEIGHTS];
  ScalarType dtype = m.head.scalar_type();
  Index gates = spec.blocks() * n;
  auto check = [&](int i, const char *name, std::initializer_list<int64_t> shape, bool needed) {
    if (needed || w[i].numel()) expect(w[i], name, dtype, shape);
  };
  check(0, "ih", {gates, inputs}, true), check(1, "hh", {gates, n}, true);
  check(2, "bias_ih", {gates}, false), check(3, "bias_hh", {gates}, false), check(7, "modrelu", {n}, false);
  if (spec.memory == BUFFER) check(4, "query", {n, n}, true), check(5, "key", {n, n}, true), check(6, "score", {n}, false);
  if (spec.memory == STRIDE) check(4, "query", {n}, true), check(5, "key", {n}, true), check(6, "score", {1}, false);
}

void check_state(const Fields &state, const Spec &spec, Index depth, Index batch, Index n, ScalarType dtype) {
  Index held = spec.memory != BUFFER ? 0 : spec.recent < 0 ? state[3].size(2) : spec.recent;
  Index scored = spec.memory == BUFFER && spec.recent >= 0 ? state[4].size(2) : 0;
  Index relevant = spec.relevant, ranked = spec.memory == BUFFER ? relevant : 0;
  STD_TORCH_CHECK(scored == 0 || scored == held, "remanence: `state.recent_score` has an unexpected shape");
  expect(state[0], "state.s", dtype, {depth, batch, n});
  expect(state[1], "state.c", dtype, {depth, batch, spec.cell == LSTM ? n : 0});
  expect(state[2], "state.h", dtype, {depth, batch, spec.leaks_h() ? n : 0});
  expect(state[3], "state.recent", dtype, {depth, batch, held, n});
  expect(state[4], "state.recent_score", dtype, {depth, batch, scored});
  expect(state[5], "state.relevant", dtype, {depth, batch, relevant, n});
  expect(state[6], "state.relevant_score", dtype, {depth, batch, ranked});
  expect(state[7], "state.relevant_step", ScalarType::Long, {depth, batch, relevant});
  expect(state[8], "state.step", ScalarType::Long, {depth, batch});
  const int64_t *step = in<int64_t>(state[8]);
  for (Index i = 0; i < depth * batch; ++i) STD_TORCH_CHECK(step[i] >= 0, "`state.step` must not be negative");
}

// One layer's part of a field (depth, batch, ...), or null where it is empty.
template <class U> const U *part(const Tensor &field, Index layer) {
  return field.numel() ? in<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}
template <class U> U *part_out(const Tensor &field, Index layer) {
  return field.numel() ? out<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}

template <class T>
Scan<T> read_layer(const Model &m, const Fields &final, const Spec &spec, Index layer, Index n, Index steps) {
  const Tensor *w = &m.weights[layer * WEIGHTS];
  Scan<T> a{};
  a.spec = spec, a.steps = steps, a.inputs = w[0].size(1);
  a.n = n, a.np = (n + ALIGN - 1) / ALIGN * ALIGN;
  a.held = spec.memory == BUFFER ? m.state[3].size(2) : 0;
  a.capacity = spec.memory == BUFFER ? final[3].size(2) : 0;
  a.w_ih = in<T>(w[0]), a.w_hh = in<T>(w[1]), a.b_ih = in<T>(w[2]), a.b_hh = in<T>(w[3]);
  a.query = in<T>(w[4]), a.key = in<T>(w[5]), a.score = in<T>(w[6]), a.modrelu = in<T>(w[7]);
  a.s0 = part<T>(m.state[0], layer), a.c0 = part<T>(m.state[1], layer), a.h0 = part<T>(m.state[2], layer);
  a.recent0 = part<T>(m.state[3], layer), a.recent_score0 = part<T>(m.state[4], layer);
  a.relevant0 = part<T>(m.state[5], layer), a.relevant_score0 = part<T>(m.state[6], layer);
  a.relevant_step0 = part<int64_t>(m.state[7], layer), a.step0 = part<int64_t>(m.state[8], layer);
  a.s1 = part_out<T>(final[0], layer), a.c1 = part_out<T>(final[1], layer), a.h1 = part_out<T>(final[2], layer);
  a.recent1 = part_out<T>(final[3], layer), a.recent_score1 = part_out<T>(final[4], layer);
  a.relevant1 = part_out<T>(final[5], layer), a.relevant_score1 = part_out<T>(final[6], layer);
  a.relevant_step1 = part_out<int64_t>(final[7], layer), a.step1 = part_out<int64_t>(final[8], layer);
  return a;
}

// Sizes and values that the steps rely on.
template <class T> Generation<T> read_ends(const Model &m, const Spec &spec, Index n, Index steps, double temperature) {
  Generation<T> g{};
  ScalarType dtype = m.head.scalar_type();
  g.steps = steps, g.batch = m.before.size(0), g.classes = m.head.size(0), g.temperature = temperature;
  g.features = spec.output == SUMMARY && spec.memory != NONE ? 2 * n : n;
  g.tokens = m.embedding ? m.embedding->size(0) : m.weights[0].size(1);
  STD_TORCH_CHECK(g.batch >= 1 && steps >= 1, "remanence: there must be at least one row and one step");
  STD_TORCH_CHECK(g.classes >= 1 && g.classes <= g.tokens, "remanence: the head draws tokens that cannot be read");
  expect(m.before, "tokens", ScalarType::Long, {g.batch});
  expect(m.head, "head", dtype, {g.classes, g.features});
  expect(m.head_bias, "head_bias", dtype, {g.classes});
  expect(m.embedding, "embedding", dtype, {g.tokens, m.weights[0].size(1)});
  expect(m.uniforms, "uniforms", ScalarType::Double, {steps, g.batch});
  g.embedding = in<T>(m.embedding), g.head = in<T>(m.head), g.head_bias = in<T>(m.head_bias);
  g.uniforms = in<double>(m.uniforms), g.before = in<int64_t>(m.before);
  for (Index row = 0; row < g.batch; ++row)
    STD_TORCH_CHECK(g.before[row] >= 0 && g.before[row] < g.tokens, "remanence: `tokens` holds one that cannot be read");
  return g;
}

template <class T>
GenerateOut generate_typed(const Model &m, const Spec &spec, Index depth, Index steps, double temperature) {
  Index n = m.weights[1].size(1);
  Generation<T> g = read_ends<T>(m, spec, n, steps, temperature);
  check_state(m.state, spec, depth, g.batch, n, m.head.scalar_type());
  Fields final = make_final(m, spec, steps);
  std::vector<Scan<T>> layers;
  for (Index layer = 0; layer < depth; ++layer) {
    check_layer(m, spec, layer, n, layer ? g.features : m.weights[0].size(1));
    layers.push_back(read_layer<T>(m, final, spec, layer, n, steps));
  }
  Tensor drawn = torch::stable::new_empty(m.before, {steps, g.batch});
  g.drawn = out<int64_t>(drawn);
  bool numbers = run_generate(g, layers, torch::stable::get_num_threads(), TorchParallel());
  STD_TORCH_CHECK(numbers, "the logits are not finite: there is nothing to draw from");
  return {drawn, final[0], final[1], final[2], final[3], final[4], final[5], final[6], final[7], final[8]};
}

GenerateOut generate(Tensor tokens, std::vector<Tensor> weights, Tensor s, Tensor c, Tensor h, Tensor recent,
                     Tensor recent_score, Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step,
                     Tensor head, Maybe head_bias, Maybe embedding, Maybe uniforms, int64_t steps, double temperature,
                     Config config) {
  Index depth = Index(weights.size()) / WEIGHTS;
  STD_TORCH_CHECK(depth && weights.size() % WEIGHTS == 0, "remanence: `weights` must hold 8 tensors a layer");
  for (Tensor &weight : weights) weight = dense(weight);
  Model m{weights,
          {dense(s), dense(c), dense(h), dense(recent), dense(recent_score), dense(relevant), dense(relevant_score),
           dense(relevant_step), dense(step)},
          dense(tokens), dense(head), dense(head_bias), dense(embedding), dense(uniforms)};
  Spec spec = read_spec(config);
  if (head.scalar_type() == ScalarType::Float) return generate_typed<float>(m, spec, depth, steps, temperature);
  STD_TORCH_CHECK(head.scalar_type() == ScalarType::Double, "remanence: the fused kernel takes float32 and float64");
  return generate_typed<double>(m, spec, depth, steps, temperature);
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(remanence, m) {
  m.def(
      "generate(Tensor tokens, Tensor[] weights, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score, "
      "Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, Tensor head, Tensor? head_bias, "
      "Tensor? embedding, Tensor? uniforms, int steps, float temperature, int[] config) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(remanence, CPU, m) { m.impl("generate", TORCH_BOX(&generate)); }

}  // namespace remanence

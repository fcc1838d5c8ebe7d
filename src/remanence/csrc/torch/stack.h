// A stack of layers and its state as checked pointers: what generation and streams are bound with.
#pragma once
#include <array>

#include "../kernel/stack_dispatch.h"
#include "tensors.h"

namespace remanence {

constexpr int WEIGHTS = 8;  // tensors of one layer, an empty one where there is none: see `Weights` in ops/_types.py
constexpr int FIELDS = 9;   // tensors of the state, without `chain`: see `State`
using Fields =
    std::array<Tensor, FIELDS>;  // s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step

struct Stack {  // contiguous tensors, kept alive
  std::vector<Tensor> weights;
  Fields state;  // (depth, batch, ...), or (depth, ...) without a batch
  Fields final;  // of the same shapes, but for a ring that grows
  Spec spec;
  Index depth, batch, n, steps;
  bool batched;

  Index features() const { return spec.output == Output::SUMMARY && spec.memory != Memory::NONE ? 2 * n : n; }
  Index inputs() const { return weights[0].size(1); }
};

inline void check_layer(const Stack &s, Index layer, ScalarType dtype) {
  const Tensor *w = &s.weights[layer * WEIGHTS];
  Index n = s.n, gates = s.spec.blocks() * n;
  auto check = [&](int i, const char *name, std::initializer_list<int64_t> shape, bool needed) {
    if (needed || w[i].numel()) expect(w[i], name, dtype, shape);
  };
  check(0, "ih", {gates, layer ? s.features() : s.inputs()}, true);
  check(1, "hh", {gates, n}, true);
  check(2, "bias_ih", {gates}, false);
  check(3, "bias_hh", {gates}, false);
  check(7, "modrelu", {n}, false);
  bool matrices = s.spec.memory == Memory::BUFFER;
  if (matrices) {
    check(4, "query", {n, n}, true);
    check(5, "key", {n, n}, true);
    check(6, "score", {n}, false);
  }
  if (s.spec.memory == Memory::STRIDE) {
    check(4, "query", {n}, true);
    check(5, "key", {n}, true);
    check(6, "score", {1}, false);
  }
}

inline void check_state(const Stack &s, ScalarType dtype) {
  static const char *const names[FIELDS] = {"state.s",
                                            "state.c",
                                            "state.h",
                                            "state.recent",
                                            "state.recent_score",
                                            "state.relevant",
                                            "state.relevant_score",
                                            "state.relevant_step",
                                            "state.step"};
  const Spec &spec = s.spec;
  Index slots = 1 + s.batched, relevant = spec.relevant, ranked = spec.memory == Memory::BUFFER ? relevant : 0;
  Index held = spec.memory != Memory::BUFFER ? 0 : spec.recent >= 0 ? spec.recent : s.state[3].size(slots);
  Index scored = spec.memory == Memory::BUFFER && spec.recent >= 0 && s.state[4].numel() ? held : 0;
  Index sizes[FIELDS][2] = {{s.n, -1},
                            {spec.cell == Cell::LSTM ? s.n : 0, -1},
                            {spec.leaks_h() ? s.n : 0, -1},
                            {held, s.n},
                            {scored, -1},
                            {relevant, s.n},
                            {ranked, -1},
                            {relevant, -1},
                            {-1, -1}};
  for (int i = 0; i < FIELDS; ++i) {
    const Tensor &field = s.state[i];
    Index have = field.dim(), j = slots;
    bool fits = field.scalar_type() == (i < 7 ? dtype : ScalarType::Long) && have >= slots && field.size(0) == s.depth;
    if (fits && s.batched) fits = field.size(1) == s.batch;
    for (Index size : sizes[i])
      if (size >= 0) {
        fits = fits && j < have && field.size(j) == size;
        ++j;
      }
    STD_TORCH_CHECK(fits && have == j, "remanence: `", names[i], "` has an unexpected shape or dtype");
  }
  const int64_t *step = in<int64_t>(s.state[8]);
  for (Index i = 0; i < s.depth * s.batch; ++i) STD_TORCH_CHECK(step[i] >= 0, "`state.step` must not be negative");
}

inline void make_final(Stack &s) {
  for (int i = 0; i < FIELDS; ++i) {
    Shape shape = shape_of(s.state[i]);
    if (i == 3 && s.spec.memory == Memory::BUFFER && s.spec.recent < 0) shape[1 + s.batched] += s.steps;
    s.final[i] = fresh(shape, s.state[i].scalar_type());
  }
}

// One layer's part of a field, or null where it is empty.
template <class U> const U *part(const Tensor &field, Index layer) {
  return field.numel() ? in<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}
template <class U> U *part_out(const Tensor &field, Index layer) {
  return field.numel() ? out<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}

template <class T> Scan<T> read_layer(const Stack &s, Index layer) {
  const Tensor *w = &s.weights[layer * WEIGHTS];
  Scan<T> a{};
  a.spec = s.spec;
  a.steps = s.steps;
  a.batch = s.batch;
  a.inputs = w[0].size(1);
  a.n = s.n;
  a.np = (s.n + ALIGN - 1) / ALIGN * ALIGN;
  a.held = s.spec.memory == Memory::BUFFER ? s.state[3].size(1 + s.batched) : 0;
  a.capacity = s.spec.memory == Memory::BUFFER ? s.final[3].size(1 + s.batched) : 0;
  a.w_ih = in<T>(w[0]);
  a.w_hh = in<T>(w[1]);
  a.b_ih = in<T>(w[2]);
  a.b_hh = in<T>(w[3]);
  a.query = in<T>(w[4]);
  a.key = in<T>(w[5]);
  a.score = in<T>(w[6]);
  a.modrelu = in<T>(w[7]);
  a.s0 = part<T>(s.state[0], layer);
  a.c0 = part<T>(s.state[1], layer);
  a.h0 = part<T>(s.state[2], layer);
  a.recent0 = part<T>(s.state[3], layer);
  a.recent_score0 = part<T>(s.state[4], layer);
  a.relevant0 = part<T>(s.state[5], layer);
  a.relevant_score0 = part<T>(s.state[6], layer);
  a.relevant_step0 = part<int64_t>(s.state[7], layer);
  a.step0 = part<int64_t>(s.state[8], layer);
  a.s1 = part_out<T>(s.final[0], layer);
  a.c1 = part_out<T>(s.final[1], layer);
  a.h1 = part_out<T>(s.final[2], layer);
  a.recent1 = part_out<T>(s.final[3], layer);
  a.recent_score1 = part_out<T>(s.final[4], layer);
  a.relevant1 = part_out<T>(s.final[5], layer);
  a.relevant_score1 = part_out<T>(s.final[6], layer);
  a.relevant_step1 = part_out<int64_t>(s.final[7], layer);
  a.step1 = part_out<int64_t>(s.final[8], layer);
  return a;
}

// Checks everything and makes the final state. `state` in the order of `Fields`.
inline Stack read_stack(std::vector<Tensor> weights, const Fields &state, const Config &config, Index batch,
                        bool batched, Index steps, ScalarType dtype) {
  STD_TORCH_CHECK(weights.size() && weights.size() % WEIGHTS == 0, "remanence: `weights` must hold 8 tensors a layer");
  STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                  "remanence: the fused kernel takes float32 and float64");
  for (Tensor &weight : weights) weight = dense(weight);
  Stack s{std::move(weights), state, {}, read_spec(config), 0, batch, 0, steps, batched};
  for (Tensor &field : s.state) field = dense(field);
  STD_TORCH_CHECK(s.weights[0].dim() == 2 && s.weights[1].dim() == 2, "remanence: weights must be matrices");
  STD_TORCH_CHECK(batch >= 1 && steps >= 1, "remanence: there must be at least one row and one step");
  s.depth = Index(s.weights.size()) / WEIGHTS;
  s.n = s.weights[1].size(1);
  for (Index layer = 0; layer < s.depth; ++layer) check_layer(s, layer, dtype);
  check_state(s, dtype);
  make_final(s);
  return s;
}

template <class T> std::vector<Scan<T>> read_layers(const Stack &s) {
  std::vector<Scan<T>> layers;
  for (Index layer = 0; layer < s.depth; ++layer) layers.push_back(read_layer<T>(s, layer));
  return layers;
}

}  // namespace remanence

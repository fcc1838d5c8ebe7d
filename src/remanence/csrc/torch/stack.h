// A stack of layers and its state as checked pointers: what generation and streams are bound with.
#pragma once
#include <utility>

#include "../kernel/stack_dispatch.h"
#include "tensors.h"

namespace remanence {

struct LayerWeights {  // an empty tensor where there is none: `Weights` in ops/_weights.py
  static constexpr std::size_t COUNT = 10;
  Tensor ih;
  Tensor hh;
  Tensor bias_ih;
  Tensor bias_hh;
  Tensor query;
  Tensor key;
  Tensor score;
  Tensor own;
  Tensor gate;
  Tensor gate_bias;

  static LayerWeights from(const Tensor *w) {
    return {dense(w[0]), dense(w[1]), dense(w[2]), dense(w[3]), dense(w[4]),
            dense(w[5]), dense(w[6]), dense(w[7]), dense(w[8]), dense(w[9])};
  }
};

struct StackState {  // `State` in ops/_state.py, without `chain`: (depth, batch, ...), or (depth, ...) without a batch
  Tensor s;
  Tensor c;
  Tensor h;
  Tensor recent;
  Tensor recent_score;
  Tensor relevant;
  Tensor relevant_score;
  Tensor relevant_step;
  Tensor step;

  StackState contiguous() const {
    return {dense(s),
            dense(c),
            dense(h),
            dense(recent),
            dense(recent_score),
            dense(relevant),
            dense(relevant_score),
            dense(relevant_step),
            dense(step)};
  }
};

struct Stack {  // contiguous tensors, kept alive
  std::vector<LayerWeights> layers;
  StackState state;
  StackState final;  // of the same shapes, but for a ring that grows
  Spec spec;
  Index batch;
  Index n;
  Index steps;
  bool batched;

  Index depth() const { return Index(layers.size()); }
  Index features() const { return spec.features(n); }
  Index inputs() const { return layers[0].ih.size(1); }
  bool grows() const { return spec.has_keys() && spec.recent < 0; }
  Index held(const StackState &of) const { return spec.has_keys() ? of.recent.size(1 + batched) : 0; }
  // Whether a field of the state has `rest` behind the dimensions that all fields share.
  void expect(const Tensor &field, const char *name, ScalarType dtype, std::initializer_list<int64_t> rest) const {
    STD_TORCH_CHECK(field.is_cpu(), "remanence: `", name, "` must be on the CPU");
    int64_t i = 1 + batched;
    bool fits = field.scalar_type() == dtype && field.dim() == i + int64_t(rest.size()) && field.size(0) == depth();
    if (batched) fits = fits && field.size(1) == batch;
    for (int64_t size : rest) fits = fits && field.size(i++) == size;
    STD_TORCH_CHECK(fits, "remanence: `", name, "` has an unexpected shape or dtype");
  }
};

inline void check_layer(const Stack &stack, const LayerWeights &w, Index inputs, ScalarType dtype) {
  Index n = stack.n;
  Index gates = stack.spec.blocks() * n;
  auto optional = [&](const Tensor &weight, const char *name, std::initializer_list<int64_t> shape) {
    if (weight.numel()) expect(weight, name, dtype, shape);
  };
  expect(w.ih, "ih", dtype, {gates, inputs});
  expect(w.hh, "hh", dtype, {gates, n});
  optional(w.bias_ih, "bias_ih", {gates});
  optional(w.bias_hh, "bias_hh", {gates});
  optional(w.own, "own", {n});
  STD_TORCH_CHECK(stack.spec.nonlinearity != Nonlinearity::MODRELU || w.own.numel(),
                  "remanence: a modrelu needs `own`");
  if (!stack.spec.remembers()) return;
  bool matrices = stack.spec.has_keys();
  if (matrices) {
    expect(w.query, "query", dtype, {n, n});
    expect(w.key, "key", dtype, {n, n});
  } else {
    expect(w.query, "query", dtype, {n});
    expect(w.key, "key", dtype, {n});
  }
  optional(w.score, "score", {matrices ? n : 1});
  STD_TORCH_CHECK(!matrices || stack.spec.score != Score::ADDITIVE || w.score.numel(),
                  "remanence: an additive score needs `score`");
  optional(w.gate, "gate", {n});
  optional(w.gate_bias, "gate_bias", {1});
  STD_TORCH_CHECK(!stack.spec.screening().gated || (w.gate.numel() && w.gate_bias.numel()),
                  "remanence: a learned screen needs `gate` and `gate_bias`");
}

inline void check_state(const Stack &stack, ScalarType dtype) {
  const Spec &spec = stack.spec;
  const StackState &state = stack.state;
  Index n = stack.n;
  Index slots = spec.relevant;
  Index ring_place = 1 + stack.batched;
  bool buffer = spec.has_keys();
  STD_TORCH_CHECK(state.recent.dim() == ring_place + 2, "remanence: `state.recent` has an unexpected shape or dtype");
  Index held = spec.ring(state.recent.size(ring_place));
  stack.expect(state.s, "state.s", dtype, {n});
  stack.expect(state.c, "state.c", dtype, {spec.has_c() ? n : 0});
  stack.expect(state.h, "state.h", dtype, {spec.leaks_h() ? n : 0});
  stack.expect(state.recent, "state.recent", dtype, {held, n});
  stack.expect(state.recent_score, "state.recent_score", dtype, {spec.screens ? held : 0});
  stack.expect(state.relevant, "state.relevant", dtype, {slots, n});
  stack.expect(state.relevant_score, "state.relevant_score", dtype, {buffer ? slots : 0});
  stack.expect(state.relevant_step, "state.relevant_step", ScalarType::Long, {slots});
  stack.expect(state.step, "state.step", ScalarType::Long, {});
  check_steps(in<int64_t>(state.step), stack.depth() * stack.batch, in<int64_t>(state.relevant_step), slots);
}

inline StackState make_final(const Stack &stack) {
  const StackState &from = stack.state;
  auto like = [](const Tensor &field) { return fresh(shape_of(field), field.scalar_type()); };
  Shape recent = shape_of(from.recent);
  if (stack.grows()) recent[1 + stack.batched] += stack.steps;
  return {like(from.s),
          like(from.c),
          like(from.h),
          fresh(recent, from.recent.scalar_type()),
          like(from.recent_score),
          like(from.relevant),
          like(from.relevant_score),
          like(from.relevant_step),
          like(from.step)};
}

// One layer's part of a field, or null where it is empty.
template <class U> const U *part(const Tensor &field, Index layer) {
  return field.numel() ? in<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}
template <class U> U *part_out(const Tensor &field, Index layer) {
  return field.numel() ? out<U>(field) + layer * (field.numel() / field.size(0)) : nullptr;
}

template <class T> Scan<T> read_layer(const Stack &stack, Index layer) {
  const LayerWeights &w = stack.layers[layer];
  const StackState &from = stack.state;
  const StackState &to = stack.final;
  Scan<T> a{};
  a.spec = stack.spec;
  a.steps = stack.steps;
  a.batch = stack.batch;
  a.inputs = w.ih.size(1);
  a.n = stack.n;
  a.np = (a.n + ALIGN - 1) / ALIGN * ALIGN;
  a.held = stack.held(from);
  a.capacity = stack.held(to);
  a.w_ih = in<T>(w.ih);
  a.w_hh = in<T>(w.hh);
  a.b_ih = in<T>(w.bias_ih);
  a.b_hh = in<T>(w.bias_hh);
  a.query = in<T>(w.query);
  a.key = in<T>(w.key);
  a.score = in<T>(w.score);
  a.own = in<T>(w.own);
  a.gate = in<T>(w.gate);
  a.gate_bias = in<T>(w.gate_bias);
  a.s0 = part<T>(from.s, layer);
  a.c0 = part<T>(from.c, layer);
  a.h0 = part<T>(from.h, layer);
  a.recent0 = part<T>(from.recent, layer);
  a.recent_score0 = part<T>(from.recent_score, layer);
  a.relevant0 = part<T>(from.relevant, layer);
  a.relevant_score0 = part<T>(from.relevant_score, layer);
  a.relevant_step0 = part<int64_t>(from.relevant_step, layer);
  a.step0 = part<int64_t>(from.step, layer);
  a.s1 = part_out<T>(to.s, layer);
  a.c1 = part_out<T>(to.c, layer);
  a.h1 = part_out<T>(to.h, layer);
  a.recent1 = part_out<T>(to.recent, layer);
  a.recent_score1 = part_out<T>(to.recent_score, layer);
  a.relevant1 = part_out<T>(to.relevant, layer);
  a.relevant_score1 = part_out<T>(to.relevant_score, layer);
  a.relevant_step1 = part_out<int64_t>(to.relevant_step, layer);
  a.step1 = part_out<int64_t>(to.step, layer);
  return a;
}

// Checks everything and makes the final state.
inline Stack read_stack(const std::vector<Tensor> &weights, const StackState &state, const Config &config, Index batch,
                        bool batched, Index steps, ScalarType dtype) {
  STD_TORCH_CHECK(weights.size() && weights.size() % LayerWeights::COUNT == 0,
                  "remanence: `weights` must hold 10 tensors a layer");
  STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                  "remanence: the fused kernel takes float32 and float64");
  STD_TORCH_CHECK(batch >= 1 && steps >= 1 && steps <= MOST_SLOTS,
                  "remanence: there must be at least one row and one step");
  Stack stack{{}, state.contiguous(), {}, read_spec(config), batch, 0, steps, batched};
  for (std::size_t at = 0; at < weights.size(); at += LayerWeights::COUNT)
    stack.layers.push_back(LayerWeights::from(&weights[at]));
  const LayerWeights &first = stack.layers[0];
  STD_TORCH_CHECK(first.ih.dim() == 2 && first.hh.dim() == 2 && first.hh.size(1) >= 1,
                  "remanence: weights must be matrices");
  stack.n = first.hh.size(1);
  for (Index layer = 0; layer < stack.depth(); ++layer)
    check_layer(stack, stack.layers[layer], layer ? stack.features() : stack.inputs(), dtype);
  check_state(stack, dtype);
  stack.final = make_final(stack);
  return stack;
}

template <class T> std::vector<Scan<T>> read_layers(const Stack &stack) {
  std::vector<Scan<T>> layers;
  for (Index layer = 0; layer < stack.depth(); ++layer) layers.push_back(read_layer<T>(stack, layer));
  return layers;
}

}  // namespace remanence

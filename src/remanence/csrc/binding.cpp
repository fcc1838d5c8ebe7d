// The only file that knows torch: schemas, checks, allocation. Through the stable ABI, so one build serves several
// torch versions. Autograd is registered from Python (ops/fused.py).
#include <string>
#include <tuple>

#include "dispatch.h"
#include "tensors.h"

namespace remanence {
namespace {

struct Inputs {  // contiguous tensors, kept alive; order of the schema
  Tensor x, w_ih, w_hh;
  Maybe b_ih, b_hh, query, key, score, modrelu;
  Tensor s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step;
  Maybe reset, lengths, cut_h, cut_c, h_offset, forced;
};

void check_shapes(const Inputs &i, const Spec &spec, Index n, Index held) {
  int64_t steps = i.x.size(0), batch = i.x.size(1), inputs = i.x.size(2), gates = spec.blocks() * n;
  ScalarType dtype = i.x.scalar_type();
  expect(i.w_ih, "weight_ih", dtype, {gates, inputs});
  expect(i.w_hh, "weight_hh", dtype, {gates, n});
  expect(i.b_ih, "bias_ih", dtype, {gates});
  expect(i.b_hh, "bias_hh", dtype, {gates});
  expect(i.modrelu, "bias_modrelu", dtype, {n});
  if (spec.memory == BUFFER) {
    STD_TORCH_CHECK(i.query && i.key, "remanence: a memory needs `query` and `key` weights");
    expect(i.query, "query", dtype, {n, n}), expect(i.key, "key", dtype, {n, n}), expect(i.score, "score", dtype, {n});
  } else if (spec.memory == STRIDE) {
    STD_TORCH_CHECK(i.query && i.key, "remanence: a memory needs `query` and `key` weights");
    expect(i.query, "query", dtype, {n}), expect(i.key, "key", dtype, {n}), expect(i.score, "score", dtype, {1});
  }
  expect(i.s, "state.s", dtype, {batch, n});
  expect(i.c, "state.c", dtype, {batch, spec.cell == LSTM ? n : 0});
  expect(i.h, "state.h", dtype, {batch, spec.leaks_h() ? n : 0});
  expect(i.recent, "state.recent", dtype, {batch, held, n});
  expect(i.relevant, "state.relevant", dtype, {batch, spec.relevant, n});
  expect(i.relevant_score, "state.relevant_score", dtype, {batch, spec.memory == BUFFER ? spec.relevant : 0});
  expect(i.relevant_step, "state.relevant_step", ScalarType::Long, {batch, spec.relevant});
  expect(i.step, "state.step", ScalarType::Long, {batch});
  for (const auto &[mask, name] : {std::pair{&i.reset, "reset"}, {&i.cut_h, "cut_h"}, {&i.cut_c, "cut_c"}})
    expect(*mask, name, ScalarType::Bool, {steps, batch});
  expect(i.lengths, "lengths", ScalarType::Long, {batch});
  expect(i.forced, "forced_log.slot", ScalarType::Long, {steps, batch});
  expect(i.h_offset, "h_offset", dtype, {steps, batch, n});
}

void check_values(const Inputs &i) {
  int64_t steps = i.x.size(0), batch = i.x.size(1);
  const int64_t *lengths = in<int64_t>(i.lengths), *step = in<int64_t>(i.step);
  for (int64_t row = 0; row < batch; ++row) {
    STD_TORCH_CHECK(!lengths || (lengths[row] >= 1 && lengths[row] <= steps), "`lengths` must be in 1..T");
    STD_TORCH_CHECK(step[row] >= 0, "`state.step` must not be negative");
  }
}

template <class T> Scan<T> read_inputs(const Inputs &i, const Spec &spec) {
  Scan<T> a{};
  a.spec = spec;
  a.steps = i.x.size(0), a.batch = i.x.size(1), a.inputs = i.x.size(2);
  a.n = i.w_hh.size(1), a.np = (a.n + ALIGN - 1) / ALIGN * ALIGN;
  a.held = spec.memory == BUFFER ? i.recent.size(1) : 0;
  a.capacity = spec.memory != BUFFER ? 0 : spec.recent >= 0 ? spec.recent : a.held + a.steps;
  check_shapes(i, spec, a.n, a.held);
  check_values(i);
  a.x = in<T>(i.x), a.w_ih = in<T>(i.w_ih), a.w_hh = in<T>(i.w_hh), a.b_ih = in<T>(i.b_ih), a.b_hh = in<T>(i.b_hh);
  a.query = in<T>(i.query), a.key = in<T>(i.key), a.score = in<T>(i.score), a.modrelu = in<T>(i.modrelu);
  a.s0 = in<T>(i.s), a.c0 = in<T>(i.c), a.h0 = in<T>(i.h), a.recent0 = in<T>(i.recent);
  a.recent_score0 = in<T>(i.recent_score), a.relevant0 = in<T>(i.relevant);
  a.relevant_score0 = in<T>(i.relevant_score), a.relevant_step0 = in<int64_t>(i.relevant_step);
  a.step0 = in<int64_t>(i.step), a.reset = in<bool>(i.reset), a.cut_h = in<bool>(i.cut_h), a.cut_c = in<bool>(i.cut_c);
  a.lengths = in<int64_t>(i.lengths), a.forced = in<int64_t>(i.forced), a.offset = in<T>(i.h_offset);
  STD_TORCH_CHECK(!a.recent_score0 || (spec.recent >= 0 && a.held == spec.recent), "`state.recent` has a wrong size");
  return a;
}

// An empty tensor like `x`; a large one in memory of the pool, which gets it back when its last user lets go of it.
Tensor pooled(const Tensor &x, const std::vector<int64_t> &shape, ScalarType dtype) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  std::size_t bytes = std::size_t(shape[0] * strides[0]) * (dtype == ScalarType::Byte ? 1 : x.element_size());
  if (bytes < Pool::LEAST) return torch::stable::new_empty(x, shape, dtype);
  return torch::stable::from_blob(pool().take(bytes), shape, strides, x.device(), dtype, [](void *p) { pool().give(p); });
}

constexpr int HISTORY = 8;  // h, s, c, gates, q, k, norm, wide

// The output serves as history of s (or h) if its rows need no padding. Must agree with fused.py: history_shapes.
template <class T> void point_history(Scan<T> &a, T *output, const Tensor (&history)[HISTORY]) {
  if (a.spec.save == SAVE_NOTHING) return;
  a.h_hist = out<T>(history[0]), a.s_hist = out<T>(history[1]), a.c_hist = out<T>(history[2]);
  a.gates = out<T>(history[3]), a.q_hist = out<T>(history[4]), a.k_hist = out<T>(history[5]);
  a.norm = out<T>(history[6]), a.wide = out<uint8_t>(history[7]);
  bool same = a.n == a.np && a.spec.output != SUMMARY;
  bool macro = a.spec.output == MACRO || a.spec.memory == NONE;
  if (same && macro) a.s_hist = output;
  if (same && a.spec.output == HIDDEN) a.h_hist = output;
  if (a.spec.memory == NONE) a.h_hist = a.s_hist = same ? output : a.h_hist;
}

using ForwardOut = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                              Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <class T> ForwardOut forward_typed(const Inputs &i, const Spec &spec) {
  Scan<T> a = read_inputs<T>(i, spec);
  ScalarType dtype = i.x.scalar_type();
  auto make = [&](std::vector<int64_t> shape, ScalarType type) { return torch::stable::new_empty(i.x, shape, type); };
  auto keep = [&](std::vector<int64_t> shape, ScalarType type) { return pooled(i.x, shape, type); };
  int64_t S = a.steps, B = a.batch, np = a.np, wide = spec.output == SUMMARY && spec.memory != NONE ? 2 * a.n : a.n;
  Tensor output = keep({S, B, wide}, dtype), s = make({B, a.n}, dtype), c = make({B, i.c.size(1)}, dtype);
  Tensor h = make({B, i.h.size(1)}, dtype), recent = make({B, a.capacity, a.n}, dtype);
  Tensor recent_score = make({B, i.recent_score.size(1)}, dtype), relevant = make({B, spec.relevant, a.n}, dtype);
  Tensor relevant_score = make({B, i.relevant_score.size(1)}, dtype);
  Tensor relevant_step = make({B, spec.relevant}, ScalarType::Long), step = make({B}, ScalarType::Long);
  Tensor slot = make({S, B}, ScalarType::Long), displaced = make({S, B}, ScalarType::Long);
  bool all = spec.save == SAVE_ALL, any = spec.save != SAVE_NOTHING, reads = any && spec.memory == BUFFER;
  bool same = a.n == a.np && spec.output != SUMMARY, remembers = spec.memory != NONE;
  bool h_own = any && (remembers ? !(same && spec.output == HIDDEN) : !same);
  bool s_own = any && remembers && !(same && spec.output == MACRO);
  bool gated = spec.cell != RNN;
  int64_t planes = gated ? (all ? 4 : 0) : any && i.h_offset ? 1 : 0;
  Tensor history[HISTORY] = {
      keep({h_own ? S : 0, B, np}, dtype),
      keep({s_own ? S : 0, B, np}, dtype),
      keep({any && spec.cell == LSTM ? S : 0, B, np}, dtype),
      keep({planes ? S : 0, B, planes * np}, dtype),
      keep({reads && all ? S : 0, B, np}, dtype),
      keep({reads ? S : 0, B, np}, dtype),
      keep({reads ? S : 0, B, a.norm_size()}, dtype),
      keep({reads ? S : 0, B}, ScalarType::Byte),
  };
  a.output = out<T>(output), a.s1 = out<T>(s), a.c1 = out<T>(c), a.h1 = out<T>(h), a.recent1 = out<T>(recent);
  a.recent_score1 = out<T>(recent_score), a.relevant1 = out<T>(relevant), a.relevant_score1 = out<T>(relevant_score);
  a.relevant_step1 = out<int64_t>(relevant_step), a.step1 = out<int64_t>(step);
  a.log_slot = out<int64_t>(slot), a.log_displaced = out<int64_t>(displaced);
  point_history(a, a.output, history);
  run_forward(a, torch::stable::get_num_threads(), TorchParallel());
  return {output, s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step, slot, displaced,
          history[0], history[1], history[2], history[3], history[4], history[5], history[6], history[7]};
}

ForwardOut scan_forward(Tensor x, Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                        Maybe modrelu, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score,
                        Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, Maybe reset,
                        Maybe lengths, Maybe cut_h, Maybe cut_c, Maybe h_offset, Maybe forced, Config config) {
  Inputs i{dense(x), dense(w_ih), dense(w_hh), dense(b_ih), dense(b_hh), dense(query),
           dense(key), dense(score), dense(modrelu), dense(s), dense(c), dense(h),
           dense(recent), dense(recent_score), dense(relevant), dense(relevant_score),
           dense(relevant_step), dense(step), dense(reset), dense(lengths), dense(cut_h),
           dense(cut_c), dense(h_offset), dense(forced)};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return forward_typed<float>(i, spec);
  STD_TORCH_CHECK(i.x.scalar_type() == ScalarType::Double, "remanence: the fused kernel takes float32 and float64");
  return forward_typed<double>(i, spec);
}

using BackwardOut = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                               Tensor, Tensor, Tensor, Tensor>;

struct Saved {
  Tensor output, slot, history[HISTORY];
};

template <class T>
BackwardOut backward_typed(const Inputs &i, const Spec &spec, const Maybe (&d)[6], const Saved &saved, bool need_x) {
  Scan<T> a = read_inputs<T>(i, spec);
  a.log_slot = out<int64_t>(saved.slot);
  point_history(a, out<T>(saved.output), saved.history);
  auto like = [&](const Maybe &t) {
    if (t) return torch::stable::empty_like(*t);
    return torch::stable::new_empty(i.x, {0});
  };
  Tensor g[15] = {need_x ? like(i.x) : like(std::nullopt), like(i.w_ih), like(i.w_hh), like(i.b_ih), like(i.b_hh),
                  like(i.query), like(i.key), like(i.score), like(i.modrelu), like(i.s), like(i.c), like(i.h),
                  like(i.recent), like(i.relevant), like(i.h_offset)};
  Gradients<T> grads{in<T>(d[0]), in<T>(d[1]), in<T>(d[2]), in<T>(d[3]), in<T>(d[4]), in<T>(d[5]),
                     out<T>(g[0]), out<T>(g[1]), out<T>(g[2]), out<T>(g[3]), out<T>(g[4]), out<T>(g[5]), out<T>(g[6]),
                     out<T>(g[7]), out<T>(g[8]), out<T>(g[9]), out<T>(g[10]), out<T>(g[11]), out<T>(g[12]),
                     out<T>(g[13]), out<T>(g[14])};
  run_backward(a, grads, torch::stable::get_num_threads(), TorchParallel());
  return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14]};
}

BackwardOut scan_backward(Maybe d_output, Maybe d_s, Maybe d_c, Maybe d_h, Maybe d_recent, Maybe d_relevant, Tensor x,
                          Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                          Maybe modrelu, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor relevant,
                          Tensor relevant_score, Tensor relevant_step, Tensor step, Maybe reset, Maybe lengths,
                          Maybe cut_h, Maybe cut_c, Maybe h_offset, Tensor output, Tensor slot, Tensor h_hist,
                          Tensor s_hist, Tensor c_hist, Tensor gates, Tensor q_hist, Tensor k_hist, Tensor norm,
                          Tensor wide, Config config, bool need_x) {
  Tensor no_scores = torch::stable::new_empty(x, {x.size(1), 0});
  Inputs i{dense(x), dense(w_ih), dense(w_hh), dense(b_ih), dense(b_hh), dense(query),
           dense(key), dense(score), dense(modrelu), dense(s), dense(c), dense(h),
           dense(recent), no_scores, dense(relevant), dense(relevant_score), dense(relevant_step),
           dense(step), dense(reset), dense(lengths), dense(cut_h), dense(cut_c),
           dense(h_offset), std::nullopt};
  Maybe d[6] = {dense(d_output), dense(d_s), dense(d_c), dense(d_h), dense(d_recent),
                dense(d_relevant)};
  Saved saved{output, slot, {h_hist, s_hist, c_hist, gates, q_hist, k_hist, norm, wide}};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return backward_typed<float>(i, spec, d, saved, need_x);
  return backward_typed<double>(i, spec, d, saved, need_x);
}

Tensor packed_product(Tensor a, Tensor weights) {
  int64_t rows = a.size(0), depth = a.size(1), width = weights.size(0);
  expect(a, "a", ScalarType::Float, {rows, depth}), expect(weights, "weights", ScalarType::Float, {width, depth});
  STD_TORCH_CHECK(width % ALIGN == 0, "remanence: the number of rows of `weights` must be a multiple of 16");
  Tensor left = dense(a), right = dense(weights), result = torch::stable::new_empty(a, {rows, width});
  Block packed(std::size_t(width * depth) * sizeof(float));
  kernel<float>().product(in<float>(left), rows, in<float>(right), width, depth, packed.get(), out<float>(result));
  return result;
}

#ifndef REMANENCE_SOURCE_HASH
#define REMANENCE_SOURCE_HASH "unknown"
#endif
std::string source_hash() { return REMANENCE_SOURCE_HASH; }
void release_memory() { pool().release(); }
std::string instruction_set() { return kernels().name; }

}  // namespace

STABLE_TORCH_LIBRARY(remanence, m) {
  m.def(
      "scan_forward(Tensor x, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? query, Tensor? key, "
      "Tensor? score, Tensor? modrelu, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor recent_score, "
      "Tensor relevant, Tensor relevant_score, Tensor relevant_step, Tensor step, Tensor? reset, Tensor? lengths, "
      "Tensor? cut_h, Tensor? cut_c, Tensor? h_offset, Tensor? forced, int[] config) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor)");
  m.def(
      "scan_backward(Tensor? d_output, Tensor? d_s, Tensor? d_c, Tensor? d_h, Tensor? d_recent, Tensor? d_relevant, "
      "Tensor x, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? query, Tensor? key, Tensor? score, "
      "Tensor? modrelu, Tensor s, Tensor c, Tensor h, Tensor recent, Tensor relevant, Tensor relevant_score, "
      "Tensor relevant_step, Tensor step, Tensor? reset, Tensor? lengths, Tensor? cut_h, Tensor? cut_c, "
      "Tensor? h_offset, Tensor output, Tensor slot, Tensor h_hist, Tensor s_hist, Tensor c_hist, Tensor gates, "
      "Tensor q_hist, Tensor k_hist, Tensor norm, Tensor wide, int[] config, bool need_x) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def("packed_product(Tensor a, Tensor weights) -> Tensor");
  m.def("source_hash() -> str");
  m.def("instruction_set() -> str");
  m.def("release_memory() -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(remanence, CPU, m) {
  m.impl("scan_forward", TORCH_BOX(&scan_forward));
  m.impl("scan_backward", TORCH_BOX(&scan_backward));
  m.impl("packed_product", TORCH_BOX(&packed_product));
}

STABLE_TORCH_LIBRARY_IMPL(remanence, CompositeExplicitAutograd, m) {
  m.impl("source_hash", TORCH_BOX(&source_hash));
  m.impl("instruction_set", TORCH_BOX(&instruction_set));
  m.impl("release_memory", TORCH_BOX(&release_memory));
}

}  // namespace remanence

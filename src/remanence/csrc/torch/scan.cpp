// The scan as torch ops: schemas, checks, allocation. Through the stable ABI, so one build serves several torch versions.
// Autograd is registered from Python (ops/fused.py).
#include <algorithm>
#include <string>
#include <tuple>

#include "../kernel/dispatch.h"
#include "tensors.h"

namespace remanence {
namespace {

struct Inputs {  // contiguous tensors, kept alive; order of the schema
  Tensor x, w_ih, w_hh;
  Maybe b_ih, b_hh, query, key, score, modrelu;
  Maybe s, c, h, recent, recent_score, relevant, relevant_score, relevant_step, step;  // all of them, or none
  Maybe reset, lengths, cut_h, cut_c, h_offset, forced;

  // x may be packed, (places, inputs): the real steps of rows of unequal length, longest first, time by time.
  bool packed() const { return x.dim() == 2; }
  int64_t inputs() const { return x.size(x.dim() - 1); }
  int64_t batch() const { return packed() ? lengths->size(0) : x.size(1); }
  int64_t steps() const { return packed() ? in<int64_t>(*lengths)[0] : x.size(0); }
  Shape by_time() const { return packed() ? Shape{x.size(0)} : Shape{x.size(0), x.size(1)}; }
  Shape by_time(int64_t width) const { return packed() ? Shape{x.size(0), width} : Shape{x.size(0), x.size(1), width}; }
};

void check_weights(const Inputs &i, const Spec &spec, Index n) {
  int64_t gates = spec.blocks() * n;
  ScalarType dtype = i.x.scalar_type();
  expect(i.w_ih, "weight_ih", dtype, {gates, i.inputs()});
  expect(i.w_hh, "weight_hh", dtype, {gates, n});
  expect(i.b_ih, "bias_ih", dtype, {gates});
  expect(i.b_hh, "bias_hh", dtype, {gates});
  expect(i.modrelu, "bias_modrelu", dtype, {n});
  if (spec.memory == Memory::NONE) return;
  STD_TORCH_CHECK(i.query && i.key, "remanence: a memory needs `query` and `key` weights");
  if (spec.memory == Memory::BUFFER) {
    expect(i.query, "query", dtype, {n, n});
    expect(i.key, "key", dtype, {n, n});
    expect(i.score, "score", dtype, {n});
  } else {
    expect(i.query, "query", dtype, {n});
    expect(i.key, "key", dtype, {n});
    expect(i.score, "score", dtype, {1});
  }
}

void check_state(const Inputs &i, const Spec &spec, Index n, Index held) {
  int64_t batch = i.batch(), slots = spec.relevant;
  ScalarType dtype = i.x.scalar_type();
  STD_TORCH_CHECK(i.c && i.h && i.recent && i.relevant && i.relevant_step && i.step, "remanence: half a state");
  expect(i.s, "state.s", dtype, {batch, n});
  expect(i.c, "state.c", dtype, {batch, spec.cell == Cell::LSTM ? n : 0});
  expect(i.h, "state.h", dtype, {batch, spec.leaks_h() ? n : 0});
  expect(i.recent, "state.recent", dtype, {batch, held, n});
  expect(i.recent_score, "state.recent_score", dtype, {batch, spec.screens ? spec.recent : 0});
  expect(i.relevant, "state.relevant", dtype, {batch, slots, n});
  expect(i.relevant_score, "state.relevant_score", dtype, {batch, spec.memory == Memory::BUFFER ? slots : 0});
  expect(i.relevant_step, "state.relevant_step", ScalarType::Long, {batch, slots});
  expect(i.step, "state.step", ScalarType::Long, {batch});
  const int64_t *step = in<int64_t>(i.step);
  for (int64_t row = 0; row < batch; ++row) STD_TORCH_CHECK(step[row] >= 0, "`state.step` must not be negative");
}

void check_by_time(const Inputs &i, Index n) {
  for (const auto &[mask, name] : {std::pair{&i.reset, "reset"}, {&i.cut_h, "cut_h"}, {&i.cut_c, "cut_c"}})
    expect(*mask, name, ScalarType::Bool, i.by_time());
  expect(i.forced, "forced_log.slot", ScalarType::Long, i.by_time());
  expect(i.h_offset, "h_offset", i.x.scalar_type(), i.by_time(n));
}

void check_lengths(const Inputs &i) {
  STD_TORCH_CHECK(i.x.dim() == 3 || (i.packed() && i.lengths && i.lengths->numel()),
                  "remanence: `x` has a wrong shape");
  int64_t steps = i.packed() ? i.x.size(0) : i.steps(), batch = i.packed() ? i.lengths->size(0) : i.batch(), sum = 0;
  expect(i.lengths, "lengths", ScalarType::Long, {batch});
  const int64_t *lengths = in<int64_t>(i.lengths);
  for (int64_t row = 0; lengths && row < batch; sum += lengths[row++]) {
    STD_TORCH_CHECK(lengths[row] >= 1 && lengths[row] <= steps, "`lengths` must be in 1..T");
    STD_TORCH_CHECK(!i.packed() || !row || lengths[row] <= lengths[row - 1], "remanence: packed rows must be sorted");
  }
  STD_TORCH_CHECK(!i.packed() || sum == i.x.size(0), "remanence: packed rows do not fit their lengths");
}

template <class T> struct Reading {  // a scan, and what it points to where no state was given
  Scan<T> scan{};
  std::vector<T> zeros;
  std::vector<int64_t> counts, starts;
};

// Where each time of packed rows begins.
inline std::vector<int64_t> find_starts(const int64_t *lengths, Index batch, Index steps) {
  std::vector<int64_t> starts(steps);
  Index alive = batch;
  for (Index t = 0, place = 0; t < steps; place += alive, ++t) {
    while (alive && lengths[alive - 1] <= t) --alive;
    starts[t] = place;
  }
  return starts;
}

template <class T> void read_state(const Inputs &i, Scan<T> &a) {
  a.s0 = in<T>(i.s);
  a.c0 = in<T>(i.c);
  a.h0 = in<T>(i.h);
  a.recent0 = in<T>(i.recent);
  a.recent_score0 = in<T>(i.recent_score);
  a.relevant0 = in<T>(i.relevant);
  a.relevant_score0 = in<T>(i.relevant_score);
  a.relevant_step0 = in<int64_t>(i.relevant_step);
  a.step0 = in<int64_t>(i.step);
}

// Rows that start afresh: zeros, and slots that hold nothing. What a buffer would hold is not even looked at.
template <class T> void start_afresh(Reading<T> &r) {
  Scan<T> &a = r.scan;
  Index slots = a.spec.relevant, stored = a.spec.memory == Memory::STRIDE ? slots * a.n : slots;
  r.zeros.assign(a.batch * std::max({a.n, a.held, stored}), T(0));
  r.counts.assign(a.batch * (slots + 1), EMPTY);
  for (Index row = 0; row < a.batch; ++row) {
    r.counts[row] = 0;
    if (a.spec.start_zero && slots) r.counts[a.batch + row * slots] = BEFORE_START;
  }
  a.fresh = true;
  a.s0 = a.c0 = a.h0 = a.relevant0 = a.relevant_score0 = r.zeros.data();
  a.recent_score0 = a.spec.screens ? r.zeros.data() : nullptr;
  a.step0 = r.counts.data();
  a.relevant_step0 = r.counts.data() + a.batch;
}

template <class T> Reading<T> read_inputs(const Inputs &i, const Spec &spec) {
  Reading<T> reading;
  Scan<T> &a = reading.scan;
  a.spec = spec;
  check_lengths(i);
  a.steps = i.steps();
  a.batch = i.batch();
  a.inputs = i.inputs();
  a.lengths = in<int64_t>(i.lengths);
  if (i.packed()) {
    reading.starts = find_starts(a.lengths, a.batch, a.steps);
    a.starts = reading.starts.data();
  }
  a.n = i.w_hh.size(1);
  a.np = (a.n + ALIGN - 1) / ALIGN * ALIGN;
  bool buffer = spec.memory == Memory::BUFFER;
  a.held = !buffer ? 0 : spec.recent >= 0 ? spec.recent : i.recent ? i.recent->size(1) : 0;
  a.capacity = !buffer ? 0 : spec.recent >= 0 ? spec.recent : a.held + a.steps;
  check_weights(i, spec, a.n);
  check_by_time(i, a.n);
  if (i.s) {
    check_state(i, spec, a.n, a.held);
    read_state(i, a);
  } else
    start_afresh(reading);
  a.x = in<T>(i.x);
  a.w_ih = in<T>(i.w_ih);
  a.w_hh = in<T>(i.w_hh);
  a.b_ih = in<T>(i.b_ih);
  a.b_hh = in<T>(i.b_hh);
  a.query = in<T>(i.query);
  a.key = in<T>(i.key);
  a.score = in<T>(i.score);
  a.modrelu = in<T>(i.modrelu);
  a.reset = in<bool>(i.reset);
  a.cut_h = in<bool>(i.cut_h);
  a.cut_c = in<bool>(i.cut_c);
  a.forced = in<int64_t>(i.forced);
  a.offset = in<T>(i.h_offset);
  return reading;
}

// An empty tensor; a large one in memory of the pool, which gets it back when its last user lets go of it.
Tensor pooled(const Tensor &x, const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  std::size_t bytes = std::size_t(shape[0] * strides[0]) * x.element_size();
  if (bytes < Pool::LEAST) return fresh(shape, x.scalar_type());
  return torch::stable::from_blob(pool().take(bytes), shape, strides, x.device(), x.scalar_type(),
                                  [](void *p) { pool().give(p); });
}

// Like `dense`; a copy in memory of the pool. The cotangent of a sum is one number for all.
Maybe dense_pooled(const Maybe &t) {
  if (!t || t->is_contiguous() || !t->numel()) return t;
  Tensor copy = pooled(*t, shape_of(*t));
  torch::stable::copy_(copy, *t);
  return copy;
}

// Points the scan to the parts of its history, one behind the other, and returns how many numbers that takes. The
// output serves as history of s (or h) if its rows need no padding. Must agree with fused.py: history_size.
template <class T> Index point_history(Scan<T> &a, Index places, T *output, T *history) {
  const Spec &spec = a.spec;
  if (spec.save == Save::NOTHING) return 0;
  Index used = 0;
  auto take = [&](bool wanted, Index width, Index every = 1) {
    T *part = wanted && history ? history + used : nullptr;
    used += wanted ? places / every * width : 0;
    return part;
  };
  bool same = a.n == a.np && spec.output != Output::SUMMARY, remembers = spec.memory != Memory::NONE,
       reads = spec.memory == Memory::BUFFER;
  bool is_h = same && (!remembers || spec.output == Output::HIDDEN),
       is_s = same && (!remembers || spec.output == Output::MACRO);
  bool whole = spec.save == Save::ALL, gated = spec.cell != Cell::RNN;
  a.h_hist = is_h ? output : take(true, a.np);
  a.s_hist = !remembers ? a.h_hist : is_s ? output : take(true, a.np);
  a.c_hist = take(spec.cell == Cell::LSTM, a.np, whole ? 1 : chunk_steps(a.np, a.batch));
  a.gates = take(gated ? whole : a.offset != nullptr, spec.planes() * a.np);
  a.q_hist = take(reads && whole, a.np);
  a.k_hist = take(a.keeps_keys(), a.np);
  a.norm = take(reads, a.norm_size());
  a.wide = reinterpret_cast<Width *>(history && a.keeps_keys() ? history + used : nullptr);
  return used + (a.keeps_keys() ? (places + 3) / 4 : 0);
}

using ForwardOut =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <class T> ForwardOut forward_typed(const Inputs &i, const Spec &spec) {
  Reading<T> reading = read_inputs<T>(i, spec);
  Scan<T> &a = reading.scan;
  ScalarType dtype = i.x.scalar_type();
  int64_t places = i.packed() ? i.x.size(0) : a.steps * a.batch, B = a.batch;
  int64_t wide = spec.output == Output::SUMMARY && spec.memory != Memory::NONE ? 2 * a.n : a.n;
  int64_t slots = spec.relevant;
  Tensor output = pooled(i.x, i.by_time(wide)), s = fresh({B, a.n}, dtype);
  Tensor c = fresh({B, spec.cell == Cell::LSTM ? a.n : 0}, dtype), h = fresh({B, spec.leaks_h() ? a.n : 0}, dtype);
  Tensor recent = fresh({B, a.capacity, a.n}, dtype), recent_score = fresh({B, spec.screens ? a.capacity : 0}, dtype);
  Tensor relevant = fresh({B, slots, a.n}, dtype);
  Tensor relevant_score = fresh({B, spec.memory == Memory::BUFFER ? slots : 0}, dtype);
  Tensor relevant_step = fresh({B, slots}, ScalarType::Long), step = fresh({B}, ScalarType::Long);
  Tensor slot = fresh(i.by_time(), ScalarType::Long), displaced = fresh(i.by_time(), ScalarType::Long);
  a.output = out<T>(output);
  a.s1 = out<T>(s);
  a.c1 = out<T>(c);
  a.h1 = out<T>(h);
  a.recent1 = out<T>(recent);
  a.recent_score1 = out<T>(recent_score);
  a.relevant1 = out<T>(relevant);
  a.relevant_score1 = out<T>(relevant_score);
  a.relevant_step1 = out<int64_t>(relevant_step);
  a.step1 = out<int64_t>(step);
  a.log_slot = out<int64_t>(slot);
  a.log_displaced = out<int64_t>(displaced);
  Index numbers = point_history<T>(a, places, a.output, nullptr);
  a.large = numbers * sizeof(T) > LARGE_HISTORY;
  Tensor history = pooled(i.x, {numbers});
  point_history(a, places, a.output, out<T>(history));
  if (a.wide)
    std::memset(static_cast<void *>(a.wide), 0,
                std::size_t((places + 3) / 4) * sizeof(T));  // so that no byte is left to chance
  run_forward(a, torch::stable::get_num_threads(), TorchParallel());
  return {output,        s,    c,    h,         recent, recent_score, relevant, relevant_score,
          relevant_step, step, slot, displaced, history};
}

ForwardOut scan_forward(Tensor x, Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                        Maybe modrelu, Maybe s, Maybe c, Maybe h, Maybe recent, Maybe recent_score, Maybe relevant,
                        Maybe relevant_score, Maybe relevant_step, Maybe step, Maybe reset, Maybe lengths, Maybe cut_h,
                        Maybe cut_c, Maybe h_offset, Maybe forced, Config config) {
  Inputs i{dense(x),
           dense(w_ih),
           dense(w_hh),
           dense(b_ih),
           dense(b_hh),
           dense(query),
           dense(key),
           dense(score),
           dense(modrelu),
           dense(s),
           dense(c),
           dense(h),
           dense(recent),
           dense(recent_score),
           dense(relevant),
           dense(relevant_score),
           dense(relevant_step),
           dense(step),
           dense(reset),
           dense(lengths),
           dense(cut_h),
           dense(cut_c),
           dense(h_offset),
           dense(forced)};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return forward_typed<float>(i, spec);
  STD_TORCH_CHECK(i.x.scalar_type() == ScalarType::Double, "remanence: the fused kernel takes float32 and float64");
  return forward_typed<double>(i, spec);
}

constexpr int GIVEN = 15;  // gradients
using BackwardOut = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                               Tensor, Tensor, Tensor, Tensor>;

struct Saved {
  Tensor output, slot, history;
};

// `wanted`: a bit for each gradient; the others are empty.
template <class T>
BackwardOut backward_typed(const Inputs &i, const Spec &spec, const Maybe (&d)[6], const Saved &saved, int64_t wanted) {
  Reading<T> reading = read_inputs<T>(i, spec);
  Scan<T> &a = reading.scan;
  a.log_slot = out<int64_t>(saved.slot);
  Index places = i.packed() ? i.x.size(0) : a.steps * a.batch;
  point_history(a, places, out<T>(saved.output), out<T>(saved.history));
  const Maybe of[GIVEN] = {i.x,       i.w_ih, i.w_hh, i.b_ih, i.b_hh,   i.query,    i.key,     i.score,
                           i.modrelu, i.s,    i.c,    i.h,    i.recent, i.relevant, i.h_offset};
  Tensor g[GIVEN];
  for (int k = 0; k < GIVEN; ++k)
    g[k] = of[k] && wanted >> k & 1 ? fresh(shape_of(*of[k]), i.x.scalar_type()) : fresh({0}, i.x.scalar_type());
  Gradients<T> grads{in<T>(d[0]),   in<T>(d[1]),   in<T>(d[2]),  in<T>(d[3]),  in<T>(d[4]),   in<T>(d[5]),
                     out<T>(g[0]),  out<T>(g[1]),  out<T>(g[2]), out<T>(g[3]), out<T>(g[4]),  out<T>(g[5]),
                     out<T>(g[6]),  out<T>(g[7]),  out<T>(g[8]), out<T>(g[9]), out<T>(g[10]), out<T>(g[11]),
                     out<T>(g[12]), out<T>(g[13]), out<T>(g[14])};
  run_backward(a, grads, torch::stable::get_num_threads(), TorchParallel());
  return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14]};
}

BackwardOut scan_backward(Maybe d_output, Maybe d_s, Maybe d_c, Maybe d_h, Maybe d_recent, Maybe d_relevant, Tensor x,
                          Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                          Maybe modrelu, Maybe s, Maybe c, Maybe h, Maybe recent, Maybe relevant, Maybe relevant_step,
                          Maybe step, Maybe reset, Maybe lengths, Maybe cut_h, Maybe cut_c, Maybe h_offset,
                          Tensor output, Tensor slot, Tensor history, Config config, int64_t wanted) {
  Inputs i{dense(x),
           dense(w_ih),
           dense(w_hh),
           dense(b_ih),
           dense(b_hh),
           dense(query),
           dense(key),
           dense(score),
           dense(modrelu),
           dense(s),
           dense(c),
           dense(h),
           dense(recent),
           std::nullopt,
           dense(relevant),
           std::nullopt,
           dense(relevant_step),
           dense(step),
           dense(reset),
           dense(lengths),
           dense(cut_h),
           dense(cut_c),
           dense(h_offset),
           std::nullopt};
  Maybe d[6] = {dense_pooled(d_output), dense(d_s), dense(d_c), dense(d_h), dense(d_recent), dense(d_relevant)};
  Saved saved{output, slot, history};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return backward_typed<float>(i, spec, d, saved, wanted);
  return backward_typed<double>(i, spec, d, saved, wanted);
}

Tensor packed_product(Tensor a, Tensor weights) {
  int64_t rows = a.size(0), depth = a.size(1), width = weights.size(0);
  expect(a, "a", ScalarType::Float, {rows, depth});
  expect(weights, "weights", ScalarType::Float, {width, depth});
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
      "Tensor? score, Tensor? modrelu, Tensor? s, Tensor? c, Tensor? h, Tensor? recent, Tensor? recent_score, "
      "Tensor? relevant, Tensor? relevant_score, Tensor? relevant_step, Tensor? step, Tensor? reset, Tensor? lengths, "
      "Tensor? cut_h, Tensor? cut_c, Tensor? h_offset, Tensor? forced, int[] config) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "scan_backward(Tensor? d_output, Tensor? d_s, Tensor? d_c, Tensor? d_h, Tensor? d_recent, Tensor? d_relevant, "
      "Tensor x, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? query, Tensor? key, Tensor? score, "
      "Tensor? modrelu, Tensor? s, Tensor? c, Tensor? h, Tensor? recent, Tensor? relevant, Tensor? relevant_step, "
      "Tensor? step, Tensor? reset, Tensor? lengths, Tensor? cut_h, Tensor? cut_c, Tensor? h_offset, Tensor output, "
      "Tensor slot, Tensor history, int[] config, int wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
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

// The tensors of a scan by name, checked, and as the kernel reads them.
#pragma once
#include <algorithm>
#include <utility>

#include "tensors.h"

namespace remanence {

struct Inputs {  // contiguous tensors, kept alive; order of the schema
  Tensor x;
  Tensor w_ih;
  Tensor w_hh;
  Maybe b_ih;
  Maybe b_hh;
  Maybe query;
  Maybe key;
  Maybe score;
  Maybe own;
  Maybe gate;
  Maybe gate_bias;
  // The state: all of it, or nothing.
  Maybe s;
  Maybe c;
  Maybe h;
  Maybe recent;
  Maybe recent_score;
  Maybe relevant;
  Maybe relevant_score;
  Maybe relevant_step;
  Maybe step;
  Maybe reset;
  Maybe lengths;
  Maybe cut_h;
  Maybe cut_c;
  Maybe h_offset;
  Maybe forced;

  // x may be packed, (places, inputs): the real steps of rows of unequal length, longest first, time by time.
  bool packed() const { return x.dim() == 2; }
  int64_t inputs() const { return x.size(x.dim() - 1); }
  int64_t batch() const { return packed() ? lengths->size(0) : x.size(1); }
  int64_t steps() const { return packed() ? in<int64_t>(*lengths)[0] : x.size(0); }
  Shape by_time() const { return packed() ? Shape{x.size(0)} : Shape{x.size(0), x.size(1)}; }
  Shape by_time(int64_t width) const { return packed() ? Shape{x.size(0), width} : Shape{x.size(0), x.size(1), width}; }
};

inline void check_weights(const Inputs &i, const Spec &spec, Index n) {
  int64_t gates = spec.blocks() * n;
  ScalarType dtype = i.x.scalar_type();
  expect(i.w_ih, "weight_ih", dtype, {gates, i.inputs()});
  expect(i.w_hh, "weight_hh", dtype, {gates, n});
  expect(i.b_ih, "bias_ih", dtype, {gates});
  expect(i.b_hh, "bias_hh", dtype, {gates});
  expect(i.own, "bias_modrelu", dtype, {n});
  STD_TORCH_CHECK(spec.nonlinearity != Nonlinearity::MODRELU || i.own, "remanence: a modrelu needs `bias_modrelu`");
  if (!spec.remembers()) return;
  STD_TORCH_CHECK(i.query && i.key, "remanence: a memory needs `query` and `key` weights");
  if (spec.has_keys()) {
    STD_TORCH_CHECK(spec.score != Score::ADDITIVE || i.score, "remanence: an additive score needs `score` weights");
    expect(i.query, "query", dtype, {n, n});
    expect(i.key, "key", dtype, {n, n});
    expect(i.score, "score", dtype, {n});
    expect(i.gate, "gate", dtype, {n});
    expect(i.gate_bias, "gate_bias", dtype, {1});
    STD_TORCH_CHECK(!spec.screening().gated || (i.gate && i.gate_bias),
                    "remanence: a learned screen needs `gate` and `gate_bias`");
  } else {
    expect(i.query, "query", dtype, {n});
    expect(i.key, "key", dtype, {n});
    expect(i.score, "score", dtype, {1});
  }
}

// Of a state that is not whole, the kernel would read what nobody gave. The backward pass does without the scores.
inline void check_whole(const Inputs &i) {
  bool some =
      i.s || i.c || i.h || i.recent || i.recent_score || i.relevant || i.relevant_score || i.relevant_step || i.step;
  bool scores = i.recent_score && i.relevant_score;
  bool all = i.s && i.c && i.h && i.recent && i.relevant && i.relevant_step && i.step && scores;
  STD_TORCH_CHECK(all || !some, "remanence: half a state");
}

inline void check_state(const Inputs &i, const Spec &spec, Index n, Index held) {
  int64_t batch = i.batch();
  int64_t slots = spec.relevant;
  ScalarType dtype = i.x.scalar_type();
  STD_TORCH_CHECK(i.c && i.h && i.recent && i.relevant && i.relevant_step && i.step, "remanence: half a state");
  STD_TORCH_CHECK(i.recent->dim() == 3, "remanence: `state.recent` has an unexpected shape or dtype");
  expect(i.s, "state.s", dtype, {batch, n});
  expect(i.c, "state.c", dtype, {batch, spec.has_c() ? n : 0});
  expect(i.h, "state.h", dtype, {batch, spec.leaks_h() ? n : 0});
  expect(i.recent, "state.recent", dtype, {batch, held, n});
  expect(i.recent_score, "state.recent_score", dtype, {batch, spec.screens ? spec.recent : 0});
  expect(i.relevant, "state.relevant", dtype, {batch, slots, n});
  expect(i.relevant_score, "state.relevant_score", dtype, {batch, spec.has_keys() ? slots : 0});
  expect(i.relevant_step, "state.relevant_step", ScalarType::Long, {batch, slots});
  expect(i.step, "state.step", ScalarType::Long, {batch});
  check_steps(in<int64_t>(i.step), batch, in<int64_t>(i.relevant_step), slots);
}

inline void check_by_time(const Inputs &i, Index n) {
  for (const auto &[mask, name] : {std::pair{&i.reset, "reset"}, {&i.cut_h, "cut_h"}, {&i.cut_c, "cut_c"}})
    expect(*mask, name, ScalarType::Bool, i.by_time());
  expect(i.forced, "forced_log.slot", ScalarType::Long, i.by_time());
  expect(i.h_offset, "h_offset", i.x.scalar_type(), i.by_time(n));
}

inline void check_sizes(const Inputs &i) {
  bool shaped = i.x.dim() == 3 || (i.packed() && i.lengths && i.lengths->dim() == 1 && i.lengths->numel());
  STD_TORCH_CHECK(shaped, "remanence: `x` must be (T, B, input_size), or packed with its lengths");
  STD_TORCH_CHECK(i.x.is_cpu(), "remanence: `x` must be on the CPU");
  STD_TORCH_CHECK(i.x.size(0) >= 1 && i.x.size(0) <= MOST_SLOTS, "`x` must hold at least one step");
  STD_TORCH_CHECK(i.w_hh.dim() == 2 && i.w_hh.size(1) >= 1, "remanence: `weight_hh` must be a matrix");
}

inline void check_lengths(const Inputs &i) {
  int64_t most = i.x.size(0);
  int64_t batch = i.packed() ? i.lengths->size(0) : i.batch();
  int64_t sum = 0;
  expect(i.lengths, "lengths", ScalarType::Long, {batch});
  const int64_t *lengths = in<int64_t>(i.lengths);
  for (int64_t row = 0; lengths && row < batch; sum += lengths[row++]) {
    STD_TORCH_CHECK(lengths[row] >= 1 && lengths[row] <= most, "`lengths` must be in 1..T");
    STD_TORCH_CHECK(!i.packed() || !row || lengths[row] <= lengths[row - 1], "remanence: packed rows must be sorted");
  }
  STD_TORCH_CHECK(!i.packed() || sum == i.x.size(0), "remanence: packed rows do not fit their lengths");
}

template <class T> struct Reading {  // a scan, and what it points to where no state was given
  Scan<T> scan{};
  std::vector<T> zeros;
  std::vector<int64_t> counts;
  std::vector<int64_t> starts;
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
  Index slots = a.spec.relevant;
  Index stored = a.spec.has_rows() ? slots * a.n : slots;
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
  check_sizes(i);
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
  Index given = i.recent && i.recent->dim() == 3 ? i.recent->size(1) : 0;
  a.held = spec.ring(given);
  a.capacity = spec.ring(a.held + a.steps);
  check_weights(i, spec, a.n);
  check_by_time(i, a.n);
  if (i.s) {
    check_state(i, spec, a.n, a.held);
    read_state(i, a);
  } else {
    start_afresh(reading);
  }
  a.x = in<T>(i.x);
  a.w_ih = in<T>(i.w_ih);
  a.w_hh = in<T>(i.w_hh);
  a.b_ih = in<T>(i.b_ih);
  a.b_hh = in<T>(i.b_hh);
  a.query = in<T>(i.query);
  a.key = in<T>(i.key);
  a.score = in<T>(i.score);
  a.own = in<T>(i.own);
  a.gate = in<T>(i.gate);
  a.gate_bias = in<T>(i.gate_bias);
  a.reset = in<bool>(i.reset);
  a.cut_h = in<bool>(i.cut_h);
  a.cut_c = in<bool>(i.cut_c);
  a.forced = in<int64_t>(i.forced);
  a.offset = in<T>(i.h_offset);
  return reading;
}

}  // namespace remanence

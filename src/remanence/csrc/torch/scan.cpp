// The scan as torch ops: schemas, checks, allocation. Through the stable ABI, so one build serves several torch versions.
// Autograd is registered from Python (ops/fused.py).
#include <cstring>
#include <string>
#include <tuple>

#include "../kernel/dispatch.h"
#include "history.h"
#include "inputs.h"

namespace remanence {
namespace {

using ForwardOut =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

template <class T> ForwardOut forward_typed(const Inputs &i, const Spec &spec) {
  check_whole(i);
  Reading<T> reading = read_inputs<T>(i, spec);
  Scan<T> &a = reading.scan;
  ScalarType dtype = i.x.scalar_type();
  int64_t places = i.packed() ? i.x.size(0) : a.steps * a.batch;
  int64_t B = a.batch;
  int64_t wide = spec.features(a.n);
  int64_t slots = spec.relevant;
  Tensor output = pooled(i.x, i.by_time(wide));
  Tensor s = fresh({B, a.n}, dtype);
  Tensor c = fresh({B, spec.has_c() ? a.n : 0}, dtype);
  Tensor h = fresh({B, spec.leaks_h() ? a.n : 0}, dtype);
  Tensor recent = fresh({B, a.capacity, a.n}, dtype);
  Tensor recent_score = fresh({B, spec.screens ? a.capacity : 0}, dtype);
  Tensor relevant = fresh({B, slots, a.n}, dtype);
  Tensor relevant_score = fresh({B, spec.has_keys() ? slots : 0}, dtype);
  Tensor relevant_step = fresh({B, slots}, ScalarType::Long);
  Tensor step = fresh({B}, ScalarType::Long);
  Tensor slot = fresh(i.by_time(), ScalarType::Long);
  Tensor displaced = fresh(i.by_time(), ScalarType::Long);
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
  Index numbers = history_size(a).numbers(places);
  a.large = numbers * sizeof(T) > LARGE_HISTORY;
  Tensor history = pooled(i.x, {numbers});
  point_history(a, places, a.output, out<T>(history));
  // So that no byte is left to chance.
  if (a.wide) std::memset(static_cast<void *>(a.wide), 0, std::size_t(places) * sizeof(T));
  if (a.batch) run_forward(a, torch::stable::get_num_threads(), TorchParallel());
  return {output,        s,    c,    h,         recent, recent_score, relevant, relevant_score,
          relevant_step, step, slot, displaced, history};
}

ForwardOut scan_forward(Tensor x, Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                        Maybe own, Maybe gate, Maybe gate_bias, Maybe s, Maybe c, Maybe h, Maybe recent,
                        Maybe recent_score, Maybe relevant, Maybe relevant_score, Maybe relevant_step, Maybe step,
                        Maybe reset, Maybe lengths, Maybe cut_h, Maybe cut_c, Maybe h_offset, Maybe forced,
                        Config config) {
  Inputs i{.x = dense(x),
           .w_ih = dense(w_ih),
           .w_hh = dense(w_hh),
           .b_ih = dense(b_ih),
           .b_hh = dense(b_hh),
           .query = dense(query),
           .key = dense(key),
           .score = dense(score),
           .own = dense(own),
           .gate = dense(gate),
           .gate_bias = dense(gate_bias),
           .s = dense(s),
           .c = dense(c),
           .h = dense(h),
           .recent = dense(recent),
           .recent_score = dense(recent_score),
           .relevant = dense(relevant),
           .relevant_score = dense(relevant_score),
           .relevant_step = dense(relevant_step),
           .step = dense(step),
           .reset = dense(reset),
           .lengths = dense(lengths),
           .cut_h = dense(cut_h),
           .cut_c = dense(cut_c),
           .h_offset = dense(h_offset),
           .forced = dense(forced)};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return forward_typed<float>(i, spec);
  STD_TORCH_CHECK(i.x.scalar_type() == ScalarType::Double, "remanence: the fused kernel takes float32 and float64");
  return forward_typed<double>(i, spec);
}

using BackwardOut = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                               Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

struct Cotangents {
  Maybe output;
  Maybe s;
  Maybe c;
  Maybe h;
  Maybe recent;
  Maybe relevant;
};

struct Saved {
  Tensor output;
  Tensor slot;
  Tensor history;
};

// What the forward pass saved must still be what it was: the walk back goes by it.
template <class T> void check_saved(const Scan<T> &a, const Inputs &i, const Saved &saved, Index places) {
  ScalarType dtype = i.x.scalar_type();
  int64_t wide = a.spec.features(a.n);
  expect(saved.output, "output", dtype, i.by_time(wide));
  expect(saved.slot, "slot", ScalarType::Long, i.by_time());
  expect(saved.history, "history", dtype, {history_size(a).numbers(places)});
  STD_TORCH_CHECK(saved.output.is_contiguous() && saved.slot.is_contiguous(), "remanence: what was saved has changed");
  const int64_t *slot = in<int64_t>(saved.slot);
  for (Index at = 0; at < places; ++at)
    STD_TORCH_CHECK(slot[at] >= EMPTY && slot[at] < a.spec.relevant,
                    "remanence: the log names a slot that does not exist");
}

template <class T> void check_cotangents(const Scan<T> &a, const Inputs &i, const Cotangents &d) {
  ScalarType dtype = i.x.scalar_type();
  int64_t B = a.batch;
  int64_t wide = a.spec.features(a.n);
  expect(d.output, "the gradient of the output", dtype, i.by_time(wide));
  expect(d.s, "the gradient of state.s", dtype, {B, a.n});
  expect(d.c, "the gradient of state.c", dtype, {B, a.spec.has_c() ? a.n : 0});
  expect(d.h, "the gradient of state.h", dtype, {B, a.spec.leaks_h() ? a.n : 0});
  expect(d.recent, "the gradient of state.recent", dtype, {B, a.capacity, a.n});
  expect(d.relevant, "the gradient of state.relevant", dtype, {B, a.spec.relevant, a.n});
}

// Gradients in the order in which the operator returns them. `wanted` has a bit for each; the others are empty.
class Given {
 public:
  Given(const Inputs &i, int64_t wanted) : like(i.x), wanted(wanted) {}

  template <class T> T *take(const Maybe &of) {
    bool is_wanted = of && wanted >> made.size() & 1;
    Tensor gradient = fresh(is_wanted ? shape_of(*of) : Shape{0}, like.scalar_type());
    made.push_back(gradient);
    return out<T>(gradient);
  }
  void zero() {
    for (Tensor &gradient : made)
      if (gradient.numel()) std::memset(gradient.mutable_data_ptr(), 0, gradient.numel() * gradient.element_size());
  }
  BackwardOut tuple() const {
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      return BackwardOut{made[k]...};
    }(std::make_index_sequence<std::tuple_size_v<BackwardOut>>());
  }

 private:
  const Tensor &like;
  int64_t wanted;
  std::vector<Tensor> made;
};

template <class T>
BackwardOut backward_typed(const Inputs &i, const Spec &spec, const Cotangents &d, const Saved &saved, int64_t wanted) {
  STD_TORCH_CHECK(spec.save != Save::NOTHING, "remanence: the forward pass saved nothing for a backward pass");
  Reading<T> reading = read_inputs<T>(i, spec);
  Scan<T> &a = reading.scan;
  Index places = i.packed() ? i.x.size(0) : a.steps * a.batch;
  check_saved(a, i, saved, places);
  check_cotangents(a, i, d);
  a.log_slot = out<int64_t>(saved.slot);
  point_history(a, places, out<T>(saved.output), out<T>(saved.history));
  Given given(i, wanted);
  Gradients<T> g{};
  g.output = in<T>(d.output);
  g.s1 = in<T>(d.s);
  g.c1 = in<T>(d.c);
  g.h1 = in<T>(d.h);
  g.recent1 = in<T>(d.recent);
  g.relevant1 = in<T>(d.relevant);
  g.x = given.take<T>(i.x);
  g.w_ih = given.take<T>(i.w_ih);
  g.w_hh = given.take<T>(i.w_hh);
  g.b_ih = given.take<T>(i.b_ih);
  g.b_hh = given.take<T>(i.b_hh);
  g.query = given.take<T>(i.query);
  g.key = given.take<T>(i.key);
  g.score = given.take<T>(i.score);
  g.own = given.take<T>(i.own);
  g.gate = given.take<T>(i.gate);
  g.gate_bias = given.take<T>(i.gate_bias);
  g.s0 = given.take<T>(i.s);
  g.c0 = given.take<T>(i.c);
  g.h0 = given.take<T>(i.h);
  g.recent0 = given.take<T>(i.recent);
  g.relevant0 = given.take<T>(i.relevant);
  g.offset = given.take<T>(i.h_offset);
  if (a.batch)
    run_backward(a, g, torch::stable::get_num_threads(), TorchParallel());
  else
    given.zero();
  return given.tuple();
}

BackwardOut scan_backward(Maybe d_output, Maybe d_s, Maybe d_c, Maybe d_h, Maybe d_recent, Maybe d_relevant, Tensor x,
                          Tensor w_ih, Tensor w_hh, Maybe b_ih, Maybe b_hh, Maybe query, Maybe key, Maybe score,
                          Maybe own, Maybe gate, Maybe gate_bias, Maybe s, Maybe c, Maybe h, Maybe recent,
                          Maybe relevant, Maybe relevant_step, Maybe step, Maybe reset, Maybe lengths, Maybe cut_h,
                          Maybe cut_c, Maybe h_offset, Tensor output, Tensor slot, Tensor history, Config config,
                          int64_t wanted) {
  Inputs i{.x = dense(x),
           .w_ih = dense(w_ih),
           .w_hh = dense(w_hh),
           .b_ih = dense(b_ih),
           .b_hh = dense(b_hh),
           .query = dense(query),
           .key = dense(key),
           .score = dense(score),
           .own = dense(own),
           .gate = dense(gate),
           .gate_bias = dense(gate_bias),
           .s = dense(s),
           .c = dense(c),
           .h = dense(h),
           .recent = dense(recent),
           .recent_score = std::nullopt,
           .relevant = dense(relevant),
           .relevant_score = std::nullopt,
           .relevant_step = dense(relevant_step),
           .step = dense(step),
           .reset = dense(reset),
           .lengths = dense(lengths),
           .cut_h = dense(cut_h),
           .cut_c = dense(cut_c),
           .h_offset = dense(h_offset),
           .forced = std::nullopt};
  Cotangents d{dense_pooled(d_output), dense(d_s), dense(d_c), dense(d_h), dense(d_recent), dense(d_relevant)};
  Saved saved{output, slot, history};
  Spec spec = read_spec(config);
  if (i.x.scalar_type() == ScalarType::Float) return backward_typed<float>(i, spec, d, saved, wanted);
  STD_TORCH_CHECK(i.x.scalar_type() == ScalarType::Double, "remanence: the fused kernel takes float32 and float64");
  return backward_typed<double>(i, spec, d, saved, wanted);
}

Tensor packed_product(Tensor a, Tensor weights) {
  STD_TORCH_CHECK(a.dim() == 2 && weights.dim() == 2, "remanence: `a` and `weights` must be matrices");
  int64_t rows = a.size(0);
  int64_t depth = a.size(1);
  int64_t width = weights.size(0);
  expect(a, "a", ScalarType::Float, {rows, depth});
  expect(weights, "weights", ScalarType::Float, {width, depth});
  STD_TORCH_CHECK(width % ALIGN == 0, "remanence: the number of rows of `weights` must be a multiple of 16");
  Tensor left = dense(a);
  Tensor right = dense(weights);
  Tensor result = torch::stable::new_empty(a, {rows, width});
  Block packed(std::size_t(width * depth) * sizeof(float));
  kernel<float>().product(in<float>(left), rows, in<float>(right), width, depth, packed.get(), out<float>(result));
  return result;
}

#ifndef REMANENCE_SOURCE_HASH
#define REMANENCE_SOURCE_HASH "unknown"
#endif
std::string source_hash() { return REMANENCE_SOURCE_HASH; }
void release_memory() { pool().release(); }
std::string cell_names() {
  std::string names;
  for (Index cell = 0; cell < CELLS.count; ++cell) names += (cell ? " " : "") + std::string(CELLS[cell].name);
  return names;
}
std::string instruction_set() { return kernels().name; }

}  // namespace

STABLE_TORCH_LIBRARY(remanence, m) {
  pool();  // now, while nobody forks
  m.def(
      "scan_forward(Tensor x, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? query, Tensor? key, "
      "Tensor? score, Tensor? own, Tensor? gate, Tensor? gate_bias, Tensor? s, Tensor? c, Tensor? h, "
      "Tensor? recent, Tensor? recent_score, Tensor? relevant, Tensor? relevant_score, Tensor? relevant_step, "
      "Tensor? step, Tensor? reset, Tensor? lengths, Tensor? cut_h, Tensor? cut_c, Tensor? h_offset, "
      "Tensor? forced, int[] config) -> (Tensor output, Tensor s_n, Tensor c_n, Tensor h_n, Tensor recent_n, "
      "Tensor recent_score_n, Tensor relevant_n, Tensor relevant_score_n, Tensor relevant_step_n, Tensor step_n, "
      "Tensor slot, Tensor displaced, Tensor history)");
  m.def(
      "scan_backward(Tensor? d_output, Tensor? d_s, Tensor? d_c, Tensor? d_h, Tensor? d_recent, "
      "Tensor? d_relevant, Tensor x, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? query, "
      "Tensor? key, Tensor? score, Tensor? own, Tensor? gate, Tensor? gate_bias, Tensor? s, Tensor? c, "
      "Tensor? h, Tensor? recent, Tensor? relevant, Tensor? relevant_step, Tensor? step, Tensor? reset, "
      "Tensor? lengths, Tensor? cut_h, Tensor? cut_c, Tensor? h_offset, Tensor output, Tensor slot, "
      "Tensor history, int[] config, int wanted) -> (Tensor d_x, Tensor d_w_ih, Tensor d_w_hh, Tensor d_b_ih, "
      "Tensor d_b_hh, Tensor d_query, Tensor d_key, Tensor d_score, Tensor d_own, Tensor d_gate, "
      "Tensor d_gate_bias, Tensor d_s_0, Tensor d_c_0, Tensor d_h_0, Tensor d_recent_0, Tensor d_relevant_0, "
      "Tensor d_h_offset)");
  m.def("packed_product(Tensor a, Tensor weights) -> Tensor");
  m.def("source_hash() -> str");
  m.def("cell_names() -> str");
  m.def("config_fields() -> str");
  m.def("history_of(int[] config, int hidden, int batch, bool offset) -> (int, int, int)");
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
  m.impl("cell_names", TORCH_BOX(&cell_names));
  m.impl("config_fields", TORCH_BOX(&config_fields));
  m.impl("history_of", TORCH_BOX(&history_of));
  m.impl("instruction_set", TORCH_BOX(&instruction_set));
  m.impl("release_memory", TORCH_BOX(&release_memory));
}

}  // namespace remanence

// What a scan keeps for its backward pass: one tensor of the pool, and who stands where in it.
#pragma once
#include <tuple>

#include "../kernel/dispatch.h"
#include "tensors.h"

namespace remanence {

// An empty tensor; a large one in memory of the pool, which gets it back when its last user lets go of it.
inline Tensor pooled(const Tensor &x, const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  std::size_t bytes = std::size_t(shape[0] * strides[0]) * x.element_size();
  if (bytes < Pool::LEAST) return fresh(shape, x.scalar_type());
  return torch::stable::from_blob(pool().take(bytes), shape, strides, x.device(), x.scalar_type(),
                                  [](void *p) { pool().give(p); });
}

// Like `dense`; a copy in memory of the pool. The cotangent of a sum is one number for all.
inline Maybe dense_pooled(const Maybe &t) {
  if (!t || t->is_contiguous() || !t->numel()) return t;
  Tensor copy = pooled(*t, shape_of(*t));
  torch::stable::copy_(copy, *t);
  return copy;
}

// The history: take(wanted, width, false) gives each part its place, one behind the other: `width` numbers for every
// place of the scan, or take(wanted, width, true) for every chunk of them. The output serves as history of s (or h) if
// its rows need no padding.
template <class T, class Take> void lay_history(Scan<T> &a, T *output, const Take &take) {
  const Spec &spec = a.spec;
  if (spec.save == Save::NOTHING) return;
  bool remembers = spec.remembers();
  bool reads = spec.has_keys();
  bool whole = spec.save == Save::ALL;
  bool same = a.n == a.np && spec.output != Output::SUMMARY;
  bool is_h = same && (!remembers || spec.output == Output::HIDDEN);
  bool is_s = same && (!remembers || spec.output == Output::MACRO);
  a.h_hist = is_h ? output : take(true, a.np, false);
  if (!remembers)
    a.s_hist = a.h_hist;
  else
    a.s_hist = is_s ? output : take(true, a.np, false);
  a.c_hist = take(spec.has_c(), a.np, !whole);
  a.gates = take(spec.traits().plane_is_h ? a.offset != nullptr : whole, spec.planes() * a.np, false);
  a.q_hist = take(reads && whole, a.np, false);
  a.k_hist = take(a.keeps_keys(), a.np, false);
  a.norm = take(reads, a.norm_size(), false);
  a.wide = reinterpret_cast<Width *>(take(a.keeps_keys(), 1, false));
}

// How many numbers the history takes: for every place, and for every chunk of so many places.
struct HistorySize {
  Index each = 0;
  Index chunked = 0;
  Index chunk = 1;
  Index numbers(Index places) const { return places * each + places / chunk * chunked; }
};

template <class T> HistorySize history_size(Scan<T> a) {
  HistorySize size;
  size.chunk = chunk_steps(a.np, a.batch);
  lay_history<T>(a, nullptr, [&](bool wanted, Index width, bool chunked) {
    (chunked ? size.chunked : size.each) += wanted ? width : 0;
    return static_cast<T *>(nullptr);
  });
  return size;
}

template <class T> void point_history(Scan<T> &a, Index places, T *output, T *history) {
  Index used = 0;
  Index chunk = chunk_steps(a.np, a.batch);
  lay_history(a, output, [&](bool wanted, Index width, bool chunked) {
    T *part = wanted && history ? history + used : nullptr;
    used += wanted ? (chunked ? places / chunk : places) * width : 0;
    return part;
  });
}

// For tracing, where there are shapes and no data: see `history_numbers` in ops/_kernel_tensors.py.
inline std::tuple<int64_t, int64_t, int64_t> history_of(Config config, int64_t hidden, int64_t batch, bool offset) {
  Scan<float> a{};
  float marker = 0;
  a.spec = read_spec(config);
  a.n = hidden;
  a.np = (hidden + ALIGN - 1) / ALIGN * ALIGN;
  a.batch = batch;
  a.offset = offset ? &marker : nullptr;
  HistorySize size = history_size(a);
  return {size.each, size.chunked, size.chunk};
}

}  // namespace remanence

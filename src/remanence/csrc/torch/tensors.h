// What the bindings share: torch's threads, and tensors as checked pointers.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "../kernel/scan.h"

namespace remanence {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using Maybe = std::optional<Tensor>;
using Config = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

// Runs the parts on torch's threads; an exception in one of them is thrown again here.
struct TorchParallel {
  template <class Body> void operator()(Index count, const Body &body) const {
    std::exception_ptr failure;
    std::mutex lock;
    torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      try {
        body(begin, end);
      } catch (...) {
        std::lock_guard<std::mutex> guard(lock);
        failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
  }
};

constexpr std::size_t CONFIG = 16;  // numbers that describe a scan, see `encode` in ops/fused.py

template <class Choice> Choice choose(int64_t number, Choice last) {
  STD_TORCH_CHECK(number >= 0 && number <= int64_t(last), "remanence: config holds a choice that does not exist");
  return Choice(number);
}

inline Spec read_spec(const Config &c) {
  STD_TORCH_CHECK(c.size() == CONFIG, "remanence: config must have 16 entries");
  Spec spec{};
  spec.cell = choose(c[0], Cell::GORU);
  spec.nonlinearity = choose(c[1], Nonlinearity::IDENTITY);
  spec.memory = choose(c[2], Memory::STRIDE);
  spec.score = choose(c[3], Score::TANH_AFFINE);
  spec.output = choose(c[4], Output::SUMMARY);
  spec.recent = c[5];
  spec.relevant = c[6];
  spec.half = c[7];
  spec.cut_reads = c[8];
  spec.every = int(c[9]);
  spec.top_k = int(c[10]);
  spec.normalise = c[11];
  spec.raw_underfull = c[12];
  spec.start_zero = c[13];
  spec.screens = c[14];
  spec.save = choose(c[15], Save::LEAN);
  STD_TORCH_CHECK(spec.memory != Memory::STRIDE || spec.relevant <= 64,
                  "remanence: the fused kernel stores at most 64 states");
  return spec;
}

// A new tensor on the CPU; without torch's dispatcher, which takes longer than a small step.
inline Tensor fresh(const Shape &shape, ScalarType dtype) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * (shape[i] > 1 ? shape[i] : 1);
  int32_t type = torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
  AtenTensorHandle handle;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(int64_t(shape.size()), shape.data(), strides.data(), type,
                                                         aoti_torch_device_type_cpu(), 0, &handle));
  return Tensor(handle);
}

inline Shape shape_of(const Tensor &t) {
  Shape shape;
  for (int64_t i = 0; i < t.dim(); ++i) shape.push_back(t.size(i));
  return shape;
}

inline Tensor dense(const Tensor &t) { return t.is_contiguous() ? t : torch::stable::contiguous(t); }
inline Maybe dense(const Maybe &t) { return t ? Maybe(dense(*t)) : t; }

inline void expect(const Tensor &t, const char *name, ScalarType dtype, const Shape &shape) {
  bool fits = t.scalar_type() == dtype && t.dim() == int64_t(shape.size());
  int64_t i = 0;
  for (int64_t size : shape) fits = fits && t.size(i++) == size;
  STD_TORCH_CHECK(fits, "remanence: `", name, "` has an unexpected shape or dtype");
}

inline void expect(const Maybe &t, const char *name, ScalarType dtype, const Shape &shape) {
  if (t) expect(*t, name, dtype, shape);
}

template <class T> const T *in(const Tensor &t) {
  return t.numel() ? static_cast<const T *>(t.const_data_ptr()) : nullptr;
}
template <class T> const T *in(const Maybe &t) { return t ? in<T>(*t) : nullptr; }
template <class T> T *out(const Tensor &t) { return t.numel() ? static_cast<T *>(t.mutable_data_ptr()) : nullptr; }

}  // namespace remanence

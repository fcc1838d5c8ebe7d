// What the bindings share: torch's threads, and tensors as checked pointers.
#pragma once
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
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

// What `config` holds, by place: the fields of `Config` in ops/_kernel_config.py.
constexpr std::string_view CONFIG[] = {"cell",          "nonlinearity", "memory",    "score",  "output", "recent",
                                       "relevant",      "half",         "cut_reads", "every",  "top_k",  "normalise",
                                       "raw_underfull", "start_zero",   "screens",   "screen", "seed",   "save"};

consteval std::size_t field(std::string_view name) {
  std::size_t place = 0;
  while (CONFIG[place] != name) ++place;  // beyond the end it does not compile
  return place;
}

inline std::string config_fields() {
  std::string names;
  for (std::string_view name : CONFIG) names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

template <class Choice> Choice choose(int64_t number, Choice last) {
  STD_TORCH_CHECK(number >= 0 && number <= int64_t(last), "remanence: `config` holds a choice that does not exist");
  return Choice(number);
}

inline int64_t within(int64_t number, int64_t least, int64_t most, const char *name) {
  STD_TORCH_CHECK(number >= least && number <= most, "`", name, "` must be from ", least, " to ", most, "; got ",
                  number);
  return number;
}

constexpr int64_t MOST_SLOTS = (int64_t(1) << 31) - 1;  // sources of held states are 32-bit numbers
constexpr int64_t MOST_STEPS = int64_t(1) << 62;        // counts of steps that can go on growing
constexpr int64_t MOST_STORED = 64;                     // slots of a Strided memory

inline void check_memory(const Spec &spec) {
  if (spec.has_rows()) {
    within(spec.relevant, 1, MOST_STORED, "top_k");
    within(spec.every, 1, MOST_STEPS, "every");
    within(spec.top_k, 1, MOST_STORED, "top_k");
  }
  if (!spec.has_keys()) return;
  bool screened = spec.relevant || spec.screening().sums_up;
  STD_TORCH_CHECK(spec.recent && (!spec.relevant || spec.screens) && screened,
                  "remanence: `config` describes no memory that exists");
}

inline Spec read_spec(const Config &c) {
  STD_TORCH_CHECK(c.size() == std::size(CONFIG), "remanence: `config` must hold: ", config_fields());
  Spec spec{};
  spec.cell = Index(within(c[field("cell")], 0, CELLS.count - 1, "cell"));
  spec.nonlinearity = choose(c[field("nonlinearity")], Nonlinearity::IDENTITY);
  spec.memory = choose(c[field("memory")], Memory::STRIDE);
  spec.score = choose(c[field("score")], Score::TANH_AFFINE);
  spec.output = choose(c[field("output")], Output::SUMMARY);
  spec.recent = within(c[field("recent")], -1, MOST_SLOTS, "recent");
  spec.relevant = within(c[field("relevant")], 0, MOST_SLOTS - spec.recent, "relevant");
  spec.half = c[field("half")];
  spec.cut_reads = c[field("cut_reads")];
  spec.every = c[field("every")];
  spec.top_k = c[field("top_k")];
  spec.normalise = c[field("normalise")];
  spec.raw_underfull = c[field("raw_underfull")];
  spec.start_zero = c[field("start_zero")] && spec.has_rows();
  spec.screens = c[field("screens")];
  spec.screen = Index(within(c[field("screen")], 0, SCREENS.count - 1, "screen"));
  spec.seed = uint32_t(within(c[field("seed")], 0, UINT32_MAX, "seed"));
  spec.save = choose(c[field("save")], Save::LEAN);
  check_memory(spec);
  return spec;
}

// Ages are differences of these steps: none may overflow.
inline void check_steps(const int64_t *step, Index rows, const int64_t *relevant_step, Index slots) {
  int64_t most = 0;
  for (Index i = 0; i < rows; ++i) {
    STD_TORCH_CHECK(step[i] >= 0, "`state.step` must not be negative; got ", step[i]);
    STD_TORCH_CHECK(step[i] <= MOST_STEPS, "`state.step` must be at most 2^62; got ", step[i]);
    most = std::max(most, step[i]);
  }
  for (Index i = 0; i < rows * slots; ++i)
    STD_TORCH_CHECK(relevant_step[i] >= BEFORE_START && relevant_step[i] < most,
                    "`state.relevant_step` must hold steps before `state.step`; got ", relevant_step[i]);
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

// Sizes is a Shape, or a list that is written out: a small step notices every allocation.
template <class Sizes> void expect_sizes(const Tensor &t, const char *name, ScalarType dtype, const Sizes &shape) {
  STD_TORCH_CHECK(t.is_cpu(), "remanence: `", name, "` must be on the CPU");
  bool fits = t.scalar_type() == dtype && t.dim() == int64_t(shape.size());
  int64_t i = 0;
  for (int64_t size : shape) fits = fits && t.size(i++) == size;
  STD_TORCH_CHECK(fits, "remanence: `", name, "` has an unexpected shape or dtype");
}

inline void expect(const Tensor &t, const char *name, ScalarType dtype, const Shape &shape) {
  expect_sizes(t, name, dtype, shape);
}
inline void expect(const Tensor &t, const char *name, ScalarType dtype, std::initializer_list<int64_t> shape) {
  expect_sizes(t, name, dtype, shape);
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

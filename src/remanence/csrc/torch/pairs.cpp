// The counting of pairs as a torch op: schema, checks, allocation.
#include "../kernel/pairs.h"
#include "tensors.h"

namespace remanence {
namespace {

const int64_t *numbers(const Tensor &t, const char *name) {
  bool fits = t.scalar_type() == ScalarType::Long && t.dim() == 1 && t.is_contiguous() && t.is_cpu();
  STD_TORCH_CHECK(fits, "remanence: `", name, "` must be one contiguous row of int64");
  return static_cast<const int64_t *>(t.data_ptr());
}

// From 0 to `places`, never falling.
void check_edges(const Tensor &t, const char *name, int64_t places) {
  const int64_t *edges = numbers(t, name);
  int64_t count = t.size(0);
  bool rising = count >= 2 && edges[0] == 0 && edges[count - 1] == places;
  for (int64_t i = 1; rising && i < count; ++i) rising = edges[i] >= edges[i - 1];
  STD_TORCH_CHECK(rising, "remanence: `", name, "` must rise from 0 to ", places);
}

Tensor pair_counts(Tensor symbols, Tensor lags, Tensor starts, Tensor groups, int64_t alphabet) {
  bool fits = symbols.scalar_type() == ScalarType::Byte && symbols.dim() == 1 && symbols.is_contiguous();
  STD_TORCH_CHECK(symbols.is_cpu(), "remanence: `symbols` must be on the CPU");
  STD_TORCH_CHECK(fits, "remanence: `symbols` must be one contiguous row of uint8");
  STD_TORCH_CHECK(alphabet >= 1 && alphabet <= 256, "remanence: `alphabet` must be between 1 and 256");
  check_edges(starts, "starts", symbols.size(0));
  check_edges(groups, "groups", symbols.size(0));
  const int64_t *distances = numbers(lags, "lags");
  for (Index k = 0; k < lags.size(0); ++k) STD_TORCH_CHECK(distances[k] >= 0, "remanence: `lags` must not be negative");
  Index group_count = groups.size(0) - 1;
  Tensor counts = torch::stable::new_zeros(starts, {lags.size(0), group_count, alphabet, alphabet});
  Pairs pairs{static_cast<const uint8_t *>(symbols.data_ptr()),
              numbers(starts, "starts"),
              numbers(groups, "groups"),
              numbers(lags, "lags"),
              static_cast<int64_t *>(counts.data_ptr()),
              Index(starts.size(0) - 1),
              group_count,
              Index(alphabet)};
  count_pairs(pairs, lags.size(0), TorchParallel{});
  return counts;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(remanence, m) {
  m.def("pair_counts(Tensor symbols, Tensor lags, Tensor starts, Tensor groups, int alphabet) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(remanence, CPU, m) { m.impl("pair_counts", TORCH_BOX(&pair_counts)); }

}  // namespace remanence

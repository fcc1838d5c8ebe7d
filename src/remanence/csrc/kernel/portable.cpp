// Any processor: 16-byte vectors, which SSE2 and NEON have.
#include <initializer_list>
#include <iterator>
#include <utility>

#include "generation.h"

#define VECTOR_BYTES 16
#define REGISTERS 16

namespace remanence {
namespace portable {
#include "body.inc"
}  // namespace portable
constinit const Table<CellTraits> CELLS{portable::Cells::traits, std::size(portable::Cells::traits)};
constinit const Table<ScreenTraits> SCREENS{portable::Screens::traits, std::size(portable::Screens::traits)};
const KernelSet portable_kernels{"portable", portable::make_kernel<float>(), portable::make_kernel<double>()};
}  // namespace remanence

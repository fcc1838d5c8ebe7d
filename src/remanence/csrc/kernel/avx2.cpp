// x86-64 with AVX2 and FMA: 32-byte vectors.
#include <initializer_list>
#include <utility>

#include "generation.h"

#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC target("avx2,fma,bmi2")
#define VECTOR_BYTES 32
#define REGISTERS 16

namespace remanence {
namespace avx2 {
#include "body.inc"
}  // namespace avx2
const KernelSet avx2_kernels{"avx2", avx2::make_kernel<float>(), avx2::make_kernel<double>()};
}  // namespace remanence
#endif

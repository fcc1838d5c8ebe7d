// x86-64 with AVX-512: 64-byte vectors, 32 registers.
#include <initializer_list>
#include <utility>

#include "generation.h"

#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi2,prefer-vector-width=512")
#define VECTOR_BYTES 64
#define REGISTERS 32

namespace remanence {
namespace avx512 {
#include "body.inc"
}  // namespace avx512
const KernelSet avx512_kernels{"avx512", avx512::make_kernel<float>(), avx512::make_kernel<double>()};
}  // namespace remanence
#endif

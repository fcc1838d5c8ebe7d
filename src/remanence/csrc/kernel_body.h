// All kernels of one instruction set. Included by kernel_*.cpp inside a namespace of its own; includes no library.
#include "vec.h"
#include "gemm.h"
#include "plan.h"
#include "cells.h"
#include "attention.h"
#include "buffer.h"
#include "stride.h"
#include "forward.h"
#include "once.h"
#include "generate.h"
#include "sums.h"
#include "replay.h"
#include "backward_pass.h"
#include "backward_reads.h"
#include "backward.h"

template <class T> static constexpr Kernel<T> make_kernel() {
  return {plan_size<T>, make_plan<T>, forward_scratch<T>, forward<T>,
          sums_size<T>, backward_scratch<T>, backward<T>, finish<T>, product<T>,
          ends_size<T>, make_ends<T>, generate_scratch<T>, generate<T>,
          once_scratch<T>, once<T>};
}

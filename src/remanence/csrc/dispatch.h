// Chooses the instruction set and shares the rows out to threads. No torch here: `parallel` and `allocate` are given.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "pool.h"
#include "scan.h"

namespace remanence {

// REMANENCE_KERNEL=portable|avx2|avx512 overrides the choice, for tests; what the processor lacks is not taken.
inline const KernelSet &kernels() {
  const char *wanted = std::getenv("REMANENCE_KERNEL");
  auto want = [&](const KernelSet &set) { return !wanted || !*wanted || !std::strcmp(wanted, set.name); };
#if defined(__x86_64__) && !defined(REMANENCE_PORTABLE_ONLY)
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  bool middle = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (wide && want(avx512_kernels)) return avx512_kernels;
  if (middle && want(avx2_kernels)) return avx2_kernels;
#endif
  return portable_kernels;
}

template <class T> const Kernel<T> &kernel();
template <> inline const Kernel<float> &kernel<float>() { return kernels().f32; }
template <> inline const Kernel<double> &kernel<double>() { return kernels().f64; }

struct Block {  // aligned memory that goes back to the pool by itself
  struct Give {
    void operator()(void *p) const { pool().give(p); }
  };
  std::unique_ptr<void, Give> memory;
  explicit Block(std::size_t bytes) : memory(pool().take(bytes)) {
#ifdef REMANENCE_POISON
    std::memset(memory.get(), 0xff, bytes);  // NaN: whatever is read before it was written shows
#endif
  }
  void *get() const { return memory.get(); }
};

// parallel(count, body): calls body(begin, end) over 0 .. count in parts.
template <class T, class Parallel> void run_forward(const Scan<T> &scan, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  Block plan(k.plan_size(scan, false));
  k.make_plan(scan, false, plan.get());
  Index most = block_rows(scan.np, scan.batch), passes = (scan.batch + most - 1) / most;
  if (passes < threads) passes = threads < scan.batch ? threads : scan.batch;
  Index rows = (scan.batch + passes - 1) / passes;
  parallel(passes, [&](Index begin, Index end) {
    Block scratch(k.forward_scratch(scan, rows));
    for (Index i = begin; i < end; ++i) {
      Index first = i * rows, last = first + rows < scan.batch ? first + rows : scan.batch;
      if (first < last) k.forward(scan, plan.get(), first, last, scratch.get());
    }
  });
}

// Scans groups [group0, group1) backwards, small groups together and large ones in parts.
template <class T>
void backward_groups(const Scan<T> &scan, const Gradients<T> &g, const void *plan, Index each, Index group0,
                     Index group1, void *const *sums) {
  const Kernel<T> &k = kernel<T>();
  Index most = block_rows(scan.np, scan.batch), together = each < most ? most / each : 1;
  for (Index group = group0; group < group1; group += together) {
    Index past = group + together < group1 ? group + together : group1;
    Index end = past * each < scan.batch ? past * each : scan.batch;
    for (Index first = group * each; first < end;) {
      Index last = each > most && end - first > most ? first + most : end;
      Index part = each > most ? last - first : each;
      Block scratch(k.backward_scratch(scan, g, first, last, part));
      k.backward(scan, g, plan, first, last, part, sums + group, scratch.get());
      first = last;
    }
  }
}

template <class T, class Parallel>
void run_backward(const Scan<T> &scan, const Gradients<T> &g, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  Block plan(k.plan_size(scan, true));
  k.make_plan(scan, true, plan.get());
  Index each = group_rows(scan.batch), groups = (scan.batch + each - 1) / each;
  std::vector<Block> blocks;
  std::vector<void *> sums;
  for (Index i = 0; i < groups; ++i) {
    blocks.emplace_back(k.sums_size(scan));
    std::memset(blocks.back().get(), 0, k.sums_size(scan));
    sums.push_back(blocks.back().get());
  }
  Index parts = threads < groups ? threads : groups;
  parallel(parts, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      backward_groups(scan, g, plan.get(), each, i * groups / parts, (i + 1) * groups / parts, sums.data());
  });
  k.finish(scan, g, sums.data(), groups);
}

}  // namespace remanence

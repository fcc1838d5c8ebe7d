// Chooses the instruction set and shares the rows out to threads. No torch here: `parallel` and `allocate` are given.
#pragma once
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
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

// Whoever is free takes the next pass. parallel(count, body): calls body(begin, end) over 0 .. count in parts.
template <class Parallel, class Body> void in_turns(Index passes, Index threads, Parallel parallel, const Body &body) {
  std::atomic<Index> next{0};
  parallel(threads < passes ? threads : passes, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index pass; (pass = next++) < passes;) body(pass);
  });
}

// Rows of unequal length, sorted, go in small blocks where threads share them: the first block has most of the steps.
template <class T> Index rows_at_once(const Scan<T> &scan, Index threads) {
  Index most = block_rows(scan.np, scan.batch);
  return scan.lengths && threads > 1 ? 8 : most;
}

template <class T, class Parallel> void run_forward(const Scan<T> &scan, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  Block plan(k.plan_size(scan, false));
  k.make_plan(scan, false, plan.get());
  Index most = rows_at_once(scan, threads);
  Index passes = (scan.batch + most - 1) / most;
  if (passes < threads) passes = threads < scan.batch ? threads : scan.batch;
  Index rows = (scan.batch + passes - 1) / passes;
  in_turns(passes, threads, parallel, [&](Index pass) {
    Block scratch(k.forward_scratch(scan, rows));
    Index first = pass * rows;
    Index last = first + rows < scan.batch ? first + rows : scan.batch;
    if (first < last) k.forward(scan, plan.get(), first, last, scratch.get());
  });
}

// Groups of rows that are scanned backwards at once: `count` of `each` rows, `together` in one pass.
struct Groups {
  Index each;
  Index count;
  Index together;
  Groups(Index batch, Index most, Index threads) {
    each = group_rows(batch);
    count = (batch + each - 1) / each;
    Index share = (count + threads - 1) / threads;
    together = 1;
    if (each < most) together = most / each < share ? most / each : share;
  }
  Index passes() const { return (count + together - 1) / together; }
};

// Adds the sums of the groups to the gradients in the order of the groups, whoever made them; early ones wait.
template <class T> class InOrder {
 public:
  InOrder(const Scan<T> &scan, const Gradients<T> &g, Index passes) : scan(scan), g(g), waiting(passes) {}

  void add(Index pass, std::vector<Block> sums) {
    std::lock_guard<std::mutex> guard(lock);
    waiting[pass] = std::move(sums);
    for (; next < Index(waiting.size()) && !waiting[next].empty(); ++next) {
      for (const Block &group : waiting[next]) {
        kernel<T>().finish(scan, g, group.get(), first);
        first = false;
      }
      waiting[next].clear();
    }
  }

 private:
  const Scan<T> &scan;
  const Gradients<T> &g;
  std::vector<std::vector<Block>> waiting;
  Index next = 0;
  bool first = true;
  std::mutex lock;
};

// Scans the groups of one pass backwards, small groups together and large ones in parts; returns their sums.
template <class T>
std::vector<Block> backward_pass(const Scan<T> &scan, const Gradients<T> &g, const void *plan, const Groups &groups,
                                 Index pass) {
  const Kernel<T> &k = kernel<T>();
  Index group = pass * groups.together;
  Index past = group + groups.together;
  if (past > groups.count) past = groups.count;
  std::vector<Block> blocks;
  std::vector<void *> sums;
  for (Index i = group; i < past; ++i) {
    blocks.emplace_back(k.sums_size(scan));
    std::memset(blocks.back().get(), 0, k.sums_size(scan));
    sums.push_back(blocks.back().get());
  }
  Index most = block_rows(scan.np, scan.batch);
  Index each = groups.each;
  Index end = past * each < scan.batch ? past * each : scan.batch;
  for (Index first = group * each; first < end;) {
    Index last = each > most && end - first > most ? first + most : end;
    Index part = each > most ? last - first : each;
    Block scratch(k.backward_scratch(scan, g, first, last, part));
    k.backward(scan, g, plan, first, last, part, sums.data(), scratch.get());
    first = last;
  }
  return blocks;
}

template <class T, class Parallel>
void run_backward(const Scan<T> &scan, const Gradients<T> &g, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  Block plan(k.plan_size(scan, true));
  k.make_plan(scan, true, plan.get());
  Groups groups(scan.batch, rows_at_once(scan, threads), threads);
  InOrder<T> gradients(scan, g, groups.passes());
  in_turns(groups.passes(), threads, parallel,
           [&](Index pass) { gradients.add(pass, backward_pass(scan, g, plan.get(), groups, pass)); });
}

}  // namespace remanence

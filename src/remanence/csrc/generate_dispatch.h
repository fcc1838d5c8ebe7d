// Shares the rows of a generation out to threads. No torch here: `parallel` is given.
#pragma once
#include <atomic>

#include "dispatch.h"
#include "generation.h"

namespace remanence {

// Fills in plans and the memory that the steps share; false where the logits are no numbers to draw from.
template <class T, class Parallel>
bool run_generate(Generation<T> &g, std::vector<Scan<T>> &layers, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  std::vector<Block> blocks;
  auto room = [&](std::size_t bytes) { return blocks.emplace_back(bytes).get(); };
  std::vector<const void *> plans;
  for (Scan<T> &a : layers) {
    Index wide = a.spec.output == SUMMARY && a.spec.memory != NONE ? 2 * a.n : a.n;
    a.batch = 0;
    a.output = static_cast<T *>(room(g.batch * wide * sizeof(T)));
    a.log_slot = static_cast<int64_t *>(room(g.batch * sizeof(int64_t)));
    a.log_displaced = static_cast<int64_t *>(room(g.batch * sizeof(int64_t)));
    void *plan = room(k.plan_size(a, false));
    k.make_plan(a, false, plan);
    plans.push_back(plan);
  }
  g.layers = layers.data(), g.plans = plans.data(), g.depth = Index(layers.size());
  void *ends = room(k.ends_size(g));
  k.make_ends(g, ends);
  g.ends = ends;
  Index passes = (g.batch + BLOCK_ROWS - 1) / BLOCK_ROWS;
  if (passes < threads) passes = threads < g.batch ? threads : g.batch;
  Index rows = (g.batch + passes - 1) / passes;
  std::atomic<bool> numbers{true};
  parallel(passes, [&](Index begin, Index end) {
    Block scratch(k.generate_scratch(g, rows));
    for (Index i = begin; i < end; ++i) {
      Index first = i * rows, last = first + rows < g.batch ? first + rows : g.batch;
      if (first < last && !k.generate(g, first, last, scratch.get())) numbers = false;
    }
  });
  return numbers;
}

}  // namespace remanence

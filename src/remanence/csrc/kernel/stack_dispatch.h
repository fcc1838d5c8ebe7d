// Runs a stack of layers step by step: generation and streams. No torch here: `parallel` is given.
#pragma once
#include <atomic>

#include "dispatch.h"
#include "generation.h"

namespace remanence {

constexpr Index ONCE_ROWS = 8;  // up to here a step is faster without packing

// One step through all layers: x (batch, inputs) to output (batch, width of the last layer).
template <class T, class Parallel>
void run_step(std::vector<Scan<T>> &layers, const T *x, T *output, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  Index batch = layers[0].batch;
  std::vector<int64_t> logs(2 * batch);
  std::vector<T> between[2];
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Scan<T> &a = layers[i];
    bool last = i + 1 == layers.size();
    if (!last) between[i % 2].resize(batch * a.spec.features(a.n));
    a.x = i ? between[(i + 1) % 2].data() : x;
    a.output = last ? output : between[i % 2].data();
    a.log_slot = logs.data();
    a.log_displaced = logs.data() + batch;
    if (batch <= ONCE_ROWS) {
      Block scratch(k.once_scratch(a));
      k.once(a, scratch.get());
    } else {
      run_forward(a, threads, parallel);
    }
  }
}

// Fills in plans and the memory that the steps share; false where the logits are no numbers to draw from.
template <class T, class Parallel>
bool run_generate(Generation<T> &g, std::vector<Scan<T>> &layers, Index threads, Parallel parallel) {
  const Kernel<T> &k = kernel<T>();
  std::vector<Block> blocks;
  auto room = [&](std::size_t bytes) { return blocks.emplace_back(bytes).get(); };
  std::vector<const void *> plans;
  for (Scan<T> &a : layers) {
    a.batch = 0;
    a.output = static_cast<T *>(room(g.batch * a.spec.features(a.n) * sizeof(T)));
    a.log_slot = static_cast<int64_t *>(room(g.batch * sizeof(int64_t)));
    a.log_displaced = static_cast<int64_t *>(room(g.batch * sizeof(int64_t)));
    void *plan = room(k.plan_size(a, false));
    k.make_plan(a, false, plan);
    plans.push_back(plan);
  }
  g.layers = layers.data();
  g.plans = plans.data();
  g.depth = Index(layers.size());
  void *ends = room(k.ends_size(g));
  k.make_ends(g, ends);
  g.ends = ends;
  Index most = block_rows(layers[0].np, g.batch);
  Index passes = (g.batch + most - 1) / most;
  if (passes < threads) passes = threads < g.batch ? threads : g.batch;
  Index rows = (g.batch + passes - 1) / passes;
  std::atomic<bool> numbers{true};
  parallel(passes, [&](Index begin, Index end) {
    Block scratch(k.generate_scratch(g, rows));
    for (Index i = begin; i < end; ++i) {
      Index first = i * rows;
      Index last = first + rows < g.batch ? first + rows : g.batch;
      if (first < last && !k.generate(g, first, last, scratch.get())) numbers = false;
    }
  });
  return numbers;
}

}  // namespace remanence

// How often each pair of symbols stands at a distance. No torch here: one task is one lag and one group of places.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "scan.h"

namespace remanence {

constexpr Index PAIR_TABLES = 4;     // neighbouring pairs are often equal: one table would wait for its own last store
constexpr Index PAIR_BLOCK = 4096;   // codes that are made at once, which the compiler turns into vector code
constexpr Index PAIR_LIMIT = Index(1) << 31;  // pairs before the 32-bit tables are emptied

struct Pairs {
  const uint8_t *symbols;  // (places), each below `alphabet`
  const int64_t *starts;   // (sequences + 1), rising from 0 to places
  const int64_t *groups;   // (groups + 1), rising from 0 to places
  const int64_t *lags;     // (lags)
  int64_t *counts;         // (lags, groups, alphabet, alphabet)
  Index sequences, group_count, alphabet;
};

class PairTables {
public:
  explicit PairTables(Index alphabet)
      : alphabet_(alphabet), size_(alphabet * alphabet), tables_(PAIR_TABLES * size_), codes_(PAIR_BLOCK) {}

  // Pairs (first[i], second[i]), i < n.
  void add(const uint8_t *first, const uint8_t *second, Index n, int64_t *counts) {
    while (n > 0) {
      Index part = std::min(n, PAIR_BLOCK - filled_);
      uint16_t *to = codes_.data() + filled_, width = uint16_t(alphabet_);
      for (Index i = 0; i < part; ++i) to[i] = uint16_t(first[i] * width + second[i]);
      first += part, second += part, n -= part, filled_ += part;
      if (filled_ == PAIR_BLOCK) count();
      if (pending_ >= PAIR_LIMIT) empty(counts);
    }
  }

  void finish(int64_t *counts) {
    count();
    empty(counts);
  }

private:
  void count() {
    const uint16_t *code = codes_.data();
    uint32_t *a = tables_.data(), *b = a + size_, *c = b + size_, *d = c + size_;
    Index i = 0;
    for (; i + 4 <= filled_; i += 4) {
      uint64_t four;  // one load instead of four
      std::memcpy(&four, code + i, sizeof four);
      ++a[four & 0xffff], ++b[four >> 16 & 0xffff], ++c[four >> 32 & 0xffff], ++d[four >> 48];
    }
    for (; i < filled_; ++i) ++a[code[i]];
    pending_ += filled_, filled_ = 0;
  }

  void empty(int64_t *counts) {
    for (Index table = 0; table < PAIR_TABLES; ++table)
      for (Index i = 0; i < size_; ++i) counts[i] += tables_[table * size_ + i];
    std::fill(tables_.begin(), tables_.end(), 0u);
    pending_ = 0;
  }

  Index alphabet_, size_, filled_ = 0, pending_ = 0;
  std::vector<uint32_t> tables_;
  std::vector<uint16_t> codes_;
};

// Pairs whose first symbol lies in the task's group and whose second lies in the same sequence.
inline void count_task(const Pairs &p, Index task, PairTables &tables) {
  Index lag = p.lags[task / p.group_count], group = task % p.group_count;
  Index begin = p.groups[group], end = p.groups[group + 1];
  int64_t *counts = p.counts + task * p.alphabet * p.alphabet;
  Index sequence = std::upper_bound(p.starts, p.starts + p.sequences + 1, begin) - p.starts - 1;
  for (; sequence < p.sequences && p.starts[sequence] < end; ++sequence) {
    Index from = std::max<Index>(p.starts[sequence], begin), to = std::min<Index>(p.starts[sequence + 1] - lag, end);
    if (from < to) tables.add(p.symbols + from, p.symbols + from + lag, to - from, counts);
  }
  tables.finish(counts);
}

// parallel(count, body): calls body(begin, end) over 0 .. count in parts.
template <class Parallel> void count_pairs(const Pairs &p, Index lags, Parallel parallel) {
  parallel(lags * p.group_count, [&](Index begin, Index end) {
    PairTables tables(p.alphabet);
    for (Index task = begin; task < end; ++task) count_task(p, task, tables);
  });
}

}  // namespace remanence

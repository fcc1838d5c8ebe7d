// How often each pair of symbols stands at a distance. No torch here: one task is one lag and one group of places.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "scan.h"

namespace remanence {

constexpr Index PAIR_TABLES = 4;    // neighbouring pairs are often equal: one table would wait for its own last store
constexpr Index PAIR_BLOCK = 4096;  // codes that are made at once, which the compiler turns into vector code
constexpr Index PAIR_LIMIT = Index(1) << 31;  // pairs before the 32-bit tables are emptied

struct Pairs {
  const uint8_t *symbols;  // (places), each below `alphabet`
  const int64_t *starts;   // (sequences + 1), rising from 0 to places
  const int64_t *groups;   // (groups + 1), rising from 0 to places
  const int64_t *lags;     // (lags)
  int64_t *counts;         // (lags, groups, alphabet, alphabet)
  Index sequences;
  Index group_count;
  Index alphabet;
};

// Codes of pairs, first * alphabet + second, and tables of how often they come. Where that keeps the tables small, one
// cell stands for two or four pairs in a row, which saves as many additions.
class PairTables {
 public:
  explicit PairTables(Index alphabet)
      : alphabet_(alphabet), first_(PAIR_BLOCK), second_(PAIR_BLOCK), codes_(PAIR_BLOCK) {
    Index pairs = alphabet * alphabet;
    pack_ = 1;
    if (pairs <= 64) pack_ = 2;
    if (pairs <= 8) pack_ = 4;  // 8^4 = 64^2 = 4096 cells at most
    size_ = 1;
    for (Index i = 0; i < pack_; ++i) size_ *= pairs;
    tables_.resize(PAIR_TABLES * size_);
  }

  // Pairs (first[i], second[i]), i < n.
  void add(const uint8_t *first, const uint8_t *second, Index n, int64_t *counts) {
    while (n > 0) {
      Index part = std::min(n, PAIR_BLOCK - filled_);
      take(first, second, part);
      uint16_t *to = codes_.data() + filled_;
      uint16_t width = uint16_t(alphabet_);
      for (Index i = 0; i < part; ++i) to[i] = uint16_t(first_[i] * width + second_[i]);
      first += part;
      second += part;
      n -= part;
      filled_ += part;
      if (filled_ == PAIR_BLOCK) count(counts);
      if (pending_ >= PAIR_LIMIT) empty(counts);
    }
  }

  void finish(int64_t *counts) {
    count(counts);
    empty(counts);
  }

 private:
  // Symbols may lie in memory that somebody else is writing to: what is counted is a copy, and the copy is checked.
  void take(const uint8_t *first, const uint8_t *second, Index n) {
    std::memcpy(first_.data(), first, std::size_t(n));
    std::memcpy(second_.data(), second, std::size_t(n));
    uint8_t most = 0;
    for (Index i = 0; i < n; ++i) most = std::max({most, first_[i], second_[i]});
    if (most >= alphabet_)
      throw std::runtime_error("a symbol lies beyond the alphabet: did the file change meanwhile?");
  }

  static uint64_t four(const uint16_t *codes) {  // one load instead of four
    uint64_t all;
    std::memcpy(&all, codes, sizeof all);
    return all;
  }

  void count(int64_t *counts) {
    const uint16_t *code = codes_.data();
    Index counted;
    if (pack_ == 4) {
      counted = count_fours(code);
    } else if (pack_ == 2) {
      counted = count_twos(code);
    } else {
      counted = count_ones(code);
    }
    for (Index i = counted; i < filled_; ++i) ++counts[code[i]];
    pending_ += filled_;
    filled_ = 0;
  }

  Index count_ones(const uint16_t *code) {
    uint32_t *a = tables_.data();
    uint32_t *b = a + size_;
    uint32_t *c = b + size_;
    uint32_t *d = c + size_;
    Index i = 0;
    for (; i + 4 <= filled_; i += 4) {
      uint64_t all = four(code + i);
      ++a[all & 0xffff];
      ++b[all >> 16 & 0xffff];
      ++c[all >> 32 & 0xffff];
      ++d[all >> 48];
    }
    return i;
  }

  // Times P + 2^16, P being the number of pairs, a word of codes (u, v, ..) holds u + P v in its second 16 bits and the
  // same of the others in its last; the table's size keeps every field from running over.
  Index count_twos(const uint16_t *code) {
    uint32_t *a = tables_.data();
    uint32_t *b = a + size_;
    uint32_t *c = b + size_;
    uint32_t *d = c + size_;
    uint64_t factor = uint64_t(alphabet_ * alphabet_) | uint64_t(1) << 16;
    Index i = 0;
    for (; i + 8 <= filled_; i += 8) {
      uint64_t left = four(code + i) * factor;
      uint64_t right = four(code + i + 4) * factor;
      ++a[left >> 16 & 0xffff];
      ++b[left >> 48];
      ++c[right >> 16 & 0xffff];
      ++d[right >> 48];
    }
    return i;
  }

  // The same for all four codes of a word: u + P v + P^2 w + P^3 x in its last 16 bits.
  Index count_fours(const uint16_t *code) {
    uint32_t *a = tables_.data();
    uint32_t *b = a + size_;
    uint32_t *c = b + size_;
    uint32_t *d = c + size_;
    uint64_t p = uint64_t(alphabet_ * alphabet_);
    uint64_t factor = p * p * p | p * p << 16 | p << 32 | uint64_t(1) << 48;
    Index i = 0;
    for (; i + 16 <= filled_; i += 16) {
      ++a[four(code + i) * factor >> 48];
      ++b[four(code + i + 4) * factor >> 48];
      ++c[four(code + i + 8) * factor >> 48];
      ++d[four(code + i + 12) * factor >> 48];
    }
    return i;
  }

  void empty(int64_t *counts) {
    Index pairs = alphabet_ * alphabet_;
    for (Index cell = 0; cell < PAIR_TABLES * size_; ++cell) {
      Index rest = cell % size_;
      for (Index i = 0; i < pack_; ++i, rest /= pairs) counts[rest % pairs] += tables_[cell];
    }
    std::fill(tables_.begin(), tables_.end(), 0u);
    pending_ = 0;
  }

  Index alphabet_;
  Index pack_;
  Index size_;
  Index filled_ = 0;
  Index pending_ = 0;
  std::vector<uint8_t> first_;   // a block of symbols
  std::vector<uint8_t> second_;  // and of those that stand a lag behind them
  std::vector<uint32_t> tables_;
  std::vector<uint16_t> codes_;
};

// Pairs whose first symbol lies in the task's group and whose second lies in the same sequence.
inline void count_task(const Pairs &p, Index task, PairTables &tables) {
  Index lag = p.lags[task / p.group_count];
  Index group = task % p.group_count;
  Index begin = p.groups[group];
  Index end = p.groups[group + 1];
  int64_t *counts = p.counts + task * p.alphabet * p.alphabet;
  Index sequence = std::upper_bound(p.starts, p.starts + p.sequences + 1, begin) - p.starts - 1;
  for (; sequence < p.sequences && p.starts[sequence] < end; ++sequence) {
    Index from = std::max<Index>(p.starts[sequence], begin);
    Index to = std::min<Index>(p.starts[sequence + 1] - lag, end);
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

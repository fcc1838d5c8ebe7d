// The counting of pairs without torch, for sanitizers: against a double loop, for every way of packing. Prints the cases
// that are wrong; the exit code is their number.
#include <cstdio>
#include <random>
#include <vector>

#include "pairs.h"

using namespace remanence;

namespace {

struct Serial {
  template <class Body> void operator()(Index count, const Body &body) const {
    for (Index i = 0; i < count; ++i) body(i, i + 1);
  }
};

bool agrees(Index alphabet, Index places, std::mt19937 &engine) {
  std::uniform_int_distribution<int> any(0, int(alphabet) - 1);
  std::vector<uint8_t> symbols(places);
  for (auto &symbol : symbols) symbol = uint8_t(any(engine));
  std::vector<int64_t> starts{0, places / 3, places / 3, places}, groups{0, places / 2, places}, lags{0, 1, 13, places};
  Index cells = alphabet * alphabet, group_count = 2;
  std::vector<int64_t> counts(lags.size() * group_count * cells), exact(counts.size());
  Pairs pairs{symbols.data(), starts.data(), groups.data(), lags.data(), counts.data(), 3, group_count, alphabet};
  count_pairs(pairs, Index(lags.size()), Serial{});
  for (Index k = 0; k < Index(lags.size()); ++k)
    for (Index s = 0; s < 3; ++s)
      for (Index t = starts[s]; t + lags[k] < starts[s + 1]; ++t)
        ++exact[(k * group_count + (t >= groups[1])) * cells + symbols[t] * alphabet + symbols[t + lags[k]]];
  return counts == exact;
}

}  // namespace

int main() {
  std::mt19937 engine(3);
  int wrong = 0;
  for (Index alphabet : {1, 2, 3, 4, 8, 9, 27, 64, 256})
    for (Index places : {1, 2, 15, 16, 17, 4097, 20011})
      if (!agrees(alphabet, places, engine)) {
        std::printf("alphabet %td, %td places\n", alphabet, places);
        ++wrong;
      }
  return wrong;
}

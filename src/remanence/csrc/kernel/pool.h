// Memory that is used again. A training step asks for the same large blocks every time; from the system each of them
// would come page by page, zeroed, which costs a small layer as much as its arithmetic.
#pragma once
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace remanence {

class Pool {
 public:
  static constexpr std::size_t LEAST = std::size_t(64) << 10;  // what is worth keeping
  static constexpr std::size_t PAGE = 4096;
  static constexpr std::size_t HUGE = std::size_t(2) << 20;
  static constexpr std::size_t HUGE_FROM = 2 * HUGE;

  // At least `bytes`, aligned to 64, with anything in it.
  void *take(std::size_t bytes) {
    std::size_t size = rounded(bytes);
    void *block = worth(size) ? take_kept(size) : nullptr;
    if (!block) block = fresh(size);
    std::memcpy(block, &size, sizeof size);
    return static_cast<char *>(block) + HEADER;
  }

  void give(void *memory) {
    void *block = static_cast<char *>(memory) - HEADER;
    std::size_t size;
    std::memcpy(&size, block, sizeof size);
    if (!worth(size) || !keep(block, size)) discard(block, size);
  }

  void before_fork() { lock.lock(); }
  void after_fork() { lock.unlock(); }

  void release() {
    std::lock_guard<std::mutex> guard(lock);
    while (!kept.empty()) drop_oldest();
  }

 private:
  static constexpr std::size_t HEADER = 64;  // the size stands in front of the memory
  static constexpr std::size_t STALE = 256;  // takes after which a block that nobody wanted goes
  struct Kept {
    void *block;
    std::size_t size;
    std::size_t since;
  };
  std::mutex lock;
  std::vector<Kept> kept;  // oldest first
  std::size_t total = 0;
  std::size_t takes = 0;
  std::size_t most = most_kept();

  static std::size_t most_kept() {  // in all: an eighth of the machine's memory
    std::size_t least = std::size_t(128) << 20;
    std::size_t share = 0;
#ifdef __linux__
    share = std::size_t(sysconf(_SC_PHYS_PAGES)) / 8 * std::size_t(sysconf(_SC_PAGESIZE));
#endif
    return share > least ? share : least;
  }

#ifdef REMANENCE_POISON  // a sanitizer sees what runs over the end or comes too late
  static bool worth(std::size_t) { return false; }
  static std::size_t rounded(std::size_t bytes) { return bytes + HEADER; }
#else
  static bool worth(std::size_t size) { return size >= LEAST; }

  // A few sizes per power of two, so that nearly equal wishes meet.
  static std::size_t rounded(std::size_t bytes) {
    std::size_t step = bytes + HEADER < LEAST ? 64 : PAGE;
    bytes += HEADER;
    while (step * 16 < bytes) step *= 2;
    return (bytes + step - 1) / step * step;
  }
#endif

  void *take_kept(std::size_t size) {
    std::lock_guard<std::mutex> guard(lock);
    ++takes;
    for (std::size_t i = kept.size(); i-- > 0;) {
      if (kept[i].size != size) continue;
      void *block = kept[i].block;
      kept.erase(kept.begin() + std::ptrdiff_t(i));
      total -= size;
      return block;
    }
    while (!kept.empty() && kept[0].since + STALE < takes) drop_oldest();
    return nullptr;
  }

  bool keep(void *block, std::size_t size) {
    std::lock_guard<std::mutex> guard(lock);
    if (size > most) return false;
    while (total + size > most) drop_oldest();
    kept.push_back({block, size, takes});
    total += size;
    return true;
  }

  void drop_oldest() {
    discard(kept[0].block, kept[0].size);
    total -= kept[0].size;
    kept.erase(kept.begin());
  }

#if defined(__linux__) && !defined(REMANENCE_POISON)
  // Large blocks are mapped one by one: from malloc's heap a freed one might stay resident, and the wish for huge pages
  // with it. Huge pages for whole ones only: the rest of the last one would be resident for nothing.
  static bool mapped(std::size_t size) { return size >= LEAST; }

  static void *fresh(std::size_t size) {
    if (!mapped(size)) return allocate(size);
    std::size_t slack = size >= HUGE_FROM ? HUGE : 0;
    void *memory = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (!slack) return memory;
    char *start = static_cast<char *>(memory);
    char *block = start + (slack - reinterpret_cast<std::size_t>(start) % slack);
    munmap(start, std::size_t(block - start));
    if (std::size_t rest = std::size_t(start + slack - block)) munmap(block + size, rest);
    madvise(block, size / HUGE * HUGE, MADV_HUGEPAGE);
    return block;
  }

  static void discard(void *block, std::size_t size) { mapped(size) ? void(munmap(block, size)) : std::free(block); }
#else
  static void *fresh(std::size_t size) { return allocate(size); }
  static void discard(void *block, std::size_t) { std::free(block); }
#endif

  static void *allocate(std::size_t size) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 64, size)) throw std::bad_alloc();
    return memory;
  }
};

// Lives as long as the process: tensors may be freed after everything else. A fork waits until nobody holds the lock, or
// the child would inherit it locked, by a thread that it does not have.
inline Pool &pool() {
  static Pool *one = [] {
    pthread_atfork([] { pool().before_fork(); }, [] { pool().after_fork(); }, [] { pool().after_fork(); });
    return new Pool;
  }();
  return *one;
}

}  // namespace remanence

// What the binding hands to the kernels: sizes, choices and raw pointers. No torch, no arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>

namespace remanence {

using Index = std::ptrdiff_t;

enum class Nonlinearity { TANH, RELU, MODRELU, IDENTITY };
enum class Memory { NONE, BUFFER, STRIDE };  // BUFFER: recent ring and relevant set; STRIDE: sparse top-k
enum class Score { ADDITIVE, DOT, AFFINE, TANH_AFFINE };
enum class Output { MACRO, HIDDEN, SUMMARY };
enum class Save { NOTHING, ALL, LEAN };              // LEAN: gates and queries are computed again by the backward pass
enum class Width : uint8_t { NARROW, USUAL, WIDE };  // of a query or a key, by its largest entry; see attention.inc

// What the scans must know of a cell; see csrc/cells. Its gates are blocks of rows in the weight matrices, and a step
// computes planes of numbers: one per gate, from x and s together.
struct CellTraits {
  const char *name;
  int blocks;
  bool has_c = false;        // it carries a state of its own beside h
  bool leaks = false;        // the previous h enters the new one directly
  bool split = false;        // the last block's parts from x and from s are planes of their own, the first and the last
  bool bias_inside = false;  // split: the recurrent bias of the last block stays with its part from s
  bool plane_is_h = false;   // the only plane ends as h: it is not saved twice

  constexpr int planes() const { return blocks + split; }
};

// What the buffer must know of a screen, which says who stays in the relevant set; see csrc/memories/screens.inc.
struct ScreenTraits {
  bool sums_up = false;  // relevance is the attention collected, and nothing else
  bool changes = false;  // relevance changes while a state is held
  bool follows = false;  // attention is collected in the relevant set too
  bool gated = false;    // it learns: a gate acts on the scores of what was admitted
};

// The cells and screens of the kernel by number, the same for all instruction sets.
template <class Traits> struct Table {
  const Traits *first;
  Index count;
  const Traits &operator[](Index number) const { return first[number]; }
};
extern const Table<CellTraits> CELLS;
extern const Table<ScreenTraits> SCREENS;

constexpr Index ALIGN = 16;           // rows of work buffers are padded to a multiple of this many numbers
constexpr int64_t EMPTY = -1;         // relevant_step of a free slot
constexpr int64_t BEFORE_START = -2;  // relevant_step of the all-zero entry that STRIDE may start with

struct Spec {
  Index cell;  // its number in CELLS
  Nonlinearity nonlinearity;
  Memory memory;
  Score score;
  Output output;
  Index recent;        // size of the ring; -1: unbounded
  Index relevant;      // slots of the relevant set, or of the stored states of STRIDE
  bool half;           // s = (h + r) / 2 instead of h + r
  bool cut_reads;      // a cut through s also cuts the gradient into what the memory holds then
  int64_t every;       // STRIDE
  int64_t top_k;       // STRIDE
  bool normalise;      // STRIDE
  bool raw_underfull;  // STRIDE
  bool start_zero;     // STRIDE
  Save save;
  bool screens;   // relevance is collected
  Index screen;   // of the relevant set: its number in SCREENS
  uint32_t seed;  // of a screen that draws

  const CellTraits &traits() const { return CELLS[cell]; }
  const ScreenTraits &screening() const { return SCREENS[screen]; }
  bool remembers() const { return memory != Memory::NONE; }
  bool has_keys() const { return memory == Memory::BUFFER; }  // queries and keys are products with matrices
  bool has_rows() const { return memory == Memory::STRIDE; }  // they are products with a row of weights
  Index features(Index n) const { return output == Output::SUMMARY && remembers() ? 2 * n : n; }  // of the output
  // Entries of the ring, where one without a limit has `unbounded`.
  Index ring(Index unbounded) const {
    if (!has_keys()) return 0;
    return recent >= 0 ? recent : unbounded;
  }
  bool has_c() const { return traits().has_c; }
  bool leaks_h() const { return remembers() && traits().leaks; }  // h is kept beside the macro-state
  int planes() const { return traits().planes(); }
  int blocks() const { return traits().blocks; }
};

// Rows that are scanned together: enough for the products, few enough for weights and memories to share the cache.
inline Index block_rows(Index np, Index batch) { return np >= 256 && batch > 16 ? 8 : 16; }

constexpr Index GROUP_ROWS = 5;  // of weight-gradient sums, while there are no more than MOST_GROUPS
constexpr Index MOST_GROUPS = 8;

// Rows of one group of weight-gradient sums: a function of the batch alone.
inline Index group_rows(Index batch) {
  Index groups = (batch + GROUP_ROWS - 1) / GROUP_ROWS;
  if (groups > MOST_GROUPS) groups = MOST_GROUPS;
  if (groups < 1) groups = 1;
  return (batch + groups - 1) / groups;
}

constexpr std::size_t LARGE_HISTORY = 16 << 20;  // bytes

// Steps of a chunk of the backward pass: enough rows per product of weight gradients, and few enough for the cache; never
// of the threads.
inline Index chunk_steps(Index np, Index batch) {
  Index block = block_rows(np, batch);
  Index group = group_rows(batch);
  Index rows = group < block ? group : block;
  if (rows < 1) rows = 1;
  Index chunk = (np < 128 ? 128 : 64) / rows;
  return chunk < 4 ? 4 : chunk;
}

// n: hidden size, np: n rounded up to ALIGN. Null pointers mark what is absent. Where rows are packed, (steps, batch)
// stands for one place per real step: those of one time side by side, rows longest first.
template <class T> struct Scan {
  Spec spec;
  Index steps;
  Index batch;
  Index inputs;
  Index n;
  Index np;
  Index held;      // ring entries of the initial state (its `recent` dimension)
  Index capacity;  // ring entries of the final state
  bool fresh;      // nothing is held at the start: recent0 and relevant0 of a buffer are not read
  bool large;      // the history exceeds the caches

  const T *x;                     // (steps, batch, inputs)
  const T *w_ih;                  // (G, inputs)
  const T *w_hh;                  // (G, n)
  const T *b_ih;                  // (G)
  const T *b_hh;                  // (G)
  const T *query;                 // (n, n); STRIDE: (n)
  const T *key;                   // (n, n); STRIDE: (n)
  const T *score;                 // (n); STRIDE: (1)
  const T *own;                   // (n): the cell's own vector
  const T *gate;                  // (n): LEARNED
  const T *gate_bias;             // (1): LEARNED
  const T *s0;                    // (batch, n)
  const T *c0;                    // (batch, n)
  const T *h0;                    // (batch, n)
  const T *recent0;               // (batch, held, n)
  const T *recent_score0;         // (batch, held)
  const T *relevant0;             // (batch, relevant, n)
  const T *relevant_score0;       // (batch, relevant)
  const int64_t *relevant_step0;  // (batch, relevant)
  const int64_t *step0;           // (batch)
  const bool *reset;              // (steps, batch)
  const bool *cut_h;              // (steps, batch)
  const bool *cut_c;              // (steps, batch)
  const int64_t *lengths;         // (batch)
  const int64_t *forced;          // (steps, batch)
  const int64_t *starts;          // (steps): first place of a time, of packed rows
  const T *offset;                // (steps, batch, n)

  T *output;  // (steps, batch, n or 2 n)
  // final state, shapes as above
  T *s1;
  T *c1;
  T *h1;
  T *recent1;
  T *recent_score1;
  T *relevant1;
  T *relevant_score1;
  int64_t *relevant_step1;
  int64_t *step1;
  int64_t *log_slot;       // (steps, batch)
  int64_t *log_displaced;  // (steps, batch)

  // History for the backward pass, rows padded to np: (steps, batch, np), gates (steps, batch, planes, np). LEAN: c_hist
  // has the cells that chunks start from, see cell_place.
  T *h_hist;
  T *s_hist;
  T *c_hist;
  T *gates;
  T *q_hist;
  T *k_hist;
  T *norm;
  Width *wide;  // (steps, batch): this key is stored as it is
  // norm (steps, batch, norm_size): weights of the read; only their maximum and sum where a read has no bounded size.

  // LEAN: a bounded buffer's keys are computed again, each when the walk back in time comes to hold it.
  bool keeps_keys() const { return spec.has_keys() && (spec.save == Save::ALL || spec.recent < 0); }
  bool keeps_weights() const { return spec.has_keys() && spec.recent >= 0; }
  Index norm_size() const { return keeps_weights() ? spec.recent + spec.relevant : 2; }
  Index length(Index row) const { return lengths ? lengths[row] : steps; }
  Index longest(Index first, Index last) const {
    Index most = 0;
    for (Index row = first; row < last; ++row) most = length(row) > most ? length(row) : most;
    return most;
  }
  // Rows first .. first + alive that may be at work at step t. Those behind them have ended; sorted, nobody else has.
  Index alive(Index t, Index first, Index rows) const {
    while (lengths && rows && t >= lengths[first + rows - 1]) --rows;
    return rows;
  }
  // LEAN: place in c_hist of the cell that step t > 0, the first of a chunk, starts from. Packed or not, places of different
  // chunks do not meet, because rows only become fewer, and none exceeds the number of all places / chunk.
  Index cell_place(Index t, Index row) const {
    Index alive_before = place(t, 0) - place(t - 1, 0);
    return place(t, 0) / chunk_steps(np, batch) - alive_before + row;
  }
  Index place(Index t, Index row) const { return (starts ? starts[t] : t * batch) + row; }
  bool at(const bool *mask, Index t, Index row) const { return mask && mask[place(t, row)]; }
};

// Cotangents in, gradients out; shapes as in Scan. Null where there is none, or none is wanted.
template <class T> struct Gradients {
  const T *output;
  const T *s1;
  const T *c1;
  const T *h1;
  const T *recent1;
  const T *relevant1;
  T *x;
  T *w_ih;
  T *w_hh;
  T *b_ih;
  T *b_hh;
  T *query;
  T *key;
  T *score;
  T *own;
  T *gate;
  T *gate_bias;
  T *s0;
  T *c0;
  T *h0;
  T *recent0;
  T *relevant0;
  T *offset;
};

template <class T> struct Generation;  // see generation.h

// One implementation per instruction set and type; see body.inc.
// The caller allocates `scratch` bytes per call of `run`; a plan (packed weights) is shared by all rows.
template <class T> struct Kernel {
  std::size_t (*plan_size)(const Scan<T> &, bool backward);
  void (*make_plan)(const Scan<T> &, bool backward, void *plan);
  std::size_t (*forward_scratch)(const Scan<T> &, Index rows);
  void (*forward)(const Scan<T> &, const void *plan, Index first, Index last, void *scratch);
  // Rows are grouped; each group has its own sums of weight gradients, zero at first, so that no sum depends on the
  // threads. One call takes rows of whole groups (`sums` of the first group on), or a part of one group.
  std::size_t (*sums_size)(const Scan<T> &);
  std::size_t (*backward_scratch)(const Scan<T> &, const Gradients<T> &, Index first, Index last, Index group_rows);
  void (*backward)(const Scan<T> &, const Gradients<T> &, const void *plan, Index first, Index last, Index group_rows,
                   void *const *sums, void *scratch);
  // Adds a group's sums to the gradients.
  void (*finish)(const Scan<T> &, const Gradients<T> &, void *sums, bool first);
  // out (rows, width) = a (rows, depth) weights', width a multiple of ALIGN: the product of all scans, for measuring it.
  void (*product)(const T *a, Index rows, const T *weights, Index width, Index depth, void *packed, T *out);
  // Drawing tokens: packed head and encoder, shared by all rows, and the steps of some rows; see generation.h.
  std::size_t (*ends_size)(const Generation<T> &);
  void (*make_ends)(const Generation<T> &, void *ends);
  std::size_t (*generate_scratch)(const Generation<T> &, Index rows);
  bool (*generate)(const Generation<T> &, Index first, Index last, void *scratch);
  // One step of few rows, without a plan.
  std::size_t (*once_scratch)(const Scan<T> &);
  void (*once)(const Scan<T> &, void *scratch);
};

struct KernelSet {
  const char *name;
  Kernel<float> f32;
  Kernel<double> f64;
};

extern const KernelSet portable_kernels;
extern const KernelSet avx2_kernels;
extern const KernelSet avx512_kernels;

}  // namespace remanence

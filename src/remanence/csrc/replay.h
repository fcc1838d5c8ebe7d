// What the memory of each row held at each step, found again from the log: forward once, then undone step by step.
// A source says where a held state is: >= 0 the time at which it was made, -1 nowhere, else -2 - (slot of the initial
// state, ring first, then relevant set).

constexpr Index NOWHERE = -1;
static inline Index initial_slot(Index source) { return -2 - source; }
static inline Index from_initial(Index slot) { return -2 - slot; }

template <class T> struct Replay {
  const Scan<T> *a;
  Index first, rows;
  int64_t *position;    // (steps, rows): the row's own step
  int32_t *displaced;   // (steps, rows): source that the step's entry displaced
  int32_t *source;      // (rows, slots): of the relevant set, at the present step
  int32_t *snapshots;   // (resets, slots): the set before each reset, latest on top
  Index *top;           // (rows): rows' stacks of snapshots
};

template <class T> static Index count_resets(const Scan<T> &a, Index first, Index last) {
  Index count = 0;
  for (Index t = 0; a.reset && t < a.steps; ++t)
    for (Index row = first; row < last; ++row) count += t < a.length(row) && a.reset[a.place(t, row)];
  return count;
}

template <class T> static Replay<T> lay_replay(const Scan<T> &a, Index first, Index last, Arena &arena) {
  Index rows = last - first, slots = a.spec.relevant;
  Replay<T> r{&a, first, rows, nullptr, nullptr, nullptr, nullptr, nullptr};
  Index longest = a.longest(first, last);
  r.position = arena.take<int64_t>(longest * rows);
  r.displaced = arena.take<int32_t>(longest * rows);
  r.source = arena.take<int32_t>(rows * slots);
  r.snapshots = arena.take<int32_t>(count_resets(a, first, last) * slots);
  r.top = arena.take<Index>(rows);
  return r;
}

// Source of the state that enters the relevant set at step t.
template <class T> static Index entering(const Scan<T> &a, Index t, int64_t position) {
  if (a.spec.memory == STRIDE || t >= a.spec.recent) return t - (a.spec.memory == STRIDE ? 0 : a.spec.recent);
  return from_initial((position - a.spec.recent) % a.held);
}

// Stands for the all-zero state that STRIDE may start with.
constexpr Index ZERO_STATE = -1000000000;

template <class T> static void start_sources(const Scan<T> &a, Index batch_row, int32_t *source, bool fresh) {
  Index slots = a.spec.relevant;
  for (Index j = 0; j < slots; ++j) {
    bool held = !fresh && a.relevant_step0[batch_row * slots + j] != EMPTY;
    source[j] = int32_t(held ? from_initial(a.held + j) : NOWHERE);
  }
  if (fresh && a.spec.memory == STRIDE && a.spec.start_zero && slots) source[0] = int32_t(ZERO_STATE);
}

template <class T> static Index replay_row(const Replay<T> &r, Index row, Index stack) {
  const Scan<T> &a = *r.a;
  Index slots = a.spec.relevant, batch_row = r.first + row;
  int32_t *source = r.source + row * slots;
  int64_t position = a.step0[batch_row];
  start_sources(a, batch_row, source, false);
  for (Index t = 0; t < a.length(batch_row); ++t, ++position) {
    if (a.at(a.reset, t, batch_row)) {
      copy(r.snapshots + stack++ * slots, source, slots);
      start_sources(a, batch_row, source, true);
      position = 0;
    }
    Index j = a.spec.memory == NONE ? EMPTY : Index(a.log_slot[a.place(t, batch_row)]), at = t * r.rows + row;
    r.position[at] = position;
    if (j < 0) continue;
    r.displaced[at] = source[j];
    source[j] = int32_t(entering(a, t, position));
  }
  return stack;
}

template <class T> static void replay(const Replay<T> &r) {
  Index stack = 0;
  for (Index row = 0; row < r.rows; ++row) r.top[row] = stack = replay_row(r, row, stack);
}

// Takes back a reset: the set as it was before.
template <class T> static void undo_reset(const Replay<T> &r, Index row) {
  Index slots = r.a->spec.relevant;
  copy(r.source + row * slots, r.snapshots + --r.top[row] * slots, slots);
}

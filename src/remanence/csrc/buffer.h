// The short-term ring and the relevant set of some rows (Screened, Full): who is held, who enters, what is read.
//
// The ring needs no pointers: after step t the row holds its steps p = position - age, age = 0 .. count - 1. A bounded
// ring has p in slot p mod `recent`; the entries of a row stand together there, whatever is kept for the backward pass.
// An unbounded one has what was made at time t - age of this call, or slot p mod `held` of the initial state.

// Slot that a candidate takes: the first free one, else the least score if strictly beaten, the youngest of equals; or -1.
template <class T>
static Index choose_slot(T candidate, const T *scores, const int64_t *steps, Index slots) {
  Index least = 0;
  for (Index j = 0; j < slots; ++j) {
    if (steps[j] == EMPTY) return j;
    if (scores[j] < scores[least] || (scores[j] == scores[least] && steps[j] > steps[least])) least = j;
  }
  return slots && candidate > scores[least] ? least : -1;
}

template <class T> struct Buffer {
  const Scan<T> *a;
  Index first, rows;
  T *values, *keys;             // (steps, rows, np), or of the present step only where the ring is bounded; or in the history
  uint8_t *wide;                // as keys
  bool values_kept, keys_kept;  // in the history
  T *ring_value, *ring_key;     // (rows, held, np): the ring, if it is bounded, or what it held at first
  uint8_t *ring_wide;           // (rows, held)
  T *set_value, *set_key;       // (rows, relevant, np)
  uint8_t *set_wide;            // (rows, relevant)
  T *set_score, *relevance;     // (rows, relevant) (rows, recent)
  int64_t *set_step;            // (rows, relevant)
  Held<T> *list;                // what one row reads, oldest first, then the relevant set
  T *z;

  bool bounded() const { return a->spec.recent >= 0; }
  Index place(bool kept, Index t, Index row) const {
    return kept ? a->place(t, first + row) : bounded() ? row : t * rows + row;
  }
  T *value_at(Index t, Index row) const { return values + place(values_kept, t, row) * a->np; }
  T *key_at(Index t, Index row) const { return keys + place(keys_kept, t, row) * a->np; }
  uint8_t &wide_at(Index t, Index row) const { return wide[place(keys_kept, t, row)]; }
  Index slot(Index row, int64_t step) const { return row * a->held + step % a->held; }
  Held<T> in_ring(Index slot) const {
    return {ring_value + slot * a->np, ring_key + slot * a->np, nullptr, ring_wide[slot]};
  }

  // Ring entries that row holds once step t (its own step `position`) is in.
  Index count(Index t, int64_t position) const {
    Index most = bounded() ? a->spec.recent : a->held + t + 1;
    return position + 1 < most ? Index(position + 1) : most;
  }
};

template <class T> static Buffer<T> lay_buffer(const Scan<T> &a, Index first, Index rows, bool streams, Arena &arena) {
  Buffer<T> b{};
  Index slots = a.spec.relevant, np = a.np;
  b.a = &a, b.first = first, b.rows = rows;
  b.values_kept = a.spec.save != SAVE_NOTHING && !(streams && b.bounded());
  b.keys_kept = b.values_kept && a.keeps_keys();
  Index times = b.bounded() ? 1 : a.steps, ring = a.fresh && !b.bounded() ? 0 : rows * a.held;
  b.values = b.values_kept ? a.h_hist : arena.take<T>(times * rows * np);
  b.keys = b.keys_kept ? a.k_hist : arena.take<T>(times * rows * np);
  b.wide = b.keys_kept ? a.wide : arena.take<uint8_t>(times * rows);
  b.ring_value = arena.take<T>(ring * np), b.ring_key = arena.take<T>(ring * np), b.ring_wide = arena.take<uint8_t>(ring);
  b.set_value = arena.take<T>(rows * slots * np), b.set_key = arena.take<T>(rows * slots * np);
  b.set_wide = arena.take<uint8_t>(rows * slots);
  b.set_score = arena.take<T>(rows * slots), b.set_step = arena.take<int64_t>(rows * slots);
  b.relevance = a.recent_score0 ? arena.take<T>(rows * a.held) : nullptr;
  Index most = a.capacity + slots;
  b.list = arena.take<Held<T>>(most), b.z = arena.take<T>(most + ALIGN);
  return b;
}

// Keys of `count` padded values, stored form.
template <class T>
static void make_keys(const Scan<T> &a, const Plan<T> &plan, const T *values, Index count, T *keys, uint8_t *wide) {
  multiply<T>(keys, a.np, count, nullptr, {values, a.np, a.n}, {nullptr, 0, 0}, plan.key);
  for (Index i = 0; i < count; ++i) wide[i] = a.spec.score == ADDITIVE ? encode_key(keys + i * a.np, a.np) : NARROW;
}

template <class T> static void load_initial(const Buffer<T> &b, const Plan<T> &plan) {
  const Scan<T> &a = *b.a;
  Index slots = a.spec.relevant;
  if (a.fresh) return fill(b.set_value, b.rows * slots * a.np, T(0));
  auto widen_all = [&](T *to, const T *from, Index each) {
    for (Index i = 0; i < b.rows * each; ++i) widen(to + i * a.np, from + (b.first * each + i) * a.n, a.n, a.np);
  };
  widen_all(b.ring_value, a.recent0, a.held);
  make_keys(a, plan, b.ring_value, b.rows * a.held, b.ring_key, b.ring_wide);
  widen_all(b.set_value, a.relevant0, slots);
  make_keys(a, plan, b.set_value, b.rows * slots, b.set_key, b.set_wide);
}

template <class T> static void start_buffer(const Buffer<T> &b, const Plan<T> &plan) {
  const Scan<T> &a = *b.a;
  load_initial(b, plan);
  Index slots = b.rows * a.spec.relevant, from = b.first * a.spec.relevant;
  copy(b.set_step, a.relevant_step0 + from, slots);
  if (a.spec.relevant) copy(b.set_score, a.relevant_score0 + from, slots);
  if (a.recent_score0) copy(b.relevance, a.recent_score0 + b.first * a.held, b.rows * a.held);
}

template <class T> static void forget_row(const Buffer<T> &b, Index row) {
  Index slots = b.a->spec.relevant, np = b.a->np;
  fill(b.set_value + row * slots * np, slots * np, T(0));
  fill(b.set_score + row * slots, slots, T(0));
  fill(b.set_step + row * slots, slots, EMPTY);
  if (b.relevance) fill(b.relevance + row * b.a->held, b.a->held, T(0));
}

// The oldest ring entry leaves and may enter the relevant set; writes the log. Before step t is in.
template <class T> static void screen_oldest(const Buffer<T> &b, Index t, Index row, int64_t position) {
  const Scan<T> &a = *b.a;
  Index slots = a.spec.relevant, np = a.np, log = a.place(t, b.first + row);
  a.log_slot[log] = a.log_displaced[log] = EMPTY;
  int64_t step = position - a.spec.recent;
  if (!slots || a.spec.recent < 0 || step < 0) return;
  T relevance = b.relevance[row * a.held + step % a.held];
  T *scores = b.set_score + row * slots;
  int64_t *steps = b.set_step + row * slots;
  Index j = a.forced ? Index(a.forced[log]) : choose_slot(relevance, scores, steps, slots);
  if (j < 0 || j >= slots) return;
  a.log_slot[log] = j, a.log_displaced[log] = steps[j];
  Held<T> oldest = b.in_ring(b.slot(row, step));
  Index to = row * slots + j;
  copy(b.set_value + to * np, oldest.value, np), copy(b.set_key + to * np, oldest.key, np);
  b.set_wide[to] = uint8_t(oldest.wide);
  scores[j] = relevance, steps[j] = step;
}

// The state that step t made takes its place in a bounded ring.
template <class T> static void enter_ring(const Buffer<T> &b, Index t, Index row, int64_t position) {
  Index slot = b.slot(row, position), np = b.a->np;
  copy(b.ring_value + slot * np, b.value_at(t, row), np), copy(b.ring_key + slot * np, b.key_at(t, row), np);
  b.ring_wide[slot] = b.wide_at(t, row);
}

// Lists the ring entries of a row, oldest first; `count` of them.
template <class T> static void list_ring(const Buffer<T> &b, Index t, Index row, int64_t position, Index count) {
  int64_t step = position - (count - 1);
  if (b.bounded()) {
    Index first = row * b.a->held, past = first + b.a->held, slot = b.slot(row, step);
    for (Index i = 0; i < count; ++i, slot = slot + 1 == past ? first : slot + 1) b.list[i] = b.in_ring(slot);
    return;
  }
  Index made = t - (count - 1);
  for (Index i = 0; i < count; ++i, ++made, ++step)
    b.list[i] = made < 0 ? b.in_ring(b.slot(row, step))
                         : Held<T>{b.value_at(made, row), b.key_at(made, row), nullptr, b.wide_at(made, row)};
}

template <class T> static Index list_all(const Buffer<T> &b, Index t, Index row, int64_t position) {
  Index count = b.count(t, position), slots = b.a->spec.relevant, np = b.a->np;
  list_ring(b, t, row, position, count);
  for (Index j = 0; j < slots; ++j) {
    Index place = row * slots + j;
    if (b.set_step[place] == EMPTY) continue;
    b.list[count++] = {b.set_value + place * np, b.set_key + place * np, nullptr, b.set_wide[place]};
  }
  return count;
}

// Reads the memory of a row for step t, whose state and key are in place.
template <class T>
static Softmax<T> attend(const Buffer<T> &b, const Plan<T> &plan, Index t, Index row, int64_t position, const T *q, T *eq,
                T *result) {
  const Scan<T> &a = *b.a;
  if (b.bounded()) enter_ring(b, t, row, position);
  Index count = list_all(b, t, row, position), ring = b.count(t, position);
  Read<T> read{count, a.np, b.list};
  read.ask(a.spec, a.n, q, eq, plan);
  Softmax<T> norm = read_forward(read, b.z, result);
  if (b.relevance) {
    T *relevance = b.relevance + row * a.held;
    relevance[position % a.held] = T(0);
    Index oldest = (position - (ring - 1)) % a.held, turn = a.held - oldest < ring ? a.held - oldest : ring;
    for (Index i = 0; i < turn; ++i) relevance[oldest + i] += b.z[i];
    for (Index i = turn; i < ring; ++i) relevance[i - turn] += b.z[i];
  }
  return norm;
}

// Final state of a row whose last step was t.
template <class T> static void finish_buffer(const Buffer<T> &b, Index t, Index row, int64_t position) {
  const Scan<T> &a = *b.a;
  Index count = b.count(t, position), slots = a.spec.relevant, out = b.first + row;
  fill(a.recent1 + out * a.capacity * a.n, a.capacity * a.n, T(0));
  if (b.relevance) fill(a.recent_score1 + out * a.capacity, a.capacity, T(0));
  list_ring(b, t, row, position, count);
  for (Index i = 0; i < count; ++i) {
    int64_t step = position - (count - 1 - i);
    Index place = out * a.capacity + step % a.capacity;
    copy(a.recent1 + place * a.n, b.list[i].value, a.n);
    if (b.relevance) a.recent_score1[place] = b.relevance[row * a.held + step % a.held];
  }
  for (Index j = 0; j < slots; ++j) {
    copy(a.relevant1 + (out * slots + j) * a.n, b.set_value + (row * slots + j) * a.np, a.n);
    a.relevant_score1[out * slots + j] = b.set_score[row * slots + j];
    a.relevant_step1[out * slots + j] = b.set_step[row * slots + j];
  }
}

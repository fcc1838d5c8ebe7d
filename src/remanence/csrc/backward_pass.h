// Work space of the backward pass over a block of rows, and where the forward pass left what it needs.

template <class T> struct BackwardPass {
  const Scan<T> *a;
  const Gradients<T> *g;
  const Plan<T> *plan;
  Index first, rows, group_rows;
  Sums<T> *sums;                        // one per group of this block
  Replay<T> replay;
  Index chunk, pitch;                   // steps per chunk; numbers per row of d: planes, dq and dk if it reads, and
                                        // some that keep rows from meeting in one set of the cache
  T *d;                                 // (chunk, rows, pitch); LEAN: at first activations, and the query in the place of dk
  T *ds, *dc, *dleak, *dh, *through;    // (rows, np); through: result of a matrix product
  T *s_init, *c_init, *h_init, *zero;   // (rows, np) (np)
  T *eq, *dr, *dv, *first_slot;         // (np)
  T *s_chunk, *c_chunk;                 // (chunk, rows, np). LEAN: states that the steps start from, cells that they make
  // BUFFER. Every held state has a number, and by it sums (2, np) of the gradients of its value and its key.
  Index entries;                        // numbers per row: capacity + relevant
  Held<T> *held;                        // (rows, entries), by number
  T *held_sums;                         // (rows, entries, 2, np), by number
  int32_t *ring_number, *set_number;    // (rows, capacity) (rows, relevant): who is in which slot
  T *held_values, *held_keys;           // (rows, entries, np), by number: copies, those of a row together; bounded memory
  T *came, *came_keys;                  // (rows or entries, np): work space where keys were not kept
  uint8_t *came_wide;
  int32_t *came_number;                 // (rows): number of the state that is held again before this step, or -1
  T *old_value, *old_key;               // (rows, held + relevant, np): initial state
  uint8_t *old_wide;
  Held<T> *list;                        // (entries): what one row reads
  T *z, *de;                            // scratch of one read: (entries)
  // STRIDE
  T *stored_values, *stored_keys, *sum_values, *sum_keys;  // (rows, slots, np) (rows, slots) and their gradients
  int64_t *stored_steps;
  // Factors of the weight gradients of one chunk
  const T **left_rows, **right_rows;
  T *right, *dx;

  Sums<T> &sums_of(Index row) const { return sums[row / group_rows]; }
  T *d_row(Index t, Index row) const { return d + (t % chunk * rows + row) * pitch; }
  Index at(Index t, Index row) const { return a->place(t, first + row); }
  const T *before(const T *history, const T *init, Index t, Index row) const {  // state that step t started from
    if (a->at(a->reset, t, first + row)) return zero;
    return t ? history + at(t - 1, row) * a->np : init + row * a->np;
  }
  const T *s_before(Index t, Index row) const { return before(a->s_hist, s_init, t, row); }
  bool lean() const { return a->spec.save == SAVE_LEAN; }
  T *c_made(Index t, Index row) const { return c_chunk + (t % chunk * rows + row) * a->np; }  // LEAN
  const T *c_after(Index t, Index row) const { return lean() ? c_made(t, row) : a->c_hist + at(t, row) * a->np; }
  const T *c_before(Index t, Index row) const {
    if (!lean() || !t || a->at(a->reset, t, first + row)) return before(a->c_hist, c_init, t, row);
    return t % chunk ? c_made(t - 1, row) : a->c_hist + a->cell_place(t, first + row) * a->np;
  }
  const T *leak(Index t, Index row) const {
    return a->spec.leaks_h() ? before(a->h_hist, h_init, t, row) : s_before(t, row);
  }
  const T *planes(Index t, Index row) const {
    if (a->spec.cell == RNN && !a->gates) return a->h_hist + at(t, row) * a->np;
    return a->gates ? a->gates + at(t, row) * a->spec.planes() * a->np : d_row(t, row);
  }
  const T *query(Index t, Index row) const {
    return a->q_hist ? a->q_hist + at(t, row) * a->np : d_row(t, row) + (a->spec.planes() + 1) * a->np;
  }
  Held<T> &held_of(Index row, Index number) const { return held[row * entries + number]; }
  Stored<T> stored(Index row) const {
    Index slots = a->spec.relevant;
    return {slots, stored_values + row * slots * a->np, stored_keys + row * slots, stored_steps + row * slots};
  }
  StrideSums<T> stride_sums(Index row) const {
    Index slots = a->spec.relevant;
    Sums<T> &s = sums_of(row);
    return {sum_values + row * slots * a->np, sum_keys + row * slots, s.key_row, s.query_row, s.score_bias};
  }
};

template <class T> static void lay_reads(BackwardPass<T> &p, Arena &arena) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant, np = a.np, rows = p.rows;
  p.entries = a.capacity + slots;
  p.held = arena.take<Held<T>>(rows * p.entries), p.list = arena.take<Held<T>>(p.entries);
  p.held_sums = arena.take<T>(rows * p.entries * 2 * np);
  p.ring_number = arena.take<int32_t>(rows * a.capacity), p.set_number = arena.take<int32_t>(rows * slots);
  if (a.spec.recent >= 0)
    p.held_values = arena.take<T>(rows * p.entries * np), p.held_keys = arena.take<T>(rows * p.entries * np);
  if (!a.keeps_keys()) {
    Index most = rows > p.entries ? rows : p.entries;
    p.came = arena.take<T>(most * np), p.came_keys = arena.take<T>(most * np);
    p.came_wide = arena.take<uint8_t>(most), p.came_number = arena.take<int32_t>(most);
  }
  Index initial = a.fresh ? 0 : rows * (a.held + slots);
  p.old_value = arena.take<T>(initial * np), p.old_key = arena.take<T>(initial * np);
  p.old_wide = arena.take<uint8_t>(initial);
  p.z = arena.take<T>(p.entries + ALIGN), p.de = arena.take<T>(p.entries + ALIGN);
}

template <class T> static void lay_stored(BackwardPass<T> &p, Arena &arena) {
  Index count = p.rows * p.a->spec.relevant, np = p.a->np;
  p.stored_values = arena.take<T>(count * np), p.stored_keys = arena.take<T>(count);
  p.sum_values = arena.take<T>(count * np), p.sum_keys = arena.take<T>(count);
  p.stored_steps = arena.take<int64_t>(count);
}

template <class T>
static BackwardPass<T> lay_backward(const Scan<T> &a, const Gradients<T> &g, Index first, Index last, Index group_rows,
                                    Arena &arena) {
  BackwardPass<T> p{};
  bool reads = a.spec.memory == BUFFER;
  Index rows = last - first, np = a.np, planes = a.spec.planes();
  p.a = &a, p.g = &g, p.first = first, p.rows = rows, p.group_rows = group_rows;
  p.sums = arena.take<Sums<T>>((rows + group_rows - 1) / group_rows);
  p.replay = lay_replay(a, first, last, arena);
  p.chunk = chunk_steps(np, a.batch), p.chunk = p.chunk < a.steps ? p.chunk : a.steps;
  p.pitch = (planes + 2 * reads) * np + ALIGN;
  p.d = arena.take<T>(p.chunk * rows * p.pitch);
  for (T **row : {&p.ds, &p.dc, &p.dleak, &p.dh, &p.through, &p.s_init, &p.c_init, &p.h_init})
    *row = arena.take<T>(rows * np);
  p.zero = arena.take<T>(np), p.eq = arena.take<T>(np), p.dr = arena.take<T>(np), p.dv = arena.take<T>(np);
  p.first_slot = arena.take<T>(np);
  if (p.lean()) p.s_chunk = arena.take<T>(p.chunk * rows * np);
  if (p.lean() && a.spec.cell == LSTM) p.c_chunk = arena.take<T>(p.chunk * rows * np);
  if (reads) lay_reads(p, arena);
  if (a.spec.memory == STRIDE) lay_stored(p, arena);
  Index depth = p.chunk * group_rows, width = np > round_up(a.inputs + 1) ? np : round_up(a.inputs + 1);
  p.left_rows = arena.take<const T *>(depth), p.right_rows = arena.take<const T *>(depth);
  p.right = arena.take<T>(depth * width);
  p.dx = arena.take<T>(p.chunk * rows * round_up(a.inputs));
  return p;
}

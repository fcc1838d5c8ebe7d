// The scan over all steps, for a block of rows. Rows only meet in the matrix products, where they do not mix.

template <class T> struct ForwardPass {
  const Scan<T> *a;
  const Plan<T> *plan;
  Index first, rows;
  bool streams;       // the history is written past the caches, once a row's step is done; else it is worked in
  T *s, *c, *h;       // (rows, np): the state; h is the new hidden state, or the leak of a gated cell with memory
  T *planes;          // (rows, planes, np)
  T *q, *result, *eq; // (rows, np) (np) (np)
  int64_t *position;  // (rows): the row's own count of steps
  Buffer<T> buffer;
  T *stored_values, *stored_keys;  // STRIDE: (rows, slots, np) (rows, slots)
  int64_t *stored_steps;

  // Where numbers of a step are made, `width` a row: in the history from place `at` on, or in scratch.
  T *workplace(T *history, T *scratch, Index at, Index width) const {
    return history && !streams ? history + at * width : scratch;
  }
  void keep(T *history, const T *made, Index count) const {
    streams ? stream(history, made, count) : copy(history, made, count);
  }
  Stored<T> stored(Index row) const {
    Index slots = a->spec.relevant;
    return {slots, stored_values + row * slots * a->np, stored_keys + row * slots, stored_steps + row * slots};
  }
};

template <class T> static ForwardPass<T> lay_forward(const Scan<T> &a, Index first, Index rows, Arena &arena) {
  ForwardPass<T> pass{};
  pass.a = &a, pass.first = first, pass.rows = rows, pass.streams = STREAMS && a.large;
  Index np = a.np, slots = a.spec.relevant;
  pass.s = arena.take<T>(rows * np), pass.c = arena.take<T>(rows * np), pass.h = arena.take<T>(rows * np);
  pass.planes = arena.take<T>(rows * a.spec.planes() * np);
  pass.q = arena.take<T>(rows * np), pass.result = arena.take<T>(np), pass.eq = arena.take<T>(np);
  pass.position = arena.take<int64_t>(rows);
  if (a.spec.memory == BUFFER) pass.buffer = lay_buffer(a, first, rows, pass.streams, arena);
  if (a.spec.memory == STRIDE) {
    pass.stored_values = arena.take<T>(rows * slots * np), pass.stored_keys = arena.take<T>(rows * slots);
    pass.stored_steps = arena.take<int64_t>(rows * slots);
  }
  return pass;
}

template <class T> static void start_forward(const ForwardPass<T> &pass) {
  const Scan<T> &a = *pass.a;
  for (Index row = 0; row < pass.rows; ++row) {
    Index from = (pass.first + row) * a.n, to = row * a.np;
    widen(pass.s + to, a.s0 + from, a.n, a.np);
    if (a.spec.cell == LSTM) widen(pass.c + to, a.c0 + from, a.n, a.np);
    if (a.spec.leaks_h()) widen(pass.h + to, a.h0 + from, a.n, a.np);
    pass.position[row] = a.step0[pass.first + row];
    if (a.spec.memory == STRIDE) load_stored(a, *pass.plan, pass.stored(row), pass.first + row);
  }
  if (a.spec.memory == BUFFER) start_buffer(pass.buffer, *pass.plan);
}

template <class T> static void reset_row(const ForwardPass<T> &pass, Index row) {
  Index np = pass.a->np;
  fill(pass.s + row * np, np, T(0)), fill(pass.c + row * np, np, T(0)), fill(pass.h + row * np, np, T(0));
  pass.position[row] = 0;
  if (pass.a->spec.memory == BUFFER) forget_row(pass.buffer, row);
  if (pass.a->spec.memory == STRIDE) empty_stored(*pass.a, pass.stored(row));
}

// The sums of all planes: planes (rows, planes, np), `stride` apart, from x (rows, inputs) and s (rows, np).
template <class T>
static void make_planes(const Scan<T> &a, const Plan<T> &plan, Index rows, const T *x, const T *s, T *planes,
                        Index stride) {
  Layout layout(a.spec);
  Index np = a.np;
  Operand<T> from_x{x, a.inputs, a.inputs}, from_s{s, np, a.n}, none{nullptr, 0, 0};
  multiply<T>(planes + layout.both_first * np, stride, rows, plan.bias + layout.both_first * np, from_x, from_s,
              plan.both);
  if (!layout.split()) return;
  multiply<T>(planes, stride, rows, plan.bias, from_x, none, plan.from_x);
  multiply<T>(planes + 3 * np, stride, rows, plan.bias + 3 * np, from_s, none, plan.from_s);
}

// The new cell, for the backward pass. LEAN: only the one that the next chunk starts from.
template <class T> static void keep_cell(const ForwardPass<T> &pass, Index t, Index row) {
  const Scan<T> &a = *pass.a;
  Index b = pass.first + row;
  if (a.spec.save == SAVE_ALL) return pass.keep(a.c_hist + a.place(t, b) * a.np, pass.c + row * a.np, a.np);
  if ((t + 1) % chunk_steps(a.np, a.batch) || t + 1 >= a.length(b)) return;
  pass.keep(a.c_hist + a.cell_place(t + 1, b) * a.np, pass.c + row * a.np, a.np);
}

// h of a row, in its place; `h` of the pass becomes the leak of the next step where there is one.
template <class T> static void step_cell(const ForwardPass<T> &pass, Index t, Index row, T *planes, T *h) {
  const Scan<T> &a = *pass.a;
  Index np = a.np, at = a.place(t, pass.first + row);
  const T *leak = a.spec.leaks_h() ? pass.h + row * np : pass.s + row * np;
  cell_forward<T>(a.spec, pass.plan->modrelu, np, {planes, pass.c + row * np, leak, h});
  if (a.offset)
    for (Index j = 0; j < a.n; ++j) h[j] += a.offset[at * a.n + j];
  if (a.c_hist) keep_cell(pass, t, row);
}

template <class T> static void combine(const Scan<T> &a, T *s, const T *h, const T *r) {
  T share = a.spec.half ? T(0.5) : T(1);
  for (Index j = 0; j < a.np; j += WIDTH<T>) store(s + j, share * (load(h + j) + load(r + j)));
}

template <class T> static void write_output(const ForwardPass<T> &pass, Index at, const T *h, const T *s) {
  const Scan<T> &a = *pass.a;
  Index wide = a.spec.output == SUMMARY && a.spec.memory != NONE ? 2 * a.n : a.n;
  bool hidden = a.spec.output == HIDDEN;
  if (a.output != (hidden ? a.h_hist : a.s_hist)) copy(a.output + at * wide, hidden ? h : s, a.n);
  if (wide > a.n) copy(a.output + at * wide + a.n, pass.result, a.n);
}

template <class T> static void step_row(const ForwardPass<T> &pass, Index t, Index row, const T *h) {
  const Scan<T> &a = *pass.a;
  Index np = a.np, at = a.place(t, pass.first + row);
  int64_t position = pass.position[row]++;
  T *s = pass.s + row * np;
  if (a.spec.memory == BUFFER) {
    const T *q = pass.workplace(a.q_hist, pass.q + row * np, at, np);
    Softmax<T> norm = attend(pass.buffer, *pass.plan, t, row, position, q, pass.eq, pass.result);
    T *kept = a.norm ? a.norm + at * a.norm_size() : nullptr;
    if (kept && a.keeps_weights()) copy(kept, pass.buffer.z, a.norm_size());
    if (kept && !a.keeps_weights()) kept[0] = norm.most, kept[1] = norm.total;
  } else if (a.spec.memory == STRIDE) {
    stride_read(a, *pass.plan, pass.stored(row), position, h, pass.result);
  }
  if (a.spec.memory == NONE)
    copy(s, h, np);
  else
    combine(a, s, h, pass.result);
  if (a.spec.leaks_h()) copy(pass.h + row * np, h, np);
  if (a.s_hist && a.s_hist != a.h_hist) pass.keep(a.s_hist + at * np, s, np);
  write_output(pass, at, h, s);
  if (a.spec.memory == STRIDE) stride_store(a, *pass.plan, pass.stored(row), at, position, s);
}

// Where the states of step t go: (rows, np).
template <class T> static T *state_rows(const ForwardPass<T> &pass, Index t) {
  const Scan<T> &a = *pass.a;
  if (a.spec.memory == BUFFER) return pass.buffer.value_at(t, 0);
  return pass.workplace(a.h_hist, nullptr, a.place(t, pass.first), a.np);
}

template <class T> static void step_keys(const ForwardPass<T> &pass, Index t, Index rows, const T *h) {
  const Scan<T> &a = *pass.a;
  make_keys(a, *pass.plan, h, rows, pass.buffer.key_at(t, 0), &pass.buffer.wide_at(t, 0));
}

// What was not made in the history goes there; c and s have gone before.
template <class T> static void stream_row(const ForwardPass<T> &pass, Index t, Index row, const T *h) {
  const Scan<T> &a = *pass.a;
  Index np = a.np, at = a.place(t, pass.first + row), planes = a.spec.planes() * np;
  if (a.gates) stream(a.gates + at * planes, pass.planes + row * planes, planes);
  if (a.q_hist) stream(a.q_hist + at * np, pass.q + row * np, np);
  if (a.spec.memory == BUFFER && pass.buffer.values_kept) return;
  if (a.h_hist) stream(a.h_hist + at * np, h, np);
  if (!a.k_hist) return;
  stream(a.k_hist + at * np, pass.buffer.key_at(t, row), np);
  a.wide[at] = pass.buffer.wide_at(t, row);
}

template <class T> static void finish_row(const ForwardPass<T> &pass, Index t, Index row) {
  const Scan<T> &a = *pass.a;
  Index out = pass.first + row, slots = a.spec.relevant;
  copy(a.s1 + out * a.n, pass.s + row * a.np, a.n);
  if (a.spec.cell == LSTM) copy(a.c1 + out * a.n, pass.c + row * a.np, a.n);
  if (a.spec.leaks_h()) copy(a.h1 + out * a.n, pass.h + row * a.np, a.n);
  a.step1[out] = pass.position[row];
  if (a.spec.memory == BUFFER) finish_buffer(pass.buffer, t, row, pass.position[row] - 1);
  if (a.spec.memory != STRIDE) return;
  Stored<T> stored = pass.stored(row);
  copy(a.relevant_step1 + out * slots, stored.steps, slots);
  for (Index j = 0; j < slots; ++j) copy(a.relevant1 + (out * slots + j) * a.n, stored.values + j * a.np, a.n);
}

// A row that has ended; packed, it has no place.
template <class T> static void silent_row(const ForwardPass<T> &pass, Index t, Index row) {
  const Scan<T> &a = *pass.a;
  if (a.starts) return;
  Index at = a.place(t, pass.first + row), wide = a.spec.output == SUMMARY && a.spec.memory != NONE ? 2 * a.n : a.n;
  fill(a.output + at * wide, wide, T(0));
  a.log_slot[at] = a.log_displaced[at] = EMPTY;
}

template <class T> static void step_all(const ForwardPass<T> &pass, Index t, T *h_spare) {
  const Scan<T> &a = *pass.a;
  Index np = a.np, at = a.place(t, pass.first), planes = a.spec.planes() * np;
  Index rows = a.alive(t, pass.first, pass.rows);
  for (Index row = 0; row < rows; ++row)
    if (a.at(a.reset, t, pass.first + row) && t < a.length(pass.first + row)) reset_row(pass, row);
  T *gates = pass.workplace(a.gates, pass.planes, at, planes), *h = state_rows(pass, t);
  if (!h) h = h_spare;
  make_planes(a, *pass.plan, rows, a.x + at * a.inputs, pass.s, gates, planes);
  if (a.spec.memory == BUFFER)
    multiply<T>(pass.workplace(a.q_hist, pass.q, at, np), np, rows, nullptr, {pass.s, np, a.n}, {nullptr, 0, 0},
                pass.plan->query);
  for (Index row = 0; row < rows; ++row) {
    bool live = t < a.length(pass.first + row);
    if (live && a.spec.memory == BUFFER) screen_oldest(pass.buffer, t, row, pass.position[row]);
    if (live) step_cell(pass, t, row, gates + row * planes, h + row * np);
  }
  if (a.spec.memory == BUFFER) step_keys(pass, t, rows, h);
  for (Index row = 0; row < pass.rows; ++row) {
    Index length = a.length(pass.first + row);
    if (t >= length) {
      silent_row(pass, t, row);
      continue;
    }
    step_row(pass, t, row, h + row * np);
    if (pass.streams) stream_row(pass, t, row, h + row * np);
    if (a.spec.memory == NONE) a.log_slot[at + row] = a.log_displaced[at + row] = EMPTY;
    if (t == length - 1) finish_row(pass, t, row);
  }
}

template <class T> static std::size_t forward_scratch(const Scan<T> &a, Index rows) {
  Arena arena{nullptr};
  lay_forward(a, 0, rows, arena);
  arena.take<T>(rows * a.np);
  return arena.used + 64;
}

template <class T>
static void forward(const Scan<T> &a, const void *plan, Index first, Index last, void *scratch) {
  Arena arena{static_cast<char *>(scratch)};
  ForwardPass<T> pass = lay_forward(a, first, last - first, arena);
  T *h_spare = arena.take<T>(pass.rows * a.np);
  pass.plan = &planned<T>(plan);
  start_forward(pass);
  Index longest = a.longest(first, last);
  for (Index t = 0; t < longest; ++t) step_all(pass, t, h_spare);
  if (pass.streams) end_stream();
  for (Index t = longest; t < a.steps && !a.starts; ++t)
    for (Index row = 0; row < pass.rows; ++row) silent_row(pass, t, row);
}

// The scan backwards, for a block of rows: step by step in chunks, weight gradients once per chunk.

// Gradients of one live row into h and the read: fills dh and dr from ds, the output's gradient and the leak.
template <class T> static void split_macro(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np, at = p.at(t, row), wide = a.spec.output == SUMMARY && a.spec.memory != NONE ? 2 * a.n : a.n;
  T *ds = p.ds + row * np, *dh = p.dh + row * np, share = a.spec.memory != NONE && a.spec.half ? T(0.5) : T(1);
  const T *dy = p.g->output ? p.g->output + at * wide : nullptr;
  if (dy && a.spec.output != HIDDEN)
    for (Index j = 0; j < a.n; ++j) ds[j] += dy[j];
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> d = share * load(ds + j);
    store(p.dr + j, d);
    store(dh + j, a.spec.leaks_h() ? d + load(p.dleak + row * np + j) : d);
  }
  if (dy && a.spec.output == HIDDEN)
    for (Index j = 0; j < a.n; ++j) dh[j] += dy[j];
  if (dy && wide > a.n)
    for (Index j = 0; j < a.n; ++j) p.dr[j] += dy[a.n + j];
}

template <class T> static void restore_stored(const BackwardPass<T> &p, Index row, Index j, Index source) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant, np = a.np;
  Stored<T> stored = p.stored(row);
  T *value = stored.values + j * np;
  if (source >= 0)
    copy(value, a.s_hist + p.at(source, row) * np, np);
  else if (source == NOWHERE || source == ZERO_STATE || a.at(a.reset, 0, p.first + row))  // a NaN must not be read
    fill(value, np, T(0));
  else
    widen(value, a.relevant0 + ((p.first + row) * slots + initial_slot(source) - a.held) * a.n, a.n, np);
  stored.keys[j] = static_key(a.spec, value, p.plan->key_row, np);
  stored.steps[j] = source == NOWHERE ? EMPTY : 0;
}

// The state stored at step t gives back what it gathered; what it displaced is back in its slot.
template <class T> static void undo_store(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np, slots = a.spec.relevant, j = Index(a.log_slot[p.at(t, row)]);
  if (j < 0) return;
  StrideSums<T> sums = p.stride_sums(row);
  Stored<T> stored = p.stored(row);
  T *ds = p.ds + row * np, *value = stored.values + j * np, *gathered = sums.values + j * np;
  for (Index i = 0; i < np; ++i) ds[i] += gathered[i], gathered[i] = T(0);
  static_key_back(a.spec, value, p.plan->key_row, sums.keys[j], np, ds, sums.dkey);
  sums.keys[j] = T(0);
  Index source = p.replay.displaced[t * p.rows + row];
  p.replay.source[row * slots + j] = int32_t(source);
  restore_stored(p, row, j, source);
}

// Gradients of what is held teach the key weights, then vanish: a cut of the reads.
template <class T> static void cut_stored(const BackwardPass<T> &p, Index row) {
  Stored<T> stored = p.stored(row);
  StrideSums<T> sums = p.stride_sums(row);
  for (Index j = 0; j < stored.slots; ++j)
    static_key_back<T>(p.a->spec, stored.values + j * p.a->np, p.plan->key_row, sums.keys[j], p.a->np, nullptr, sums.dkey);
  fill(sums.values, stored.slots * p.a->np, T(0)), fill(sums.keys, stored.slots, T(0));
}

template <class T> static void start_backward(BackwardPass<T> &p, void *const *sums) {
  const Scan<T> &a = *p.a;
  const Gradients<T> &g = *p.g;
  Index np = a.np, slots = a.spec.relevant;
  for (Index i = 0; i * p.group_rows < p.rows; ++i) p.sums[i] = open_sums(a, sums[i]);
  replay(p.replay);
  fill(p.zero, np, T(0));
  for (Index row = 0; row < p.rows; ++row) {
    Index b = (p.first + row) * a.n, to = row * np;
    auto take = [&](T *here, const T *from) { from ? widen(here + to, from + b, a.n, np) : fill(here + to, np, T(0)); };
    take(p.ds, g.s1), take(p.dc, g.c1), take(p.dleak, g.h1);
    take(p.s_init, a.s0), take(p.c_init, a.spec.cell == LSTM ? a.c0 : nullptr);
    take(p.h_init, a.spec.leaks_h() ? a.h0 : nullptr);
    if (a.spec.memory != STRIDE) continue;
    StrideSums<T> held = p.stride_sums(row);
    fill(held.values, slots * np, T(0)), fill(held.keys, slots, T(0));
    for (Index j = 0; j < slots; ++j) {
      restore_stored(p, row, j, p.replay.source[row * slots + j]);
      if (g.relevant1) copy(held.values + j * np, g.relevant1 + ((p.first + row) * slots + j) * a.n, a.n);
    }
  }
  if (a.spec.memory == BUFFER) start_reads(p);
}

// LEAN: what the steps of a chunk start from, side by side: s_chunk, and the inputs where their gradients will stand.
template <class T> static void gather_chunk(const BackwardPass<T> &p, Index from, Index to) {
  const Scan<T> &a = *p.a;
  T *s = p.s_chunk, *x = p.dx;
  for (Index t = from; t < to; ++t)
    for (Index row = 0; row < p.rows; ++row, s += a.np, x += a.inputs) {
      bool live = t < a.length(p.first + row);
      copy(s, live ? p.s_before(t, row) : p.zero, a.np);
      live ? copy(x, a.x + p.at(t, row) * a.inputs, a.inputs) : fill(x, a.inputs, T(0));
    }
}

// LEAN: activations, cells and queries of a chunk, computed again from the states, where their gradients will stand.
template <class T> static void recompute(const BackwardPass<T> &p, Index from, Index to) {
  const Scan<T> &a = *p.a;
  Index np = a.np, count = (to - from) * p.rows;
  T *d = p.d_row(from, 0);
  gather_chunk(p, from, to);
  if (a.spec.memory == BUFFER)
    multiply<T>(d + (a.spec.planes() + 1) * np, p.pitch, count, nullptr, {p.s_chunk, np, a.n}, {nullptr, 0, 0},
                p.plan->query);
  if (a.spec.cell == RNN) return;
  make_planes(a, *p.plan, count, p.dx, p.s_chunk, d, p.pitch);
  bool lstm = a.spec.cell == LSTM;
  for (Index t = from; t < to; ++t)
    for (Index row = 0; row < p.rows; ++row) {
      if (t >= a.length(p.first + row)) continue;
      T *c = lstm ? p.c_made(t, row) : nullptr;
      if (lstm) copy(c, p.c_before(t, row), np);
      cell_forward<T>(a.spec, p.plan->modrelu, np, {p.d_row(t, row), c, p.leak(t, row), lstm ? nullptr : p.eq});
    }
}

template <class T> static void fetch(const T *row, Index count) {
  for (Index j = 0; j < count; j += ALIGN) __builtin_prefetch(row + j);
}

// Walking back in time, no processor guesses what comes next: calls for the history that the step before t wants.
template <class T> static void fetch_before(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np, at = p.at(t - 1, row), oldest = t - a.spec.recent;
  if (a.gates) fetch(a.gates + at * a.spec.planes() * np, a.spec.planes() * np);
  if (p.g->output) fetch(p.g->output + at * a.n, a.n);
  if (a.spec.cell == LSTM && !p.lean() && t > 1) fetch(a.c_hist + p.at(t - 2, row) * np, np);
  if (a.q_hist) fetch(a.q_hist + at * np, np);
  if (a.spec.memory != BUFFER || a.spec.recent < 0 || oldest < 0) return;
  if (a.k_hist) fetch(a.k_hist + p.at(oldest, row) * np, np);
  fetch(a.h_hist + p.at(oldest, row) * np, np);
}

template <class T> static void row_through_memory(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np;
  int64_t position = p.replay.position[t * p.rows + row];
  T *dq = p.d_row(t, row) + a.spec.planes() * np, *dh = p.dh + row * np;
  if (t) fetch_before(p, t, row);
  if (a.spec.memory == STRIDE) undo_store(p, t, row);
  split_macro(p, t, row);
  if (a.spec.memory == STRIDE)
    stride_read_back(a, *p.plan, p.stored(row), position, a.h_hist + p.at(t, row) * np, p.dr, dh, p.stride_sums(row));
  if (a.spec.memory != BUFFER) return;
  attend_back(p, t, row, position, dq);
  undo_entry(p, t, row, position, dh, dq + np);
}

// The products since then have driven it out of the first-level cache again.
template <class T> static void fetch_cell(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  fetch(p.planes(t, row), a.spec.planes() * a.np);
  if (a.spec.cell == LSTM) fetch(p.c_before(t, row), a.np);
}

template <class T> static void row_through_cell(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np, at = p.at(t, row);
  T *dh = p.dh + row * np;
  if (a.spec.memory == BUFFER)
    for (Index j = 0; j < np; j += WIDTH<T>) store(dh + j, load(dh + j) + load(p.through + row * np + j));
  if (p.g->offset) copy(p.g->offset + at * a.n, dh, a.n);
  bool lstm = a.spec.cell == LSTM;
  cell_backward<T>(a.spec, np,
                   {p.planes(t, row), lstm ? p.c_after(t, row) : nullptr, lstm ? p.c_before(t, row) : nullptr,
                    p.leak(t, row), dh, p.dc + row * np, p.dleak + row * np, p.d_row(t, row), p.sums_of(row).modrelu});
}

// Resets and cuts: what does not go on to the step before.
template <class T> static void row_before(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  Index np = a.np, b = p.first + row, slots = a.spec.relevant;
  T *ds = p.ds + row * np, *dleak = p.dleak + row * np;
  bool gated = a.spec.cell == GRU || a.spec.cell == GORU;
  for (Index j = 0; j < np; ++j) ds[j] = p.through[row * np + j] + (gated && !a.spec.leaks_h() ? dleak[j] : T(0));
  bool reset = a.at(a.reset, t, b), cut = a.at(a.cut_h, t, b);
  if (reset || cut) fill(ds, np, T(0)), fill(dleak, np, T(0));
  if (reset || a.at(a.cut_c, t, b)) fill(p.dc + row * np, np, T(0));
  if (a.spec.memory == NONE) return;
  int64_t position = p.replay.position[t * p.rows + row];
  if (!reset && cut && a.spec.cut_reads) a.spec.memory == BUFFER ? cut_held(p, t, row, position) : cut_stored(p, row);
  if (!reset) return;
  undo_reset(p.replay, row);
  for (Index j = 0; j < slots; ++j)
    if (a.spec.memory == BUFFER) {
      fill(p.held_of(row, p.set_number[row * slots + j]).sums, 2 * np, T(0));
    } else {
      fill(p.stride_sums(row).values + j * np, np, T(0)), p.stride_sums(row).keys[j] = T(0);
      restore_stored(p, row, j, p.replay.source[row * slots + j]);
    }
  if (a.spec.memory == BUFFER && t) hold_row(p, t - 1, row);
}

// Rows from `alive` on have ended, and others may have: no gradient of the offset or, behind `alive`, of the input.
template <class T> static void silence(const BackwardPass<T> &p, Index t, Index alive) {
  const Scan<T> &a = *p.a;
  if (p.g->x) fill(p.g->x + p.at(t, alive) * a.inputs, (p.rows - alive) * a.inputs, T(0));
  for (Index row = 0; p.g->offset && row < p.rows; ++row)
    if (t >= a.length(p.first + row)) fill(p.g->offset + p.at(t, row) * a.n, a.n, T(0));
}

template <class T> static void step_back(const BackwardPass<T> &p, Index t) {
  const Scan<T> &a = *p.a;
  Layout layout(a.spec);
  Index np = a.np;
  bool reads = a.spec.memory == BUFFER;
  Index rows = a.alive(t, p.first, p.rows);
  auto live = [&](Index row) { return t < a.length(p.first + row); };
  for (Index row = 0; row < rows; ++row)
    if (live(row))
      row_through_memory(p, t, row);
    else
      fill(p.d_row(t, row), p.pitch, T(0));
  key_came(p, t, rows);
  T *d = p.d_row(t, 0);
  if (reads)
    multiply<T>(p.through, np, rows, nullptr, {d + (layout.planes + 1) * np, p.pitch, np}, {nullptr, 0, 0},
                p.plan->key_back);
  for (Index row = 0; row < rows; ++row) {
    if (row + 1 < rows) fetch_cell(p, t, row + 1);
    if (live(row)) row_through_cell(p, t, row);
  }
  multiply<T>(p.through, np, rows, nullptr, {d + layout.s_first * np, p.pitch, p.plan->s_back.depth}, {nullptr, 0, 0},
              p.plan->s_back);
  for (Index row = 0; row < rows; ++row)
    if (live(row)) row_before(p, t, row);
  if (!a.starts) silence(p, t, rows);
}

template <class T> static void add_weights(const BackwardPass<T> &p, Index from, Index to, Index group) {
  const Scan<T> &a = *p.a;
  Layout layout(a.spec);
  bool reads = a.spec.memory == BUFFER;
  Index row0 = group * p.group_rows, row1 = row0 + p.group_rows < p.rows ? row0 + p.group_rows : p.rows, depth = 0;
  constexpr Index W = WIDTH<T>;
  Index np = a.np, ip = round_up(a.inputs + 1);
  Sums<T> &sums = p.sums[group];
  auto pack_right = [&](auto row_of, Index count, Index width) {
    Index k = 0;
    for (Index t = from; t < to; ++t)
      for (Index row = row0; row < row1; ++row)
        if (t < a.length(p.first + row)) p.right_rows[k++] = row_of(t, row);
    pack_columns(p.right, p.right_rows, count, width, k);
  };
  for (Index t = from; t < to; ++t)
    for (Index row = row0; row < row1; ++row)
      if (t < a.length(p.first + row)) p.left_rows[depth++] = p.d_row(t, row);
  if (!depth) return;  // all have ended
  pack_right([&](Index t, Index row) { return p.s_before(t, row); }, np, np);
  add_outer(sums.from_s, p.plan->s_back.depth, np, p.left_rows, layout.s_first * np, p.right, depth);
  pack_right([&](Index t, Index row) { return a.x + p.at(t, row) * a.inputs; }, a.inputs, ip);
  for (Index k = 0; k < depth; ++k)  // a column of ones sums the bias
    p.right[a.inputs / W * W * depth + k * W + a.inputs % W] = T(1);
  add_outer(sums.from_x, layout.planes * np, ip, p.left_rows, 0, p.right, depth);
  if (!reads) return;
  pack_right([&](Index t, Index row) { return a.h_hist + p.at(t, row) * np; }, np, np);
  add_outer(sums.key, np, np, p.left_rows, (layout.planes + 1) * np, p.right, depth);
  for (Index j = 0; j < np; ++j) sums.score[j] += T(-2) * sums.recent_score[j], sums.recent_score[j] = T(0);
}

template <class T> static void give_inputs(const BackwardPass<T> &p, Index from, Index to) {
  const Scan<T> &a = *p.a;
  if (!p.g->x || !a.inputs) return;
  Index ip = round_up(a.inputs), together = a.lengths ? 1 : to - from;  // steps per product
  for (Index t = from; t < to; t += together)
    multiply<T>(p.dx + (t - from) * p.rows * ip, ip, together * a.alive(t, p.first, p.rows), nullptr,
                {p.d_row(t, 0), p.pitch, p.plan->x_back.depth}, {nullptr, 0, 0}, p.plan->x_back);
  for (Index t = from; t < to; ++t) {
    T *out = p.g->x + p.at(t, 0) * a.inputs;
    Index rows = a.alive(t, p.first, p.rows);
    for (Index row = 0; row < rows; ++row) copy(out + row * a.inputs, p.dx + ((t - from) * p.rows + row) * ip, a.inputs);
  }
}

template <class T> static void finish_backward(const BackwardPass<T> &p) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant;
  for (Index row = 0; row < p.rows; ++row) {
    auto give = [&](T *out, const T *from) { if (out) copy(out + (p.first + row) * a.n, from + row * a.np, a.n); };
    give(p.g->s0, p.ds), give(p.g->c0, p.dc), give(p.g->h0, p.dleak);
    if (a.spec.memory != STRIDE) continue;
    StrideSums<T> held = p.stride_sums(row);
    for (Index j = 0; j < slots; ++j) {
      T *sums = held.values + j * a.np;
      static_key_back(a.spec, p.stored(row).values + j * a.np, p.plan->key_row, held.keys[j], a.np, sums, held.dkey);
      if (p.g->relevant0) copy(p.g->relevant0 + ((p.first + row) * slots + j) * a.n, sums, a.n);
    }
  }
  if (a.spec.memory == BUFFER && !a.fresh) finish_reads(p);
}

template <class T>
static std::size_t backward_scratch(const Scan<T> &a, const Gradients<T> &g, Index first, Index last, Index group_rows) {
  Arena arena{nullptr};
  lay_backward(a, g, first, last, group_rows, arena);
  return arena.used + 64;
}

template <class T>
static void backward(const Scan<T> &a, const Gradients<T> &g, const void *plan, Index first, Index last,
                     Index group_rows, void *const *sums, void *scratch) {
  Arena arena{static_cast<char *>(scratch)};
  BackwardPass<T> p = lay_backward(a, g, first, last, group_rows, arena);
  p.plan = &planned<T>(plan);
  start_backward(p, sums);
  Index longest = a.longest(first, last);
  for (Index t = longest; t < a.steps && !a.starts; ++t) silence(p, t, 0);
  for (Index to = longest; to > 0;) {
    Index from = (to - 1) / p.chunk * p.chunk;
    if (p.lean()) recompute(p, from, to);
    for (Index t = to - 1; t >= from; --t) step_back(p, t);
    for (Index group = 0; group * p.group_rows < p.rows; ++group) add_weights(p, from, to, group);
    give_inputs(p, from, to);
    to = from;
  }
  finish_backward(p);
}

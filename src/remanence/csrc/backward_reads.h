// Backward pass of the ring and the relevant set: gradients gather in one sum per held state; walking back in time, a
// state's sum is complete when the step that made it is reached.

template <class T> static void take_initial_reads(const BackwardPass<T> &p) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant, each = a.held + slots;
  for (Index row = 0; row < p.rows; ++row)
    for (Index i = 0; i < each; ++i) {
      Index b = p.first + row;
      const T *from = i < a.held ? a.recent0 + (b * a.held + i) * a.n : a.relevant0 + (b * slots + i - a.held) * a.n;
      T *to = p.old_value + (row * each + i) * a.np;
      a.at(a.reset, 0, b) ? fill(to, a.np, T(0)) : widen(to, from, a.n, a.np);  // a NaN must not teach the keys
    }
  make_keys(a, *p.plan, p.old_value, p.rows * each, p.old_key, p.old_wide);
}

// From here on `number` is the state of `source`; a key that was not kept has its place already.
template <class T> static void hold(const BackwardPass<T> &p, Index row, Index source, Index number) {
  const Scan<T> &a = *p.a;
  Held<T> &held = p.held_of(row, number);
  bool made = source >= 0;
  Index at = made ? p.at(source, row) : row * (a.held + a.spec.relevant) + initial_slot(source);
  auto kept = [&](const T *from, T *copies) {
    if (!copies) return from;
    T *mine = copies + (row * p.entries + number) * a.np;
    copy(mine, from, a.np);
    return static_cast<const T *>(mine);
  };
  held.value = kept((made ? a.h_hist : p.old_value) + at * a.np, p.held_values);
  if (!a.keeps_keys()) return;
  held.key = kept((made ? a.k_hist : p.old_key) + at * a.np, p.held_keys);
  held.wide = made ? a.wide[at] : p.old_wide[at];
}

// Calls visit(source, number) for all that row holds after its step at time t, in the order of the forward pass.
template <class T, class Visit>
static void each_held(const BackwardPass<T> &p, Index t, Index row, int64_t position, const Visit &visit) {
  const Scan<T> &a = *p.a;
  Index most = a.spec.recent >= 0 ? a.spec.recent : a.held + t + 1;
  Index ring = position + 1 < most ? Index(position + 1) : most;
  Index slot = (position - (ring - 1)) % a.capacity;
  for (Index age = ring - 1; age >= 0; --age, slot = slot + 1 == a.capacity ? 0 : slot + 1)
    visit(t >= age ? t - age : from_initial((position - age) % a.held), p.ring_number[row * a.capacity + slot]);
  for (Index j = 0; j < a.spec.relevant; ++j) {
    Index source = p.replay.source[row * a.spec.relevant + j];
    if (source != NOWHERE) visit(source, p.set_number[row * a.spec.relevant + j]);
  }
}

template <class T> static Index list_back(const BackwardPass<T> &p, Index t, Index row, int64_t position) {
  const Held<T> *held = p.held + row * p.entries;
  Index count = 0;
  each_held(p, t, row, position, [&](Index, Index number) { p.list[count++] = held[number]; });
  return count;
}

// Computes keys of `count` states in `came` again.
template <class T> static void make_came_keys(const BackwardPass<T> &p, Index count) {
  make_keys(*p.a, *p.plan, p.came, count, p.came_keys, p.came_wide);
}

template <class T> static void keep_came_key(const BackwardPass<T> &p, Index row, Index i, Index number) {
  Index place = row * p.entries + number, np = p.a->np;
  copy(p.held_keys + place * np, p.came_keys + i * np, np), p.held[place].wide = p.came_wide[i];
}

// Finds all that row holds after its step at time t.
template <class T> static void hold_row(const BackwardPass<T> &p, Index t, Index row) {
  const Scan<T> &a = *p.a;
  int64_t position = p.replay.position[t * p.rows + row];
  each_held(p, t, row, position, [&](Index source, Index number) { hold(p, row, source, number); });
  if (a.keeps_keys()) return;
  Index count = list_back(p, t, row, position), i = 0;
  for (Index k = 0; k < count; ++k) copy(p.came + k * a.np, p.list[k].value, a.np);
  make_came_keys(p, count);
  each_held(p, t, row, position, [&](Index, Index number) { keep_came_key(p, row, i++, number); });
}

// The state that row holds before step t and no longer after it, or that an entry at this step displaced, is back.
template <class T> static void come_back(const BackwardPass<T> &p, Index row, Index source, Index number) {
  if (source != NOWHERE) hold(p, row, source, number);
  if (p.a->keeps_keys()) return;
  copy(p.came + row * p.a->np, source == NOWHERE ? p.zero : p.held_of(row, number).value, p.a->np);
  p.came_number[row] = source == NOWHERE ? -1 : int32_t(number);
}

// Keys of what came back, all rows together.
template <class T> static void key_came(const BackwardPass<T> &p, Index t, Index rows) {
  if (p.a->spec.memory != BUFFER || p.a->keeps_keys() || !t) return;
  make_came_keys(p, rows);
  for (Index row = 0; row < rows; ++row)
    if (t < p.a->length(p.first + row) && p.came_number[row] >= 0) keep_came_key(p, row, row, p.came_number[row]);
}

// The sums start from the gradients of the final state.
template <class T> static void start_reads(const BackwardPass<T> &p) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant;
  if (!a.fresh) take_initial_reads(p);
  fill(p.held_sums, p.rows * p.entries * 2 * a.np, T(0));
  for (Index place = 0; place < p.rows * p.entries; ++place) {
    T *key = a.keeps_keys() ? nullptr : p.held_keys + place * a.np;
    p.held[place] = {nullptr, key, p.held_sums + place * 2 * a.np, NARROW};
  }
  for (Index row = 0; row < p.rows; ++row) {
    for (Index i = 0; i < a.capacity; ++i) p.ring_number[row * a.capacity + i] = int32_t(i);
    for (Index j = 0; j < slots; ++j) p.set_number[row * slots + j] = int32_t(a.capacity + j);
    Index b = p.first + row, last = a.length(b) - 1;
    int64_t position = p.replay.position[last * p.rows + row];
    Index most = a.spec.recent >= 0 ? a.spec.recent : a.held + last + 1;
    Index count = position + 1 < most ? Index(position + 1) : most;
    for (Index age = 0; p.g->recent1 && age < count; ++age) {
      Index slot = (position - age) % a.capacity;
      copy(p.held_of(row, slot).sums, p.g->recent1 + (b * a.capacity + slot) * a.n, a.n);
    }
    for (Index j = 0; p.g->relevant1 && j < slots; ++j)
      copy(p.held_of(row, a.capacity + j).sums, p.g->relevant1 + (b * slots + j) * a.n, a.n);
    hold_row(p, last, row);
  }
}

// dr is the gradient of the read of step t; dq goes into the row's d.
template <class T> static void attend_back(const BackwardPass<T> &p, Index t, Index row, int64_t position, T *dq) {
  const Scan<T> &a = *p.a;
  Index at = p.at(t, row), np = a.np;
  const T *q = p.query(t, row);
  fill(dq, np, T(0)), fill(p.dv, np, T(0));
  Index count = list_back(p, t, row, position);
  Read<T> read{count, np, p.list};
  read.ask(a.spec, a.n, q, p.eq, *p.plan);
  const T *kept = a.norm + at * a.norm_size(), *weights = a.keeps_weights() ? kept : nullptr;
  Softmax<T> norm = weights ? Softmax<T>{} : Softmax<T>{kept[0], kept[1]};
  read_backward<T>(read, {p.dr, weights, norm, dq, p.dv, p.first_slot, p.z, p.de});
  T *score = p.sums_of(row).recent_score;  // terms of one read cancel: added first, they round less
  for (Index j = 0; j < np; j += WIDTH<T>) store(score + j, load(score + j) + load(p.dv + j));
}

template <class T> static void finish_key_sum(const BackwardPass<T> &p, T *sums) {
  if (p.a->spec.score == ADDITIVE) finish_slopes(sums + p.a->np, p.plan->score, p.a->np);
}

// The state made at step t: its sums are complete. Then the entry into the relevant set is taken back.
template <class T>
static void undo_entry(const BackwardPass<T> &p, Index t, Index row, int64_t position, T *dh, T *dk) {
  const Scan<T> &a = *p.a;
  Index np = a.np, slots = a.spec.relevant;
  int32_t &newest = p.ring_number[row * a.capacity + position % a.capacity];
  T *sums = p.held_of(row, newest).sums;
  for (Index j = 0; j < np; j += WIDTH<T>) store(dh + j, load(dh + j) + load(sums + j));
  finish_key_sum(p, sums);
  copy(dk, sums + np, np);
  fill(sums, 2 * np, T(0));
  Index j = Index(a.log_slot[p.at(t, row)]);
  bool full = a.spec.recent >= 0 && position >= a.spec.recent;
  if (j < 0) return come_back(p, row, full ? entering(a, t, position) : NOWHERE, newest);
  int32_t &taken = p.set_number[row * slots + j], left = newest;
  newest = taken, taken = left;  // what entered is back in the ring, and its sums with it
  Index displaced = p.replay.displaced[t * p.rows + row];
  p.replay.source[row * slots + j] = int32_t(displaced);
  come_back(p, row, displaced, left);
}

// key sums of the row's group += outer products of key gradients, which are complete, and values: those on the list.
template <class T> static void add_keys(const BackwardPass<T> &p, Index row, Index count) {
  Index np = p.a->np, most = p.chunk * p.group_rows;
  for (Index i = 0; i < count; i += most) {
    Index depth = count - i < most ? count - i : most;
    for (Index k = 0; k < depth; ++k) p.left_rows[k] = p.list[i + k].sums, p.right_rows[k] = p.list[i + k].value;
    pack_columns(p.right, p.right_rows, np, np, depth);
    add_outer<T>(p.sums_of(row).key, np, np, p.left_rows, np, p.right, depth);
  }
}

// A cut of the reads before step t: what was held then gets no gradient; its keys still teach the key matrix.
template <class T> static void cut_held(const BackwardPass<T> &p, Index t, Index row, int64_t position) {
  Index count = list_back(p, t - 1, row, position - 1);
  for (Index i = 0; i < count; ++i) finish_key_sum(p, p.list[i].sums);
  add_keys(p, row, count);
  for (Index i = 0; i < count; ++i) fill(p.list[i].sums, 2 * p.a->np, T(0));
}

// Gradient of one initial slot: value sums and, through the key, key sums.
template <class T> static void give_initial(const BackwardPass<T> &p, const T *sums, T *out) {
  const Scan<T> &a = *p.a;
  multiply<T>(p.through, a.np, 1, nullptr, {sums + a.np, a.np, a.np}, {nullptr, 0, 0}, p.plan->key_back);
  for (Index j = 0; j < a.n; ++j) out[j] = sums[j] + p.through[j];
}

template <class T> static void finish_reads(const BackwardPass<T> &p) {
  const Scan<T> &a = *p.a;
  Index slots = a.spec.relevant, each = a.held + slots;
  for (Index row = 0; row < p.rows; ++row) {
    Index b = p.first + row, count = 0;
    int64_t step = a.step0[b];
    auto give = [&](Index place, Index number, T *out) {
      T *sums = p.held_of(row, number).sums;
      finish_key_sum(p, sums);
      p.list[count++] = {p.old_value + (row * each + place) * a.np, nullptr, sums, NARROW};
      if (out) give_initial(p, sums, out);
    };
    if (p.g->recent0) fill(p.g->recent0 + b * a.held * a.n, a.held * a.n, T(0));
    for (int64_t age = 1; age <= step && age <= a.held; ++age) {
      Index slot = (step - age) % a.held, number = p.ring_number[row * a.capacity + (step - age) % a.capacity];
      give(slot, number, p.g->recent0 ? p.g->recent0 + (b * a.held + slot) * a.n : nullptr);
    }
    for (Index j = 0; j < slots; ++j)
      give(a.held + j, p.set_number[row * slots + j],
           p.g->relevant0 ? p.g->relevant0 + (b * slots + j) * a.n : nullptr);
    add_keys(p, row, count);
  }
}

// Weights in the form in which the scans use them: packed once per call, shared by all rows.

struct Arena {  // hands out aligned pieces of one allocation; without a base it only counts
  char *base;
  std::size_t used = 0;
  template <class U> U *take(Index count) {
    used = (used + 63) / 64 * 64;
    char *piece = base ? base + used : nullptr;
    used += std::size_t(count) * sizeof(U);
    return reinterpret_cast<U *>(piece);
  }
};

static inline Index round_up(Index n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

// A step of a cell computes planes of np numbers. RNN and LSTM: one per gate, from x and s together. GRU and GORU:
// 0 the candidate's part from x, 1 and 2 the gates, 3 the candidate's part from s, which the reset gate multiplies.
struct Layout {
  Index planes, both_first, both_count, x_count, s_first, s_count;  // x planes start at 0
  explicit Layout(const Spec &spec) {
    bool gated = spec.cell == GRU || spec.cell == GORU;
    planes = spec.planes();
    both_first = gated ? 1 : 0, both_count = gated ? 2 : planes;
    x_count = gated ? 3 : planes, s_first = gated ? 1 : 0, s_count = gated ? 3 : planes;
  }
  bool split() const { return s_first == 1; }
  Index x_block(Index plane) const { return split() ? (plane + 2) % 3 : plane; }  // block of rows in the weights
  Index s_block(Index plane) const { return plane - s_first; }
};

template <class T> struct Plan {
  Panels<T> both, from_x, from_s, query, key;  // forward: [x | s] -> planes, x -> plane 0, s -> plane 3, s -> q, h -> k
  Panels<T> s_back, x_back, key_back;          // backward: planes and dq -> ds, planes -> dx, dk -> dh
  T *bias;                                     // (planes, np)
  T *score, *modrelu, *key_row, *query_row;    // (np); rows: STRIDE
  bool reads;                                  // whether queries and keys are matrices
  bool steep;                                  // some score weight exceeds score_most
};

template <class T> static Panels<T> take_panels(Arena &arena, Index depth, Index width) {
  return {arena.take<T>(depth * width), depth, width};
}

template <class T> static Plan<T> lay_plan(const Scan<T> &a, bool backward, Arena &arena) {
  Layout layout(a.spec);
  Plan<T> plan{};
  plan.reads = a.spec.memory == BUFFER;
  bool computes = !backward || a.spec.save == SAVE_LEAN;
  if (computes) {
    plan.both = take_panels<T>(arena, a.inputs + a.n, layout.both_count * a.np);
    if (layout.split()) {
      plan.from_x = take_panels<T>(arena, a.inputs, a.np);
      plan.from_s = take_panels<T>(arena, a.n, a.np);
    }
    if (plan.reads) plan.query = take_panels<T>(arena, a.n, a.np);
  }
  if (plan.reads && !(backward && a.fresh && a.keeps_keys())) plan.key = take_panels<T>(arena, a.n, a.np);
  if (backward) {
    plan.s_back = take_panels<T>(arena, (layout.s_count + plan.reads) * a.np, a.np);
    plan.x_back = take_panels<T>(arena, layout.x_count * a.np, round_up(a.inputs));
    if (plan.reads) plan.key_back = take_panels<T>(arena, a.np, a.np);
  }
  plan.bias = arena.take<T>(layout.planes * a.np);
  plan.score = arena.take<T>(a.np), plan.modrelu = arena.take<T>(a.np);
  plan.key_row = arena.take<T>(a.np), plan.query_row = arena.take<T>(a.np);
  return plan;
}

template <class T> static void pack_forward(const Scan<T> &a, const Layout &layout, const Plan<T> &plan) {
  for (Index p = 0; p < layout.both_count; ++p) {
    Index plane = layout.both_first + p;
    pack_transposed(plan.both, 0, p * a.np, a.w_ih + layout.x_block(plane) * a.n * a.inputs, a.n, a.inputs);
    pack_transposed(plan.both, a.inputs, p * a.np, a.w_hh + layout.s_block(plane) * a.n * a.n, a.n, a.n);
  }
  if (layout.split()) {
    pack_transposed(plan.from_x, 0, 0, a.w_ih + layout.x_block(0) * a.n * a.inputs, a.n, a.inputs);
    pack_transposed(plan.from_s, 0, 0, a.w_hh + layout.s_block(3) * a.n * a.n, a.n, a.n);
  }
  if (plan.reads) pack_transposed(plan.query, 0, 0, a.query, a.n, a.n);
}

template <class T> static void pack_backward(const Scan<T> &a, const Layout &layout, const Plan<T> &plan) {
  bool padded = a.n < a.np;
  if (padded) fill(plan.s_back.data, plan.s_back.depth * plan.s_back.width, T(0));
  if (padded) fill(plan.x_back.data, plan.x_back.depth * plan.x_back.width, T(0));
  for (Index p = 0; p < layout.s_count; ++p)
    pack_straight(plan.s_back, p * a.np, a.w_hh + layout.s_block(layout.s_first + p) * a.n * a.n, a.n, a.n);
  for (Index p = 0; p < layout.x_count; ++p)
    pack_straight(plan.x_back, p * a.np, a.w_ih + layout.x_block(p) * a.n * a.inputs, a.inputs, a.n);
  if (!plan.reads) return;
  pack_straight(plan.s_back, layout.s_count * a.np, a.query, a.n, a.n);
  if (padded) fill(plan.key_back.data, plan.key_back.depth * plan.key_back.width, T(0));
  pack_straight(plan.key_back, 0, a.key, a.n, a.n);
}

// Both biases act where x and s meet. A GRU's recurrent bias of the candidate stays with s, inside the reset gate.
template <class T> static void pack_bias(const Scan<T> &a, const Layout &layout, T *bias) {
  fill(bias, layout.planes * a.np, T(0));
  bool inside = a.spec.cell == GRU;
  for (Index plane = 0; plane < layout.planes; ++plane) {
    bool from_x = plane < layout.x_count, from_s = inside ? plane >= layout.s_first : from_x;
    Index block = inside ? layout.s_block(plane) : layout.x_block(plane);
    for (Index i = 0; i < a.n; ++i) {
      if (a.b_ih && from_x) bias[plane * a.np + i] += a.b_ih[layout.x_block(plane) * a.n + i];
      if (a.b_hh && from_s) bias[plane * a.np + i] += a.b_hh[block * a.n + i];
    }
  }
}

template <class T> static void pack_plan(const Scan<T> &a, bool backward, Plan<T> &plan) {
  Layout layout(a.spec);
  if (plan.both.data) pack_forward(a, layout, plan);
  if (backward) pack_backward(a, layout, plan);
  if (plan.key.data) pack_transposed(plan.key, 0, 0, a.key, a.n, a.n);
  pack_bias(a, layout, plan.bias);
  auto pad = [&](T *to, const T *from) { from ? widen(to, from, a.n, a.np) : fill(to, a.np, T(0)); };
  pad(plan.score, plan.reads ? a.score : nullptr);
  for (Index i = 0; i < a.n; ++i) plan.steep |= !(__builtin_fabs(plan.score[i]) <= Simd<T>::score_most);
  pad(plan.modrelu, a.modrelu);
  pad(plan.key_row, a.spec.memory == STRIDE ? a.key : nullptr);
  pad(plan.query_row, a.spec.memory == STRIDE ? a.query : nullptr);
}

// A plan is laid out at the start of its own memory.
template <class T> static const Plan<T> &planned(const void *memory) { return *static_cast<const Plan<T> *>(memory); }

template <class T> static std::size_t plan_size(const Scan<T> &a, bool backward) {
  Arena arena{nullptr};
  arena.take<Plan<T>>(1);
  lay_plan(a, backward, arena);
  return arena.used;
}

template <class T> static void make_plan(const Scan<T> &a, bool backward, void *memory) {
  Arena arena{static_cast<char *>(memory)};
  Plan<T> *plan = arena.take<Plan<T>>(1);
  *plan = lay_plan(a, backward, arena);
  pack_plan(a, backward, *plan);
}
